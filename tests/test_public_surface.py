"""Snapshots of everything that users see, so that moving code cannot change it unnoticed.

`tests/data/surface/` has one file per kind. After a change that is wanted, update them with
`python -m tests.test_public_surface --update` and review the difference.

- `commands.txt`: the tree of commands, each with its arguments and options.
- `help.txt`: the help text of each command and the overview with its exit codes, without layout.
- `documents.txt`: the keys of the documents that `--output json` prints, with JSON types.
- `errors.txt`: error classes, their bases, `kind`, exit code and the keys of their JSON.
- `signatures.txt`: `ledger.__all__`, `ledger.transforms.__all__` and the public members of classes.
- `options.txt`: names of table options, from their page, and whether the code has them as a text.
- `observing.txt`: names and keys of log events, spans and metrics.
- `entry_points.txt`: scripts, groups of entry points with their names, and extras.

Other tests hold the rest, and these files do not repeat it: `tests/data/kinds.jsonl` with
`tests/evolution/test_every_kind.py` freezes the JSON of each kind of event;
`tests/observing/test_observing.py` holds `docs/observing.md`, from which `observing.txt` is read,
equal to the code; `tests/test_options_page.py` holds that the page of options misses none;
`tests/test_docs.py` with `tests/api_page.py` holds `docs/api.md` equal to the docstrings;
`tests/test_public_arguments.py` holds that wrong arguments raise typed errors; `tests/cli` holds
what commands do and print, and that each help text has an example that runs.

Nothing here imports a module by a path that is not public.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import io
import json
import re
import sys
import tempfile
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger.cli import main

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "data" / "surface"
COMMAND = "python -m tests.test_public_surface --update"
WIDTH = 1_000
"""Columns of the terminal: no line of a help text wraps."""


MORE = {ledger: ["open"]}
"""Public names that a star import leaves out, since it would hide a builtin."""


@contextlib.contextmanager
def installed(**more: Mapping[str, str]) -> Iterator[Path]:
    """Run commands as an installation does: in an empty folder, without the user's settings.

    Args:
        more: Entry points in addition to the project's, by the last word of their group.
    """
    points = dict(project()["entry-points"])
    for word, names in more.items():
        group = f"lakeledger.{word}"
        points[group] = {**points.get(group, {}), **names}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        home = Path(folder).resolve()
        metadata = home / "site" / "lakeledger-0.0.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: lakeledger\nVersion: 0.0.0\n"
        )
        (metadata / "entry_points.txt").write_text(
            "\n\n".join(
                "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in names.items())])
                for group, names in points.items()
            )
        )
        patch.syspath_prepend(str(home / "site"))
        for name in ("URL", "PROFILE", "TRUST"):
            patch.delenv(f"LAKELEDGER_{name}", raising=False)
        patch.setenv("LAKELEDGER_AUTHOR", "ada")
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setenv("LAKELEDGER_CONFIG", str(home / "no-profiles.toml"))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("TERM", "dumb")
        patch.setenv("COLUMNS", str(WIDTH))
        (home / "work").mkdir()
        patch.chdir(home / "work")
        yield home / "work"


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def ran(*line: str) -> tuple[int, str, str]:
    """Run a command line; return its exit code and what it wrote to stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(line)
    return code, out.getvalue(), err.getvalue()


# Help texts


@cache
def help_pages() -> dict[tuple[str, ...], list[str]]:
    """Return the lines of each command's help, without layout, by the command's words."""
    found: dict[tuple[str, ...], list[str]] = {}
    with installed():
        pending: list[tuple[str, ...]] = [()]
        while pending:
            words = pending.pop()
            code, out, err = ran(*words, "--help")
            assert code == 0, (words, err)
            found[words] = without_layout(out)
            pending += [(*words, name) for name in commands_in(out)]
    return dict(sorted(found.items()))


def without_layout(page: str) -> list[str]:
    """Return the lines of a page without frames, padding and blank lines."""
    lines = (re.sub(r"[│╭╮╰╯─━|]+", " ", line) for line in page.splitlines())
    plain = (re.sub(r" {2,}", "  ", line.strip()) for line in lines)
    return [line for line in plain if line]


