"""Rules of the scan options: one starting point, and the mode that goes with it."""

from __future__ import annotations

from msgspec import Struct

from ledger.evolution.options.reading import TableOptions, whole
from ledger.evolution.refusals import argument
from ledger.evolution.validation.candidate import Candidate

_OLDER_KEYS = {"scan.timestamp-millis": ("log.scan.timestamp-millis",)}
_TIMES = ("scan.timestamp-millis", "scan.timestamp")
_FILE_TIME = "scan.file-creation-time-millis"
_CREATION_TIME = "scan.creation-time-millis"
_SNAPSHOT = "scan.snapshot-id"
_TAG = "scan.tag-name"
_INCREMENTAL = (
    "incremental-between",
    "incremental-between-timestamp",
    "incremental-to-auto-tag",
)


class Mode(Struct, frozen=True):
    """The options of one scan mode.

    Attributes:
        one_of: Exactly one of these must be set; empty when the mode needs none.
        none_of: None of these may be set.
    """

    one_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()


_PLAIN = Mode(none_of=(*_TIMES, _FILE_TIME, _SNAPSHOT, _TAG, *_INCREMENTAL))

MODES = {
    "latest-full": _PLAIN,
    "full": _PLAIN,
    "latest": _PLAIN,
    "compacted-full": _PLAIN,
    "from-creation-timestamp": _PLAIN,
    "latest-delta": Mode(
        none_of=(
            *_PLAIN.none_of,
            _CREATION_TIME,
            "scan.watermark",
            "scan.version",
            "incremental-between-scan-mode",
            "incremental-between-tag-to-snapshot",
        )
    ),
    "from-timestamp": Mode(_TIMES, (_SNAPSHOT, _FILE_TIME, _TAG, *_INCREMENTAL)),
    "from-snapshot": Mode(
        (_SNAPSHOT, _TAG, "scan.watermark"), (*_TIMES, _FILE_TIME, *_INCREMENTAL)
    ),
    "from-snapshot-full": Mode((_SNAPSHOT,), (*_TIMES, _FILE_TIME, _TAG, *_INCREMENTAL)),
    "from-file-creation-time": Mode(
        (_FILE_TIME,), ("scan.timestamp-millis", _SNAPSHOT, _TAG, *_INCREMENTAL)
    ),
    "incremental": Mode(_INCREMENTAL, (_SNAPSHOT, *_TIMES, _FILE_TIME, _TAG)),
}
"""What each `scan.mode` needs and forbids; newer modes add rows."""

BRANCHES = ("scan.fallback-branch", "scan.primary-branch")
"""Reads fall back to one branch, or start from one, but not both. Whether it exists is for those to
check who know the branches."""

_DERIVED = (
    ("from-timestamp", _TIMES),
    ("from-snapshot", (_SNAPSHOT, _TAG, "scan.watermark", "scan.version")),
    ("from-file-creation-time", (_FILE_TIME,)),
    ("from-creation-timestamp", (_CREATION_TIME,)),
    ("incremental", _INCREMENTAL[:2]),
)

_NUMBERS = ("scan.timestamp-millis", _SNAPSHOT, "scan.watermark", _FILE_TIME, _CREATION_TIME)


KEYS = frozenset(
    {
        "scan.mode",
        "log.scan",
        *_NUMBERS,
        *(key for mode in MODES.values() for key in (*mode.one_of, *mode.none_of)),
        *(key for _, keys in _DERIVED for key in keys),
        *(key for older in _OLDER_KEYS.values() for key in older),
    }
)
"""Every option that says where a scan begins; a table without any is scanned whole."""


def scan_mode(candidate: Candidate) -> None:
    """Check that exactly the options of the scan mode are set.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT, naming the mode and the options.
    """
    options = candidate.options
    name = _mode_name(options)
    mode = MODES[name]
    present = [key for key in mode.one_of if _has(options, key)]
    if mode.one_of and len(present) != 1:
        raise argument(f"scan.mode {name} needs exactly one of {list(mode.one_of)}, not {present}")
    for key in mode.none_of:
        if _has(options, key):
            raise argument(f"option {key} cannot be set under scan.mode {name}")


def _mode_name(options: TableOptions) -> str:
    given = options.text("scan.mode", "log.scan")
    asked = "default" if given is None else given.lower()
    if asked != "default":
        if asked not in MODES:
            raise argument(f"option scan.mode={given!r} is unknown: use one of {sorted(MODES)}")
        return asked
    for key in _NUMBERS:
        value = options.text(key, *_OLDER_KEYS.get(key, ()))
        if value is not None:
            whole(key, value, bits=64)
    for name, keys in _DERIVED:
        if any(_has(options, key) for key in keys):
            return name
    return "latest-full"


def _has(options: TableOptions, key: str) -> bool:
    return options.text(key, *_OLDER_KEYS.get(key, ())) is not None
