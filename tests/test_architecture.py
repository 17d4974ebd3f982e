"""The arrows between the rooms, the sizes, and what must stay light: rules that are tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import ledger

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("ledger/**/*.py"), *ROOT.glob("projections/**/*.py")])

MOST_FUNCTION_LINES = 70

# Each room may import itself and what stands before it.
ROOMS = [
    "ledger.model",
    "ledger.locations",
    "ledger.events",
    "ledger.evolution",
    "ledger.transforms",
    "ledger.sql",
    "ledger.stores",
    "ledger.observing",
    "ledger.log",
    "ledger.formats",
    "ledger.files",
    "ledger.planning",
    "ledger.history",
    "ledger.audit",
    "ledger.opening",
    "ledger.moving",
    "ledger.shell",
    "ledger.cli",
]
PURE = ["ledger.model", "ledger.events", "ledger.evolution", "ledger.transforms", "ledger.sql"]
IMPURE_MODULES = {"os", "io", "time", "random", "uuid", "socket", "fsspec", "structlog"}
DIALECTS = ["dlf", "paimon", "iceberg", "delta"]
FORMATS = {"paimon", "iceberg", "delta"}
_IDS = "who counts field ids, which is Paimon's way or Iceberg's"
NAMED_FORMATS = {
    "ledger.model.schema": ("paimon iceberg", _IDS),
    "ledger.evolution.bounds": ("paimon", _IDS),
    "ledger.evolution.columns.creation": ("paimon iceberg", _IDS),
    "ledger.evolution.columns.editing": ("paimon", _IDS),
    "ledger.evolution.columns.iceberg_ids": ("paimon", _IDS),
    "ledger.evolution.fold.schema_record": ("paimon", _IDS),
    "ledger.opening.birth": ("paimon", _IDS),
    "ledger.events.born.delta": ("delta", "the type of an origin"),
    "ledger.events.born.iceberg": ("iceberg", "the type of an origin"),
    "ledger.events.born.paimon": ("paimon", "the type of an origin"),
    "ledger.events.table_events": ("paimon iceberg", "the protocols that engines commit through"),
    "ledger.evolution.table.origin.delta": ("delta", "a class of origins"),
    "ledger.evolution.table.origin.iceberg": ("iceberg", "a class of origins"),
    "ledger.evolution.table.origin.paimon": ("paimon", "a class of origins"),
    "ledger.evolution.declared.rules": ("paimon iceberg", "what a change means under which"),
    "ledger.evolution.columns.adding": ("paimon", "whose meaning of a change it is that refuses"),
    "ledger.ledger": ("paimon iceberg", "what is imported unless said otherwise; field ids"),
    "ledger.table_at": ("iceberg", "rows are read by PyIceberg"),
}
"""The modules of the ledger that may name formats, and why; all others ask `ledger.formats`."""

SAID_TWICE = {"DropTable"}
"""One wish, which the catalog's stream and the table's take each in its own words."""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


KNOWN = {module_of(path) for path in SOURCES}
UNDIVIDED = ("projections",)
"""Rooms that no docstring opens: each room in them has a door of its own."""
DOORS = {
    module_of(path): ast.get_docstring(ast.parse(path.read_text())) or ""
    for path in SOURCES
    if path.stem == "__init__" and module_of(path) not in UNDIVIDED
}
STORES = ("LocalStore", "MemoryStore", "ObjectStore")


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    return tuple(_imports_in(path))


def _imports_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


def top_level_imports_of(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def room_of(module: str) -> str:
    if module == "ledger.__main__":
        return "ledger.cli"
    parts = module.split(".")
    room = ".".join(parts[:2])
    return room if room in ROOMS else "ledger.shell"


@cache
def modules_imported_by(path: Path) -> tuple[str, ...]:
    """Return the modules of ours that a module imports, at its top or later, but for itself."""
    return tuple(_modules_imported_in(path))


def _modules_imported_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            found = name if name in KNOWN else name.rpartition(".")[0]
            if found in KNOWN and found != module_of(path):
                yield found


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_imports_follow_the_arrows(path: Path) -> None:
    module = module_of(path)
    for imported in imports_of(path):
        if within(module, "ledger"):
            assert not within(imported, "projections"), f"{module} imports {imported}"
        if within(module, "ledger") and within(imported, "ledger"):
            here, there = ROOMS.index(room_of(module)), ROOMS.index(room_of(imported))
            assert there <= here, f"{module} imports {imported}, which stands after it"


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_stores_know_bytes_and_not_commits(path: Path) -> None:
    module = module_of(path)
    if within(module, "ledger.stores"):
        known = [each for each in imports_of(path) if within(each, "ledger")]
        allowed = (
            "ledger.stores",
            "ledger.locations",
            "ledger.model.errors",
            "ledger.model.messages.credentials",
        )
        assert all(any(within(each, room) for room in allowed) for each in known), known


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_what_decides_reads_no_clock_and_does_no_io(path: Path) -> None:
    if any(within(module_of(path), room) for room in PURE):
        assert not {each.split(".")[0] for each in imports_of(path)} & IMPURE_MODULES


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_dialects_do_not_know_each_other(path: Path) -> None:
    parts = module_of(path).split(".")
    if parts[0] == "projections" and len(parts) > 1 and parts[1] in {*DIALECTS, "statistics"}:
        # The shapes in which statistics are told are the DLF API's, which is no format of tables.
        unknown = FORMATS if parts[1] == "statistics" else {*DIALECTS} - {parts[1]}
        others = [f"projections.{each}" for each in unknown]
        for imported in imports_of(path):
            assert not any(within(imported, other) for other in others), imported


def test_a_word_means_one_thing() -> None:
    """A dialect's room speaks its format's language; all other rooms speak one."""
    named: dict[str, list[str]] = {}
    for path in SOURCES:
        room, *inside = module_of(path).split(".")
        if room == "projections" and inside and inside[0] in DIALECTS:
            continue
        for name in re.findall(r"^ *class ([A-Z]\w*)[:(]", path.read_text(), re.MULTILINE):
            named.setdefault(name, []).append(module_of(path))
    twice = {name: where for name, where in named.items() if len(where) > 1}
    assert twice.keys() == SAID_TWICE, f"one name, two classes: {twice}"


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_pyspark_is_imported_only_where_the_design_says(path: Path) -> None:
    module = module_of(path)
    if any(each.split(".")[0] == "pyspark" for each in imports_of(path)):
        allowed = ("projections.statistics", "projections.source")
        assert any(within(module, room) for room in allowed)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    if within(module_of(path), "ledger"):
        heavy = {"pyarrow", "pyspark", "fastavro", "fsspec", "rich", "cyclopts", "matplotlib"}
        found = {each.split(".")[0] for each in top_level_imports_of(path)} & heavy
        if within(module_of(path), "ledger.cli"):
            found -= {"rich", "cyclopts"}
        if module_of(path) == "ledger.stores.regular_files":
            # Imported by `open_location` where a local file is opened.
            found -= {"fsspec"}
        assert not found


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_arrow_reads_no_bytes_of_python_by_threads(path: Path) -> None:
    """Arrow's threads may let go of them while the interpreter ends, which aborts the process."""
    text = path.read_text()
    for called in re.finditer(r"(?:read_table|ParquetFile)\((.*)", text):
        owned = called[1].startswith(("arrow_owned(", "path)", "stream)"))
        assert owned or "use_threads=False" in text, called[0]


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_functions_stay_small(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= MOST_FUNCTION_LINES, f"{node.name} has {length} lines"


def test_importing_ledger_stays_light() -> None:
    code = (
        "import sys, ledger; "
        "heavy = {'pyspark', 'pyarrow', 'fastavro', 'pyiceberg', 'sqlglot', 's3fs'}; "
        "heavy &= set(sys.modules); "
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_top_level_is_fixed() -> None:
    allowed = {"pyproject.toml", "ledger", "projections", "tests", "benchmarks", "README.md"}
    command = ["git", "ls-tree", "--name-only", "HEAD"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    names = set(listed.stdout.split())
    assert {each for each in names if not each.startswith(".")} <= allowed


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_rooms_are_entered_by_their_front_doors(path: Path) -> None:
    module = module_of(path)
    for imported in modules_imported_by(path):
        parts = imported.split(".")
        for depth in range(2, len(parts)):
            room = ".".join(parts[:depth])
            if room not in DOORS or within(module, room):
                continue
            assert parts[depth] in opened_by(DOORS[room]), (
                f"{module} imports {imported}, which the docstring of {room} does not open"
            )


@pytest.mark.parametrize("room", [each for each in DOORS if within(each, "projections")])
def test_a_room_of_the_projections_says_what_others_may_import(room: str) -> None:
    folder = ROOT / Path(*room.split("."))
    opened = opened_by(DOORS[room])
    assert "Others may import:" in DOORS[room]
    for name in opened:
        is_there = (folder / name).is_dir() or (folder / f"{name}.py").exists()
        assert is_there or f'"{name}"' in (folder / "__init__.py").read_text(), name


@pytest.mark.parametrize("room", [*DOORS, *UNDIVIDED])
def test_a_room_names_every_module_and_room_that_it_has(room: str) -> None:
    folder = ROOT / Path(*room.split("."))
    door = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    named = {word for said in re.findall(r"`([^`]+)`", door) for word in re.findall(r"\w+", said)}
    there = {path.stem for path in folder.glob("*.py")}
    there |= {path.parent.name for path in folder.glob("*/__init__.py")}
    missing = there - named - {"__init__", "__main__"}
    assert not missing, f"the docstring of {room} does not name {', '.join(sorted(missing))}"


@cache
def opened_by(door: str) -> set[str]:
    """Return the modules that a room's docstring names, or only those that others may import."""
    if "Others may import" not in door:
        return set(re.findall(r"`(\w+)`", door))
    listed = re.findall(r"^(?:- |    )((?:`\w+`(?:, )?)+)", door, re.MULTILINE)
    return {name for names in listed for name in re.findall(r"\w+", names)}


def test_no_circle_is_imported() -> None:
    graph = {module_of(path): set(modules_imported_by(path)) for path in SOURCES}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_no_module_only_forwards(path: Path) -> None:
    if path.stem not in {"__init__", "__main__"}:
        imports = ast.Import | ast.ImportFrom | ast.Expr
        assert not all(isinstance(each, imports) for each in ast.parse(path.read_text()).body)


def test_what_lies_loose_is_what_a_user_holds() -> None:
    allowed = {
        *("__init__", "__main__", "formats", "ledger", "locations", "plan"),
        *("table", "table_at", "table_branch", "transforms", "updates"),
    }
    assert {path.stem for path in ROOT.glob("ledger/*.py")} <= allowed


def test_what_a_user_holds_has_no_chain_of_bases() -> None:
    assert ledger.Ledger.__bases__ == ledger.Table.__bases__ == (object,)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_only_the_stores_ask_which_class_a_store_is(path: Path) -> None:
    if within(module_of(path), "ledger.stores"):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "type"}:
            said = ast.unparse(node)
            assert not any(each in said for each in STORES), f"{said}: ask the store, not its class"


SPELL_PLACES = ("ledger.stores", "ledger.locations", "ledger.evolution.catalog.location")
"""What opens places, what knows what texts mean, and what a user may call a new location."""


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_only_locations_know_which_texts_are_absolute_and_on_which_storage(path: Path) -> None:
    if any(within(module_of(path), each) for each in SPELL_PLACES):
        return
    asked = re.compile(
        r"'://' (not )?in .*|.*\.r?partition\('://'\)|.*\.startswith\('(/|file:/*)'\)", re.DOTALL
    )
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare | ast.Call):
            said = ast.unparse(node)
            assert not asked.fullmatch(said), f"{said}: ask `ledger.locations`"


def test_the_rooms_of_statistics_know_no_circle() -> None:
    # A fold and its definition at the bottom; each room knows those before it.
    order = ("definition", "fold", "reading", "keeping", "shown", "spark", "publishing")
    for path in SOURCES:
        parts = module_of(path).split(".")
        if parts[:2] != ["projections", "statistics"] or len(parts) < 3 or parts[2] not in order:
            continue
        for imported in imports_of(path):
            there = imported.split(".")
            if there[:2] == parts[:2] and len(there) > 2 and there[2] in order:
                place, other = order.index(parts[2]), order.index(there[2])
                assert other <= place, f"{module_of(path)} imports {imported}"


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_the_ledger_lists_no_formats(path: Path) -> None:
    module = module_of(path)
    if not within(module, "ledger"):
        return
    nodes = ast.walk(ast.parse(path.read_text()))
    said = {str(each.value) for each in nodes if isinstance(each, ast.Constant)}
    names, why = NAMED_FORMATS.get(module, ("", ""))
    found = said & FORMATS
    assert found <= set(names.split()), (
        f"{module} names {sorted(found)}: ask `ledger.formats` which there are, or the state's "
        "origin where a table was born"
    )
    assert found >= set(names.split()), f"{module} no longer names {names} ({why})"


def test_a_format_has_one_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]
    groups = {"formats", "commands", "verifications", "views"}
    assert set(points) == {f"lakeledger.{each}" for each in groups}, (
        "what a format brings is a part of its object: see `Part` in ledger.formats"
    )
    assert not set(points["lakeledger.verifications"]) & set(points["lakeledger.formats"])