def commands_in(page: str) -> list[str]:
    """Return the names of the commands that a page lists in its panel."""
    _, _, panel = page.partition("╭─ Commands ")
    rows = panel.partition("╰")[0].splitlines()
    return re.findall(r"^│ ([a-z][a-z-]*)  ", "\n".join(rows), re.MULTILINE)


def commands() -> Iterator[str]:
    for words, lines in help_pages().items():
        page = "\n".join(lines).partition("\nExample:")[0]
        usage = re.search(r"^Usage: lakeledger *(.*)$", page, re.MULTILINE)
        assert usage is not None, words
        options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])\b(?!-)", page))
        yield " ".join(["lakeledger", usage[1], *sorted(options)])


def help_texts() -> Iterator[str]:
    for words, lines in help_pages().items():
        yield " ".join(["$ lakeledger", *words, "--help"])
        yield from (f"  {line}" for line in lines)
        yield ""


# Documents of `--output json`

COLUMNS = ("--column", "id BIGINT NOT NULL", "--column", "day DATE", "--column", "town STRING")
ALTERED = ("--rename", "town=city", "--add", "zip STRING COMMENT 'five digits' AFTER city")

LINES: tuple[tuple[str, ...], ...] = (
    ("init",),
    ("create", "shop"),
    ("create", "shop.orders", *COLUMNS, "--partition-key", "day", "--option", "team=shop"),
    ("create", "shop.items", "--like", "data/one.parquet"),
    ("plan", "shop.orders", *ALTERED),
    ("alter", "shop.orders", *ALTERED, "--message", "why", "--commit-id", "altered"),
    ("sql", "ALTER TABLE shop.orders WRITE ORDERED BY id"),
    ("add-files", "shop.items", "data/one.parquet"),
    ("add-files", "shop.items", "data/one.parquet", "data/two.parquet", "--new"),
    ("tag", "shop.items", "first", "--at", "snapshot:1"),
    ("branch", "shop.items", "audit"),
    ("branch", "shop.items"),
    ("overwrite", "shop.items", "data/three.parquet"),
    ("delete-files", "shop.items", "data/three.parquet"),
    ("rollback", "shop.items", "--to", "tag:first"),
    ("ls",),
    ("ls", "shop"),
    ("show",),
    ("show", "shop"),
    ("show", "shop.orders"),
    ("show", "shop.items", "--at", "tag:first"),
    ("project", "iceberg", "shop.items"),
    ("project", "iceberg", "shop.items", "--verify"),
    ("head", "shop.items", "--limit", "1"),
    ("log", "shop.orders"),
    ("log", "shop.items", "--limit", "2"),
    ("log", "shop.orders", "--commit-id", "altered"),
    ("log", "--all"),
    ("diff", "shop.orders", "version:0"),
    ("blame", "shop.orders"),
    ("undo", "shop.orders", "1"),
    ("restore", "shop.orders", "--to", "version:0"),
    ("restore", "shop.orders", "--to", "version:0", "--yes"),
    ("replay", "shop.items", "--to", "1"),
    ("replay", "shop.items", "--to", "1", "--into", "iceberg", "replayed"),
    ("report", "shop.items", "-o", "report.html"),
    ("snapshots", "shop.items"),
    ("expire", "shop.items", "--keep", "1"),
    ("expire", "shop.items", "--keep", "1", "--yes"),
    ("stats", "shop.items"),
    ("stats", "shop.items", "--columns"),
    ("stats", "shop.items", "--ask", "compaction"),
    ("stats", "--all"),
    ("status",),
    ("project", "--all"),
    ("verify",),
    ("doctor", "elsewhere"),
    ("maintain", "--dry-run"),
    ("move", "--dry-run"),
    ("correct-clock", "--dry-run"),
    ("erase", "--person", "nobody"),
    ("import", "delta", "theirs", "shop.visits", "--dry-run"),
    ("import", "delta", "theirs", "shop.visits"),
    ("promote", "shop.visits", "--dry-run"),
    ("promote", "shop.visits"),
    ("view", "create", "shop.all", "--query", "SELECT id FROM items", "--column", "id BIGINT"),
    ("view", "alter", "shop.all", "--comment", "every item"),
    ("view", "rename", "shop.all", "shop.every"),
    ("view", "show", "shop.every"),
    ("view", "list", "shop"),
    ("view", "drop", "shop.every"),
    ("view", "drop", "shop.every", "--yes"),
    ("create", "shop.served", "--column", "id BIGINT", "--option", "ledger.formats=iceberg"),
    ("serve-table", "shop.served", "--back", "--dry-run"),
    ("rename", "shop.orders", "shop.purchases"),
    ("drop", "shop.purchases"),
    ("drop", "shop.purchases", "--yes"),
)
"""The examples, run one line after the other in one ledger."""


