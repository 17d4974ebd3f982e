"""Advice on command lines whose option values lack the shell's quotes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from ledger.cli.changes import pair_of_words, read_column
from ledger.cli.exits import UsageError
from ledger.model.errors import InvalidTypeError

PAIRS = {
    "--column-comment": "PATH=TEXT",
    "--default": "PATH=VALUE",
    "--option": "KEY=VALUE",
    "--partition": "KEY=VALUE",
    "--rename": "OLD=NEW",
    "--set": "KEY=VALUE",
    "--storage-option": "KEY=VALUE",
}
"""Options that take a pair, with its form."""

_PATH_PAIRS = frozenset({"--column-comment", "--default", "--rename"})
"""Options whose pair begins with the path of a column."""

_COLUMNS = frozenset({"--add", "--column", "--type"})
"""Options that take a column definition."""

_PHRASES = _COLUMNS | {"--change", "--comment", "--message", "--move", "--query", "--where"}
"""Options whose values have blanks, and so need quotes in a shell."""

_TEXTS = frozenset({"--change", "--comment", "--message"})
"""Options whose values are not SQL."""

_SINGLE_WORDS = frozenset(
    {"--drop", "--undrop", "--nullable", "--not-null", "--unset", "--partition-key"}
    | {"--primary-key", "--kind", "--drop-dialect"}
)
"""Repeatable options that take a name."""

_KNOWN = _SINGLE_WORDS | _PHRASES | PAIRS.keys()

_OPTION = re.compile(r"-[^\d.]")
_BEFORE_LITERAL = re.compile(r"COMMENT|DEFAULT|LIKE|[=!<>]+", re.IGNORECASE)
_BEFORE_NAME = re.compile(r"AFTER|BEFORE", re.IGNORECASE)


def advise_quotes(line: Sequence[str], extra: Sequence[str]) -> str | None:
    """Return how to write values whose words the shell separated; None if there are none.

    Args:
        line: The command line.
        extra: Words of it that belong to no option and no parameter.

    Example:
        >>> advise_quotes(["alter", "d.t", "--add", "hue", "STRING"], ["STRING"])
        "--add takes one value: write --add 'hue STRING'"
        >>> advise_quotes(["alter", "d.t", "--drop", "a", "b"], ["b"])
        '--drop takes one value: write --drop a --drop b'
    """
    if line[0] == "sql":
        return _advise_statement(line, extra)
    found = [
        (option, words)
        for option, *words in _options_with_words(line)
        if len(words) > 1 and all(each in extra for each in words[1:])
    ]
    known = [each for each in found if each[0] in _KNOWN]
    if not known:
        return None
    first = known[0][0]
    written = " ".join(
        f"{option} {_quote(each)}" for option, words in known for each in _split(option, words)
    )
    return f"{first} takes {PAIRS.get(first, 'one value')}{written and f': write {written}'}"


def _advise_statement(line: Sequence[str], extra: Sequence[str]) -> str | None:
    at = next((i for i in range(2, len(line)) if [*line[i : i + len(extra)]] == [*extra]), 0)
    if not at:
        return None
    statement = " ".join(_sql_words(line[at - 1 : at + len(extra)], name_first=False))
    return f"sql takes one statement: write lakeledger sql {_quote(statement)}"


def _options_with_words(line: Sequence[str]) -> list[list[str]]:
    """Return each option of a command line with the words up to the next option."""
    found: list[list[str]] = []
    for word in line:
        if _OPTION.match(word):
            found.append([word])
        elif found:
            found[-1].append(word)
    return found


def _split(option: str, words: Sequence[str]) -> list[str]:
    """Return the values that words of an option most likely mean; empty if that is unclear."""
    if option in _SINGLE_WORDS or _are_whole_values(option, words):
        return [*words]
    if option in PAIRS:
        names = _sql_words(words[:1], name_first=option in _PATH_PAIRS and "=" not in words[0])
        pair = pair_of_words([*names, *words[1:]], takes_name=option == "--rename")
        return [] if pair is None else [pair]
    if option in _TEXTS:
        return [" ".join(words)]
    return [" ".join(_sql_words(words, name_first=option in _COLUMNS or option == "--move"))]


def _are_whole_values(option: str, words: Sequence[str]) -> bool:
    """Return whether each word can be a value of the option, so that it was meant several times."""
    if option in PAIRS:
        return all(re.match("[^=]+=.", each) for each in words)
    if option == "--change":
        return all(each.startswith("{") for each in words)
    return option in _COLUMNS and all(map(_is_column, words))


def _is_column(text: str) -> bool:
    try:
        read_column(text)
    except (UsageError, InvalidTypeError):
        return False
    return True


def _sql_words(words: Sequence[str], *, name_first: bool) -> Iterator[str]:
    """Yield words of SQL, with the quotes that the shell removed from literals and names."""
    before = "AFTER" if name_first else ""
    for word in words:
        is_split = len(word.split()) > 1
        if word.startswith(("'", "`")):
            yield word
        elif before.upper() == "COMMENT" or (is_split and _BEFORE_LITERAL.fullmatch(before)):
            quoted = word.replace("'", "''")
            yield f"'{quoted}'"
        elif is_split and _BEFORE_NAME.fullmatch(before):
            yield f"`{word}`"
        else:
            yield word
        before = word


def _quote(text: str) -> str:
    """Quote a text for a shell, with double quotes if it has single ones."""
    if "'" not in text or "!" in text:
        return shlex.quote(text)
    escaped = re.sub(r'(["$`\\])', r"\\\1", text)
    return f'"{escaped}"'
