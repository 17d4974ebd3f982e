"""The arrows between the rooms, the sizes, and what must stay light: rules that are tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("ledger/**/*.py"), *ROOT.glob("projections/**/*.py")])

MOST_FUNCTION_LINES = 70

# Each room may import itself and what stands before it.
ROOMS = [
    "ledger.model",
    "ledger.locations",
    "ledger.events",
    "ledger.evolution",
    "ledger.formats",
    "ledger.transforms",
    "ledger.sql",
    "ledger.stores",
    "ledger.log",
    "ledger.files",
    "ledger.planning",
    "ledger.history",
    "ledger.opening",
    "ledger.moving",
    "ledger.shell",
    "ledger.cli",
]
PURE = ["ledger.model", "ledger.events", "ledger.evolution", "ledger.transforms", "ledger.sql"]
IMPURE_MODULES = {"os", "io", "time", "random", "uuid", "socket", "fsspec", "structlog"}
DIALECTS = ["dlf", "paimon", "iceberg"]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> Iterator[str]:
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
        )
        assert all(any(within(each, room) for room in allowed) for each in known), known


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_what_decides_reads_no_clock_and_does_no_io(path: Path) -> None:
    if any(within(module_of(path), room) for room in PURE):
        assert not {each.split(".")[0] for each in imports_of(path)} & IMPURE_MODULES


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_dialects_do_not_know_each_other(path: Path) -> None:
    parts = module_of(path).split(".")
    if parts[0] == "projections" and len(parts) > 1 and parts[1] in DIALECTS:
        others = [f"projections.{each}" for each in DIALECTS if each != parts[1]]
        for imported in imports_of(path):
            assert not any(within(imported, other) for other in others), imported


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
        assert not found


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
def test_rooms_within_evolution_are_entered_by_their_front_doors(path: Path) -> None:
    own = room_within_evolution(module_of(path))
    for imported in imports_of(path):
        room = room_within_evolution(imported)
        if room in {None, own} or imported == room:
            continue
        doors = (ROOT / Path(*str(room).split(".")) / "__init__.py").read_text()
        name = imported.removeprefix(f"{room}.").split(".")[0]
        assert f"    `{name}`" in doors, f"{room} does not open {name} to others"


def room_within_evolution(module: str) -> str | None:
    parts = module.split(".")[:3]
    is_room = (ROOT / Path(*parts)).is_dir() and parts[:2] == ["ledger", "evolution"]
    return ".".join(parts) if is_room and len(parts) == 3 else None
