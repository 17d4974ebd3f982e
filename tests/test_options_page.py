"""The page of options has every option that the code knows, and says what becomes of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ledger.decide import commit_policies as commit_rules
from ledger.decide import schema_rules as whole
from ledger.decide import table_options as personal
from ledger.decide.option_changes import _REMOVE_GUARDS, _SET_GUARDS, IMMUTABLE_OPTIONS
from ledger.decide.table_options import COLUMN_OPTIONS
from ledger.state import declared_formats as rules

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ledger/docs/options.md").read_text()
NAMED = frozenset(re.findall(r"`([^`\n]+)`", PAGE))

KEY = re.compile(r"[a-z][a-z0-9]*(?:[.-][A-Za-z0-9*#]+)+")
READS = frozenset({"get", "text", "number", "flag", "is_true", "choice", "names", "fraction"})

NO_OPTIONS = frozenset(
    {
        # What options are set to: merge engines, modes of scans, indexes, catalogs.
        *("bloom-filter", "first-row", "full-compaction", "partial-update", "per-file"),
        *("compacted-full", "from-creation-timestamp", "from-file-creation-time", "from-snapshot"),
        *("from-snapshot-full", "from-timestamp", "latest-delta", "latest-full", "range-bitmap"),
        *("hadoop-catalog", "hive-catalog", "rest-catalog", "table-location", "shared-shredding"),
        "values-time",
        # Parts of keys, which the page lists behind `fields.NAME.`.
        *("aggregate-function", "ignore-retract", "list-agg-delimiter", "map.storage-layout"),
        *("map.shared-shredding.max-columns", "map.shared-shredding.column-placement-policy"),
        # Older or general words that mean another key, or the family of one.
        *("default-aggregate-function", "re-typed", "variant.shredding", "fields.NAME.NAME"),
    }
)


def families(key: str) -> str:
    """A key as the page writes it: NAME for a column, whatever a column is called in the code."""
    return re.sub(r"\{[a-z]*\}", "NAME", key)


def declared() -> set[str]:
    """The options that tables of the code declare."""
    own = {
        value
        for room in (rules, personal)
        for name, value in vars(room).items()
        if name.endswith("_OPTION")
    }
    return {
        *own,
        *commit_rules._RULES,
        f"{commit_rules.OWNERS}NAME",
        *IMMUTABLE_OPTIONS,
        *_SET_GUARDS,
        *_REMOVE_GUARDS,
        *whole._NAMED,
        *(families(each.key) for each in COLUMN_OPTIONS),
    } - {commit_rules.OWNERS}


def written(path: Path) -> Iterator[str]:
    """Yield the texts of a module that look like options, with NAME where one is put in."""
    inside = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(each) for each in node.values}
            parts = [
                str(each.value) if isinstance(each, ast.Constant) else "NAME"
                for each in node.values
            ]
            yield families("".join(parts))
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield families(str(node.value))


def constants_of(paths: Iterable[Path]) -> dict[str, object]:
    """Return the constants of some modules, by name: one may be imported from another."""
    return {
        target.id: node.value.value
        for path in paths
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def read_elsewhere(path: Path, constants: Mapping[str, object]) -> Iterator[str]:
    """Yield what a module asks `options` for."""
    text = path.read_text()
    if "schema.options" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in READS
            and ast.unparse(node.func.value).endswith("schema.options")
            and node.args
        ):
            (key, *_) = node.args
            name = ast.unparse(key).rpartition(".")[2]
            found = key.value if isinstance(key, ast.Constant) else constants.get(name)
            if isinstance(found, str):
                yield found


def test_every_option_that_a_table_of_the_code_declares_is_on_the_page() -> None:
    assert declared() - NAMED == set()


def test_every_option_that_a_rule_mentions_is_on_the_page() -> None:
    rules = "*_rules.py", "*option*.py", "format_*.py", "personal_columns.py", "commit_policies.py"
    others = "column_*.py", "rule_rows.py", "schema_*.py", "table_creation.py"
    paths = [path for name in (*rules, *others) for path in (ROOT / "ledger/decide").glob(name)]
    paths.append(ROOT / "ledger/state/declared_formats.py")
    found = {each for path in paths for each in written(path) if KEY.fullmatch(each)}

    assert len(found) > 100
    assert found - NAMED - NO_OPTIONS == set()


def test_every_option_that_anything_reads_is_on_the_page() -> None:
    paths = [path for room in ("ledger", "projections") for path in (ROOT / room).rglob("*.py")]
    constants = constants_of(paths)
    found = {each for path in paths for each in read_elsewhere(path, constants)}

    assert {"partition.legacy-name", "write.metadata.previous-versions-max"} <= found
    assert found - NAMED == set()


def section(title: str) -> frozenset[str]:
    text = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    return frozenset(re.findall(r"`([^`\n]+)`", text))


def test_what_stays_while_there_are_snapshots_is_what_is_refused() -> None:
    guards = {"bucket", "deletion-vectors.enabled", "ignore-delete", "ignore-update-before"}
    words = {"true", "deletion-vectors.modifiable"}

    assert {*_SET_GUARDS, *_REMOVE_GUARDS} == {*guards, "clustering.columns"}
    assert section("Options fixed by the first snapshot") - words == {
        *IMMUTABLE_OPTIONS,
        *_SET_GUARDS,
    }


def test_what_follows_a_rename_is_what_the_code_carries() -> None:
    said = section("Options that follow column renames")
    carried = {families(each.key) for each in COLUMN_OPTIONS if each.carried or each.followed}
    by_name = {families(each.key) for each in COLUMN_OPTIONS if each.named}

    assert said - {"paimon"} == carried | by_name