def documents() -> Iterator[str]:
    with installed() as folder:
        write_sources(folder)
        for line in LINES:
            code, out, err = ran(*line, "--ledger", "lake", "--output", "json")
            assert code == 0, (line, err)
            yield " ".join(["$ lakeledger", *line])
            yield from (f"  {each}" for each in keys_of(json.loads(out)))
            yield ""


def write_sources(folder: Path) -> None:
    """Write Parquet files, and a Delta table that another program owns."""
    import pyarrow as pa
    from pyarrow import parquet

    for place, names in (("data", ("one", "two", "three")), ("theirs", ("a",))):
        (folder / place).mkdir()
        for name in names:
            rows = pa.table({"id": pa.array([1, 2], pa.int64()), "town": ["Oslo", "Rome"]})
            parquet.write_table(rows, folder / place / f"{name}.parquet")
    columns = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "town", "type": "string", "nullable": True, "metadata": {}},
    ]
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 1_600_000_000_000, "operation": "WRITE"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "8c9d",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": columns}),
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (folder / "theirs" / "a.parquet").stat().st_size,
                "modificationTime": 1_600_000_000_000,
                "dataChange": True,
                "stats": json.dumps({"numRecords": 2}),
            }
        },
    ]
    (folder / "theirs" / "_delta_log").mkdir()
    log = folder / "theirs" / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(map(json.dumps, actions)))


JSON_TYPES: Mapping[type, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    types.NoneType: "null",
    list: "list",
    dict: "object",
}


def keys_of(document: Any) -> list[str]:
    """Return the paths of all keys in a document with the JSON types of their values."""
    found: dict[str, set[str]] = {}

    def walk(value: Any, path: str) -> None:
        found.setdefault(path, set()).add(JSON_TYPES[type(value)])
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{path}.{key}")
        if isinstance(value, list):
            for inner in value:
                walk(inner, f"{path}[]")

    walk(document, "")
    return [f"{path or '.'}: {', '.join(sorted(kinds))}" for path, kinds in sorted(found.items())]


# Errors


def error_classes() -> dict[str, type[Exception]]:
    public = {name: getattr(ledger, name) for name in ledger.__all__}
    return {
        name: each
        for name, each in sorted(public.items())
        if isinstance(each, type) and issubclass(each, ledger.LedgerError)
    }


def raised(name: str) -> BaseException:
    """Return an error of a class with a value for each argument."""
    if name == "OSError":
        return OSError("disk")
    if name == "KeyboardInterrupt":
        return KeyboardInterrupt()
    kind = error_classes()[name]
    given = {
        each: 3 if each == "version" else each
        for each in inspect.signature(kind).parameters
        if each != "kind"
    }
    return kind(**given)


def register_raise_error(app: Any) -> None:
    """Raise an error of a class."""

    def raise_error(name: str, *, output: str = "text") -> None:
        del output
        raise raised(name)

    app.command(raise_error, name="raise-error")


def errors() -> Iterator[str]:
    point = f"{register_raise_error.__module__}:{register_raise_error.__name__}"
    point = point.replace("__main__", "tests.test_public_surface")
    with installed(commands={"raise-error": point}):
        for name in (*error_classes(), "KeyboardInterrupt", "OSError"):
            code, _, err = ran("raise-error", name, "--output", "json")
            document = json.loads(err)
            assert document["exitCode"] == code
            yield f"{name}: exit code {code}, kind {document['kind']}"
            if name in error_classes():
                bases = [each.__name__ for each in error_classes()[name].__mro__[1:-1]]
                yield f"  bases: {', '.join(bases)}"
            yield f"  keys: {', '.join(sorted(document))}"
        code, _, err = ran("no-such-command", "--output", "json")
        yield f"{json.loads(err)['error']}: exit code {code}, kind {json.loads(err)['kind']}"
        yield f"  keys: {', '.join(sorted(json.loads(err)))}"


# Signatures


