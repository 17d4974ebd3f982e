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
from importlib import import_module
from pathlib import Path

import pytest

import ledger

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path
    for package in ("ledger", "projections")
    for path in ROOT.glob(f"{package}/**/*.py")
    # Read by the generator of the documentation site, and by nothing else.
    if path.name != "conf.py"
)

MOST_FUNCTION_LINES = 70

# Each package may import itself and those before it.
ROOMS = [
    "ledger.model",
    "ledger.locations",
    "ledger.events",
    "ledger.state",
    "ledger.decide",
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
    "ledger.relocation",
    "ledger.shell",
    "ledger.cli",
]
PURE = [
    "ledger.model",
    "ledger.events",
    "ledger.state",
    "ledger.decide",
    "ledger.transforms",
    "ledger.sql",
]
IMPURE_MODULES = {"os", "io", "time", "random", "uuid", "socket", "fsspec", "structlog"}
DIALECTS = ["dlf", "paimon", "iceberg", "delta"]
FORMATS = {"paimon", "iceberg", "delta"}
_IDS = "who counts field ids, which is Paimon's way or Iceberg's"
NAMED_FORMATS = {
    "ledger.model.schema": ("paimon iceberg", _IDS),
    "ledger.decide.bounds": ("paimon", _IDS),
    "ledger.decide.table_creation": ("paimon iceberg", _IDS),
    "ledger.decide.column_edits": ("paimon", _IDS),
    "ledger.decide.column_draft": ("paimon", _IDS),
    "ledger.state.schema_record": ("paimon", _IDS),
    "ledger.opening.creation": ("paimon", _IDS),
    "ledger.events.imported": ("paimon iceberg delta", "the type of an origin"),
    "ledger.events.table": ("paimon iceberg", "the protocols that engines commit through"),
    "ledger.state.delta_origin": ("delta", "a class of origins"),
    "ledger.state.iceberg_origin": ("iceberg", "a class of origins"),
    "ledger.state.paimon_origin": ("paimon", "a class of origins"),
    "ledger.state.declared_formats": ("paimon iceberg", "what a change means under which"),
    "ledger.decide.column_additions": ("paimon", "whose meaning of a change it is that refuses"),
    "ledger.ledger": ("paimon iceberg", "what is imported unless said otherwise; field ids"),
    "ledger.table_at": ("iceberg", "rows are read by PyIceberg"),
}
"""The modules of the ledger that may name formats, and why; all others ask `ledger.formats`."""

SAID_TWICE = {"DropTable"}
"""One wish, which the catalog's stream and the table's take each in its own words."""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


KNOWN = {module_of(path) for path in SOURCES}
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
            "ledger.model.credentials",
            "ledger.model.extras",
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
        # The shapes of reported statistics are the DLF API's, which is no format of tables.
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
    """Arrow's threads may release them while the interpreter ends, which aborts the process."""
    text = path.read_text()
    for called in re.finditer(r"(?:read_table|ParquetFile)\((.*)", text):
        owned = called[1].startswith(("copy_to_arrow_memory(", "path)", "stream)"))
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


def children_graph(package: str) -> dict[str, set[str]]:
    """Return the imports between the modules and packages directly inside of a package."""
    graph: dict[str, set[str]] = {}
    depth = package.count(".") + 1
    for path in SOURCES:
        module = module_of(path)
        if not within(module, package) or module == package:
            continue
        child = module.split(".")[depth]
        for imported in modules_imported_by(path):
            if within(imported, package) and imported != package:
                other = imported.split(".")[depth]
                if other != child:
                    graph.setdefault(child, set()).add(other)
    return graph


PACKAGES = sorted({module_of(path) for path in SOURCES if path.stem == "__init__"})


@pytest.mark.parametrize("package", PACKAGES)
def test_the_children_of_a_package_have_no_import_cycle(package: str) -> None:
    try:
        tuple(TopologicalSorter(children_graph(package)).static_order())
    except CycleError as error:
        pytest.fail(f"an import cycle in {package}: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_exports_every_name_that_it_lists(package: str) -> None:
    found = import_module(package)
    listed = getattr(found, "__all__", ())
    assert [each for each in listed if not hasattr(found, each)] == []
    assert len(listed) == len(set(listed))


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
        # What these are made of.
        *(
            "ledger_handle",
            "ledger_writes",
            "table_handle",
            "table_writes",
            "dropped_tables",
            "engine_writes",
            "purge",
            "queries",
            "table_folders",
        ),
    }
    assert {path.stem for path in ROOT.glob("ledger/*.py")} <= allowed


PUBLIC = ("ledger.ledger", "ledger.table", "ledger.table_branch", "ledger.table_at")
OPENED_LIKE_USERS = (
    "ledger.cli",
    "projections.rest.page",
    "projections.statistics",
    "projections.source",
    "projections.spark_tasks",
)
"""Commands, the page, statistics and the Spark source: they read ledgers as users do."""
NAMED_BY_SIGNATURES = {
    "ledger.log.request": {"Appended", "CommitOptions", "NowMillis", "now_millis"},
    "ledger.stores.wrappers": {"Trust"},
}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_what_handles_call_knows_no_public_class(path: Path) -> None:
    module = module_of(path)
    is_outermost = (
        module in {"ledger", *PUBLIC}
        or any(within(module, each) for each in OPENED_LIKE_USERS)
        # `project` and `import` of a format, and what its users call.
        or (within(module, "projections") and path.stem == "command")
        or module == "projections.iceberg"
    )
    known = set(PUBLIC) & set(modules_imported_by(path))
    if within(module, "projections"):
        # A state with the schema to read it by, which nothing can be written through.
        known -= {"ledger.table_at"}
    assert is_outermost or not known, f"{module} imports {known}: take a handle"


@pytest.mark.parametrize("module", PUBLIC)
def test_public_classes_reach_logs_and_stores_through_their_handle(module: str) -> None:
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {each.name for each in node.names}
            if within(node.module, "ledger.log") or within(node.module, "ledger.stores"):
                assert names <= NAMED_BY_SIGNATURES.get(node.module, set()), node.module
    assigned = {
        target.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    assert assigned <= {"_handle", "name"}, "a public object keeps its handle, a branch its name"


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_a_handle_is_reached_by_one_function(path: Path) -> None:
    reads = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "_handle"
    ]
    if module_of(path) not in {*PUBLIC, "ledger.updates"}:
        assert len(reads) == (module_of(path) == "ledger.table_handle")


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


SPELL_PLACES = ("ledger.stores", "ledger.locations", "ledger.decide.catalog")
"""The modules that open places, interpret texts, and accept a user's new location."""


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
        "origin of an imported table"
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
