"""Type hints match the runtime, star imports hide nothing, and the packages are typed."""

from __future__ import annotations

import ast
import builtins
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import ledger
import projections
from tests import typed_program
from tests.programs import ROOT, run


def test_a_program_that_uses_all_that_is_accepted_runs(tmp_path: Path) -> None:
    typed_program.main(tmp_path)


def typed_constructors() -> Iterator[tuple[str, list[str]]]:
    """Yield the classes whose constructor only type checkers see, with its parameters."""
    for path in ("ledger/events/schema.py", "ledger/model/file_change.py"):
        nodes = ast.walk(ast.parse((ROOT / path).read_text()))
        for each in (node for node in nodes if isinstance(node, ast.ClassDef)):
            for made in ast.walk(each):
                if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                    given = [*made.args.args, *made.args.kwonlyargs]
                    yield each.name, [one.arg for one in given if one.arg != "self"]


@pytest.mark.parametrize(("name", "parameters"), [*typed_constructors()])
def test_a_constructor_for_type_checkers_takes_every_field(
    name: str, parameters: list[str]
) -> None:
    assert parameters == list(getattr(ledger, name).__struct_fields__)


WRONG = [
    "ledger.AddColumn(7, 'INT')",
    "ledger.AddColumn('x', 7)",
    "ledger.UpdateColumnNullability('x', None)",
    "ledger.Schema.of({'x': 7})",
    "ledger.Schema.of(['x'])",
    "ledger.SetIdentifierFields(7)",
    "ledger.FileChange(path=7, record_count=1, file_size_in_bytes=1)",
]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what `mypy --strict` says of both programs, without settings of this project."""
    folder = tmp_path_factory.mktemp("types")
    wrong = folder / "wrong.py"
    wrong.write_text("\n".join(["import ledger", *WRONG]))
    ran = run(
        *("-m", "mypy", "--strict", "--config-file", "", "--cache-dir", folder / "cache"),
        *("--follow-imports", "silent", "--ignore-missing-imports"),
        *(typed_program.__file__, wrong),
        timeout_s=500,
    )
    assert ran.stdout, ran.stderr
    return ran.stdout


def test_the_same_program_passes_a_strict_type_checker(checked: str) -> None:
    assert [line for line in checked.splitlines() if line.startswith("tests/")] == []


@pytest.mark.parametrize(("line", "statement"), [*enumerate(WRONG, 2)])
def test_a_strict_type_checker_rejects_what_the_library_rejects(
    checked: str, line: int, statement: str
) -> None:
    assert f"wrong.py:{line}: error" in checked, statement
    with pytest.raises((ledger.LedgerError, AttributeError, TypeError)):
        ledger.evolve(ledger.Schema.of({"x": "INT"}), [eval(statement)])  # noqa: S307 - from above


def _modules() -> Iterator[str]:
    for package in (ledger, projections):
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".__main__"):
                yield found.name


def test_a_star_import_hides_no_builtin() -> None:
    hidden: list[str] = []
    for name in _modules():
        module = import_module(name)
        public = getattr(module, "__all__", [each for each in vars(module) if each[0] != "_"])
        hidden += [
            f"{name}.{each}"
            for each in public
            if hasattr(builtins, each) and getattr(module, each) is not getattr(builtins, each)
        ]
    assert hidden == []


def test_open_is_public_although_a_star_import_leaves_it_out(tmp_path: Path) -> None:
    program = "from ledger import *\nassert open(__import__('os').devnull).read() == ''\n"
    assert run("-c", program).returncode == 0
    assert "open" in dir(ledger)
    assert ledger.open(tmp_path).url.startswith("file:")


@pytest.mark.parametrize("package", [ledger, projections])
def test_a_package_says_that_it_is_typed(package: object) -> None:
    (folder,) = package.__path__  # type: ignore[attr-defined]
    assert (Path(folder) / "py.typed").is_file()
