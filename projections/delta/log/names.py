"""Names of the files in `_delta_log`: of a version alone, as the protocol gives them."""

from __future__ import annotations

import re

FOLDER = "_delta_log"
"""The folder whose files the ledger projects."""

HINT = f"{FOLDER}/_last_checkpoint"
"""The hint that names the newest checkpoint."""

_VERSION = re.compile(rf"{FOLDER}/(\d{{20}})(\.json|\.checkpoint\.parquet)", re.ASCII)
_CHECKPOINT = ".checkpoint.parquet"


def commit_path(version: int) -> str:
    """Return where a version's commit is, below the table's location.

    >>> commit_path(7)
    '_delta_log/00000000000000000007.json'
    """
    return f"{FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """Return where a version's checkpoint is, if it has one."""
    return f"{FOLDER}/{version:020d}{_CHECKPOINT}"


def version_of(path: str) -> int | None:
    """Return the version that a commit or checkpoint is of; None for any other file."""
    found = _VERSION.fullmatch(path)
    return int(found[1]) if found else None


def is_checkpoint(path: str) -> bool:
    """Whether a path is a checkpoint's."""
    return version_of(path) is not None and path.endswith(_CHECKPOINT)