def signatures() -> Iterator[str]:
    modules: tuple[Any, ...] = (ledger, ledger.transforms)
    for module in modules:
        for name in sorted([*module.__all__, *MORE.get(module, ())]):
            yield from described(f"{module.__name__}.{name}", getattr(module, name))
            yield ""
    with installed():
        results = returned()
    for label, value in results.items():
        yield f"{label} returns {type(value).__name__}"
        yield from members(type(value))
        yield ""


def returned() -> dict[str, Any]:
    """Return what the public methods return that users call or read, by the method's name."""
    lake = ledger.open("memory://public-surface", author="ada")
    lake.create_database("shop")
    table = lake.create_table("shop.orders", {"id": "BIGINT"})
    altered = table.alter([ledger.SetOption("team", "shop")])
    file = ledger.FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)
    table.append([file])
    return {
        "Table.alter": altered,
        "Table.diff": table.diff(0),
        "Table.entries": next(iter(table.entries())),
        "Table.plan": table.plan([ledger.SetOption("team", "shops")]),
        "Table.plan_undo": table.plan_undo(1),
        "Table.replace_sort_order": table.replace_sort_order(),
        "Table.update_schema": table.update_schema(),
        "Table.update_spec": table.update_spec(),
    }


def described(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type):
        yield f"class {name}{signature_text(value, annotations_of(value))}"
        yield from members(value)
    elif callable(value):
        yield f"def {name}{signature_text(value, {})}"
    else:
        names = sorted(map(type_text, typing.get_args(value)))
        yield f"{name} = {' | '.join(names) or type_text(value)}"


def is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in {"ledger", "projections"}


def annotations_of(kind: type) -> dict[str, Any]:
    """Return the annotations of a class and its bases as they are written."""
    found: dict[str, Any] = {}
    for each in reversed([base for base in kind.__mro__ if is_ours(base)]):
        found |= inspect.get_annotations(each)
    return found


def members(kind: type) -> Iterator[str]:
    """Yield the public members of a class, those of its bases in the package as well."""
    annotations = annotations_of(kind)
    found = {
        name: value
        for base in reversed([each for each in kind.__mro__ if is_ours(each)])
        for name, value in vars(base).items()
    }
    for name in sorted({*found, *annotations}):
        if not name.startswith("_"):
            yield f"  {member_text(name, found.get(name), annotations.get(name))}"


def member_text(name: str, value: Any, annotation: Any) -> str:
    if isinstance(value, classmethod | staticmethod):
        inner = value.__func__
        return f"{type(value).__name__} {name}{signature_text(inner, {})}"
    if inspect.isfunction(value):
        return f"{name}{signature_text(value, {})}"
    if isinstance(value, property | cached_property):
        getter = value.fget if isinstance(value, property) else value.func
        result = inspect.get_annotations(getter).get("return") if getter else None
        return f"{name}: {type_text(result)}"
    if annotation is not None:
        return f"{name}: {type_text(annotation)}"
    return f"{name} = {value!r}" if isinstance(value, str | int | None) else name


STARS: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def signature_text(value: Any, annotations: Mapping[str, Any]) -> str:
    """Return a signature with its annotations as text, free of module paths."""
    said: list[str] = []
    parameters = [*inspect.signature(value).parameters.values()]
    for number, each in enumerate(parameters):
        before = {other.kind for other in parameters[:number]}
        if each.kind is each.KEYWORD_ONLY and not before & {each.KEYWORD_ONLY, each.VAR_POSITIONAL}:
            said.append("*")
        stars = STARS.get(each.kind, "")
        annotation = each.annotation
        if not isinstance(annotation, str):
            annotation = annotations.get(each.name, annotation)
        kind = "" if annotation is each.empty else f": {type_text(annotation)}"
        default = "" if each.default is each.empty else f" = {default_text(each.default)}"
        said.append(f"{stars}{each.name}{kind}{default}")
    result = inspect.signature(value).return_annotation
    is_constructor = isinstance(value, type)
    arrow = "" if is_constructor or result is inspect.Signature.empty else type_text(result)
    return f"({', '.join(said)})" + (f" -> {arrow}" if arrow else "")


def type_text(annotation: Any) -> str:
    """Return an annotation without the modules of its names, but for pyarrow's and pandas's.

    Example:
        >>> type_text("ledger.model.Schema | None")
        'Schema | None'
    """
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?!pa\.|pd\.)(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", text)
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)


