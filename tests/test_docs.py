"""The documentation runs: each page from its first block to its last, in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, MemberDescriptorType, ModuleType

import pytest
from attrs import frozen

import ledger
from ledger import TableAt, TableBranch, transforms
from ledger.cli.options import find_profile, profile_names
from ledger.locations import FileNames, Place
from ledger.updates import ReplaceOrder, UpdateSpec
from projections.delta import planned as delta
from projections.iceberg import planned as iceberg
from tests import api_page
from tests.pypaimon_or_skip import needs_pypaimon

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "ledger" / "docs").glob("*.md"))
RUN_ELSEWHERE = {"serving"}
"""Pages whose blocks are for engines; `tests/projections/rest/test_serving_page.py` runs them."""
FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_SIZE = re.compile(r"\d+\.\d [kMG]B")
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


@frozen
class Block:
    """A block of a page.

    Attributes:
        language: What it is written in.
        body: Its lines.
        shows: What the page says that it prints, where it does.
    """

    language: str
    body: str
    shows: str | None


def blocks(page: Path) -> Iterator[Block]:
    """Yield a page's blocks; output right below a block is that block's.

    A `console` block installs lakeledger itself, which is done before the tests run.
    """
    text = page.read_text()
    found = list(FENCE.finditer(text))
    for number, match in enumerate(found):
        if match["language"] in {"text", "console"}:
            continue
        after = found[number + 1] if number + 1 < len(found) else None
        follows = after is not None and after["language"] == "text"
        is_below = follows and not text[match.end() : after.start()].strip()  # type: ignore[union-attr]
        yield Block(match["language"], match["body"], after["body"] if is_below else None)  # type: ignore[index]


def ran_python(body: str, namespace: dict[str, object], name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, name, "exec"), namespace)  # noqa: S102 - our own page
    return printed.getvalue()


def ran_shell(body: str, loaded_command: Path) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LAKELEDGER")}
    folders = (loaded_command, Path(sys.executable).parent, kept.get("PATH", ""))
    path = os.pathsep.join(map(str, folders))
    ran = subprocess.run(
        ["bash", "-ec", body],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "PATH": path, "COLUMNS": "100", "TERM": "dumb", "LAKELEDGER_URL": "lake"},
    )
    assert ran.returncode == 0, f"{body}\n{ran.stderr}"
    return ran.stdout


def read_as_profiles(body: str, monkeypatch: pytest.MonkeyPatch, file: Path) -> str:
    """Return the roots that a file of profiles gives names to; one is used by itself."""
    file.write_text(body)
    monkeypatch.setenv("LAKELEDGER_CONFIG", str(file))
    found = [find_profile(each) for each in (None, *profile_names())]
    return "\n".join(each.ledger for each in found if each is not None)


LEFT_OPEN = pytest.mark.filterwarnings(
    # Py4J leaves a socket to the garbage collector.
    "ignore:Exception ignored (in|while finalizing).*socket:pytest.PytestUnraisableExceptionWarning"
)
MARKS = {"spark": (pytest.mark.spark, LEFT_OPEN), "operations": (pytest.mark.long,)}


@pytest.mark.law
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(each, id=each.stem, marks=MARKS.get(each.stem, ()))
        for each in (README, *PAGES)
        if each.stem not in RUN_ELSEWHERE
    ],
)
def test_each_block_runs_and_prints_what_stands_below_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if page.stem == "spark":
        # One JVM does for all tests; the page's own session is that one.
        request.getfixturevalue("spark")
    if "pypaimon import" in page.read_text():
        needs_pypaimon()
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page):
        match block.language:
            case "python":
                printed = ran_python(block.body, namespace, page.name)
            case "sh":
                printed = ran_shell(block.body, request.getfixturevalue("loaded_command"))
            case "toml":
                printed = read_as_profiles(block.body, monkeypatch, tmp_path / "lakeledger.toml")
            case directive if directive.startswith("{"):
                # For the generator of the site, see `tests/test_site.py`.
                continue
            case "sql" | "properties" if page.stem == "spark":
                # `tests/projections/rest/test_spark_page.py` runs these with Iceberg's runtime.
                continue
            case other:
                pytest.fail(f"nothing runs a block of {other!r}: {block.body}")
        if block.shows is not None:
            assert lines(printed) == lines(block.shows), block.body


def lines(text: str) -> list[str]:
    # How large a Parquet file becomes is its writer's business.
    return [_SIZE.sub("a size", each.rstrip()) for each in text.strip().split("\n")]


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda each: each.stem)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [each for each in LINK.findall(page.read_text()) if not (page.parent / each).exists()]
    assert not missing


def test_every_page_is_linked_from_the_first() -> None:
    first = README.read_text()
    assert [each.name for each in PAGES if f"ledger/docs/{each.name}" not in first] == []


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("LICENSE", "Apache License"),
        ("docs/security.md", "## Report a vulnerability"),
        ("docs/contributing.md", "## Release"),
        ("docs/index.md", "{toctree}"),
    ],
)
def test_the_first_page_leads_to_what_a_project_owes_its_users(file: str, says: str) -> None:
    assert f"(ledger/{file}" in README.read_text()
    assert says in (ROOT / "ledger" / file).read_text()


def test_the_limits_of_readers_are_those_that_plans_warn_of() -> None:
    page = (ROOT / "ledger" / "docs" / "readers.md").read_text()
    for limits in (iceberg.LIMITS, delta.LIMITS):
        rows = [f"| {each.reader} | {each.version} | {each.says} |" for each in limits]
        assert [each for each in page.splitlines() if each in rows] == rows


NAMED_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_every_promise_names_tests_that_there_are() -> None:
    page = (ROOT / "ledger" / "docs" / "promises.md").read_text()
    promises = re.split(r"^\d+\. ", page.split("\nConcurrent writers")[0], flags=re.MULTILINE)[1:]
    named = NAMED_TEST.findall(page)

    assert len(promises) == 11
    assert [each for each in promises if not NAMED_TEST.search(each)] == []
    assert [
        (file, name)
        for file, name in named
        if f"def {name}(" not in (ROOT / "tests" / file).read_text()
    ] == []


NAMED_FILE = re.compile(r"`((?:\.ci|ledger|projections|tests|benchmarks)/[\w/.]+)`")


def test_contributors_are_sent_to_files_that_there_are() -> None:
    named = NAMED_FILE.findall((ROOT / "ledger" / "docs" / "contributing.md").read_text())

    assert len(named) > 10
    assert [each for each in named if not (ROOT / each).exists()] == []


DECISIONS = ROOT / "ledger" / "DECISIONS.md"
RECORD = re.compile(r"^### (\d+)\. ", re.MULTILINE)
CITED_RECORD = re.compile(
    r"\b(?:decisions?|decision records?|DECISIONS\.md\S*|record) #?(\d+)\b", re.IGNORECASE
)


def test_decision_records_are_numbered_from_one_without_gaps() -> None:
    headings = re.findall(r"^### .*", DECISIONS.read_text(), re.MULTILINE)
    numbers = [int(each) for each in RECORD.findall(DECISIONS.read_text())]

    assert sorted(numbers) == list(range(1, len(headings) + 1))


def test_every_cited_decision_record_exists() -> None:
    known = {int(each) for each in RECORD.findall(DECISIONS.read_text())}
    files = [
        path
        for folder in ("ledger", "projections", "tests", "benchmarks")
        for suffix in ("py", "md")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
    ]
    cited = [
        (path.relative_to(ROOT).as_posix(), int(number))
        for path in (*files, README)
        for number in CITED_RECORD.findall(path.read_text())
    ]

    assert cited
    assert [each for each in cited if each[1] not in known] == []


def test_the_page_of_the_api_is_what_docstrings_say() -> None:
    assert api_page.PAGE.read_text() == api_page.page(), "python -m tests.api_page writes it anew"


def test_the_page_of_the_api_misses_no_public_name_and_no_public_member(tmp_path: Path) -> None:
    names = api_page.ExampleNames(tmp_path)
    wanted = {*api_page.PUBLIC_NAMES}
    for held in (names["lake"], names["orders"], names["orders"].at(), names["audit"]):
        members = {*dir(type(held)), *getattr(held, "__dict__", {})}
        wanted |= {f"{type(held).__name__}.{each}" for each in members if each[0] != "_"}
    rows = re.compile(r"^\| `(\w+)[^`]*` \| .+ \| `([^`]+)` \|$", re.MULTILINE)
    found: dict[str, str] = {}
    for part in api_page.PAGE.read_text().split("\n## ")[1:]:
        of_class = re.match(r"`(\w+)`", part)
        for name, example in rows.findall(part):
            is_member = of_class is not None and name != of_class[1]
            found[f"{of_class[1]}.{name}" if is_member and of_class else name] = example

    assert found.keys() == wanted
    assert found == api_page.EXAMPLES


RAISED = {
    name
    for name, example in api_page.EXAMPLES.items()
    if name.endswith("Error") and "suppress(" not in example
}
RETURNED = {"Ledger": "open", "Table": "table", "TableAt": "at", "TableBranch": "branch"}
"""Classes that calls return, with the name of the call."""


@pytest.mark.parametrize("name", sorted(api_page.EXAMPLES.keys() - RAISED))
def test_an_example_of_the_api_runs_and_uses_what_it_is_of(name: str, tmp_path: Path) -> None:
    example = api_page.EXAMPLES[name]
    assert re.search(rf"\b{RETURNED.get(name, name.rpartition('.')[2])}\b", example)
    exec(compile(example, name, "exec"), {}, api_page.ExampleNames(tmp_path))  # noqa: S102


@pytest.mark.parametrize("name", sorted(RAISED))
def test_an_example_of_an_error_raises_it(name: str, tmp_path: Path) -> None:
    code, names = compile(api_page.EXAMPLES[name], name, "exec"), api_page.ExampleNames(tmp_path)
    with pytest.raises(getattr(ledger, name)) as raised:
        exec(code, {}, names)  # noqa: S102
    assert raised.type is getattr(ledger, name)


@pytest.mark.parametrize(
    "held",
    [
        *(ledger.Ledger, ledger.Table, TableAt, TableBranch),
        *(UpdateSpec, ReplaceOrder, Place, FileNames, transforms),
    ],
)
def test_whatever_a_user_calls_has_an_example_that_runs(held: type | ModuleType) -> None:
    public = {name: each for name, each in vars(held).items() if not name.startswith("_")}
    if isinstance(held, ModuleType):
        public = {name: public[name] for name in held.__all__}
        public = {name: each for name, each in public.items() if isinstance(each, FunctionType)}
    with_examples = {name for name, each in public.items() if ">>>" in (each.__doc__ or "")}
    data = {name for name, each in public.items() if isinstance(each, MemberDescriptorType)}

    assert public.keys() - with_examples - data == set()


NEEDED = {
    r"^from pyiceberg|lakeledger head|to_arrow\(|to_pandas\(|\.head\(": "iceberg",
    r"^from pyiceberg\.catalog\.sql": "sql-sqlite",
    r"^(?:from|import) deltalake": "deltalake",
    r"^(?:from|import) pypaimon": "pypaimon",
    r"^(?:from|import) pyspark": "spark",
    r"^(?:from|import) duckdb|lakeledger sql \"(?:SELECT|WITH|FROM)": "duckdb",
    r"^(?:from|import) polars|to_polars\(": "polars",
    r"^(?:from|import) opentelemetry": "otel",
    r"lakeledger (?:serve|ui)(?![\w-])": "serve",
    r"lakeledger report\b|\.report\(": "report",
}
"""Extras and packages that blocks need, by a pattern of the code that needs them."""
INSTALLED = re.compile(r"pip install (?P<what>.+)")


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda each: each.stem)
def test_a_guide_says_what_to_install_for_its_blocks(page: Path) -> None:
    if page.stem in {"api", "python-api", "command-line"}:
        pytest.skip("a reference: its examples are of every extra")
    text = page.read_text()
    code = "\n".join(each.body for each in blocks(page))
    said = " ".join(each["what"] for each in INSTALLED.finditer(text))

    missing = [
        name
        for pattern, name in NEEDED.items()
        if re.search(pattern, code, re.MULTILINE) and not re.search(rf"\b{name}\b", said)
    ]

    assert missing == []


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda each: each.stem)
def test_what_a_guide_installs_works_in_a_checkout(page: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    said = [each["what"] for each in INSTALLED.finditer(page.read_text())]
    named = [extra for each in said for extra in re.findall(r"\.\[([\w,]+)\]", each)]

    # No index has the package yet.
    assert [each for each in said if "lakeledger[" in each] == []
    assert {one for each in named for one in each.split(",")} <= extras.keys()