def default_text(value: Any) -> str:
    if inspect.isfunction(value) or isinstance(value, type):
        return value.__name__
    return repr(value)


# Options, what is observed, entry points


def options() -> list[str]:
    """Return the options in the tables of their page; `composed`: no text of the code is the name.

    NAME stands for what the code puts in.
    """
    texts = {
        re.sub(r"\{[^{}]*\}", "NAME", text)
        for room in ("ledger", "projections")
        for path in (ROOT / room).rglob("*.py")
        for text in re.findall(r'"([^"\n]{1,80})"', path.read_text(encoding="utf-8"))
    }
    return sorted(name if name in texts else f"{name} (composed)" for name in option_names())


def option_names() -> set[str]:
    found: set[str] = set()
    column = 0
    for line in (ROOT / "ledger/docs/options.md").read_text(encoding="utf-8").splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if cells[0] in {"option", "topic"}:
            column = ("option", "topic").index(cells[0])
        elif line.startswith("| "):
            # The texts between parentheses are values.
            found |= set(re.findall(r"`([^`]+)`", re.sub(r"\([^()]*\)", "", cells[column])))
    return found


_PROSE = frozenset({"meaning", "description"})


def observed() -> Iterator[str]:
    """Yield names and keys of log events, spans and metrics, without their descriptions."""
    page = (ROOT / "ledger/docs/observing.md").read_text(encoding="utf-8")
    heading: list[str] = []
    rows: list[str] = []
    for line in page.splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if line.startswith("| `"):
            facts = dict(zip(heading, cells, strict=True))
            name = facts.pop(heading[0]).strip("`")
            kept = (f"{key}: {text}" for key, text in facts.items() if key not in _PROSE)
            rows.append(f"{heading[0]} {name}; {'; '.join(kept)}".replace("`", "").rstrip(": "))
        elif line.startswith("| "):
            heading = cells
    yield from sorted(rows)


def entry_points() -> Iterator[str]:
    found = project()
    yield from sorted(
        [
            *(f"script {name}" for name in found["scripts"]),
            *(f"extra {name}" for name in found["optional-dependencies"]),
            *(
                f"entry point {group} {name}"
                for group, names in found["entry-points"].items()
                for name in names
            ),
        ]
    )


# The snapshots

KINDS: Mapping[str, Callable[[], Iterable[str]]] = {
    "commands": commands,
    "help": help_texts,
    "documents": documents,
    "errors": errors,
    "signatures": signatures,
    "options": options,
    "observing": observed,
    "entry_points": entry_points,
}


def snapshot(kind: str) -> str:
    return "\n".join(KINDS[kind]()).rstrip("\n") + "\n"


def difference(kind: str, kept: str, found: str) -> str:
    """Return how a snapshot differs, and the command that updates it; empty if it does not."""
    file = f"tests/data/surface/{kind}.txt"
    lines = [
        *difflib.unified_diff(
            kept.splitlines(), found.splitlines(), f"{file} (kept)", f"{file} (found)", lineterm=""
        )
    ]
    fix = f"If users are meant to see this change, run: {COMMAND}"
    return "\n".join([f"What users see has changed: {kind}.", *lines, fix]) if lines else ""


@pytest.mark.parametrize("kind", KINDS)
def test_what_users_see_is_what_the_snapshot_says(kind: str) -> None:
    said = difference(kind, (FOLDER / f"{kind}.txt").read_text(encoding="utf-8"), snapshot(kind))
    if said:
        pytest.fail(said, pytrace=False)


def test_a_difference_is_shown_with_the_command_that_updates_the_snapshot() -> None:
    said = difference("options", "bucket\ntype\n", "bucket\n")

    assert "\n-type\n" in said
    assert said.endswith(COMMAND)
    assert difference("options", "bucket\n", "bucket\n") == ""


def test_every_snapshot_is_of_a_kind_that_is_tested() -> None:
    assert {each.name for each in FOLDER.iterdir()} == {f"{kind}.txt" for kind in KINDS}


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(f"usage: {COMMAND}")
    FOLDER.mkdir(exist_ok=True)
    for each in KINDS:
        (FOLDER / f"{each}.txt").write_text(snapshot(each), encoding="utf-8")
