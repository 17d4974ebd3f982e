"""Folders of branches of a served table: new ones, and those of dropped and renamed branches.

A process may die before it removes the files of a dropped branch, and a later branch of its name
gets its folder. Nothing in the files distinguishes the two, so a mark in the folder names the
branch whose files it has. The mark is written last: from then on the folder says which tags there
are.

Consumers are files of engines alone. They go with a branch that is renamed.

Source: Paimon's FileSystemBranchManager and ConsumerManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from projections.outputs import StoreOutputs
from projections.paimon.line_files import Line, Listing, move_away, text_file
from projections.paimon.paths import EARLIEST, LATEST

_MARK: Final = "ledger-branch"
_FILES: Final = ("tag", "snapshot", "schema")
_CONSUMERS: Final = "consumer"


@frozen
class BranchFolder:
    """The contents of a branch's folder.

    Attributes:
        mark: The mark of the branch whose files it has; None if it was never begun.
        listing: Schemas, snapshots and hints.
        paths: All files of the branch.
    """

    mark: str | None
    listing: Listing
    paths: tuple[str, ...]

    @classmethod
    def of(cls, outputs: StoreOutputs) -> BranchFolder:
        """Return those of the folder of a branch."""
        mark = outputs.read(_MARK)
        paths = tuple(path for folder in (*_FILES, _CONSUMERS) for path in outputs.paths(folder))
        listed = frozenset(each for each in paths if each.startswith(("schema/", "snapshot/")))
        return cls(None if mark is None else mark.decode(errors="replace"), Listing(listed), paths)


def begin_branch(
    outputs: StoreOutputs,
    line: Line,
    there: BranchFolder,
    mark: str,
    consumers: Mapping[str, bytes],
) -> None:
    """Write all files of a branch, and remove those of a former branch of its name.

    Others are moved away: they may be of a writer that does not commit to the ledger.

    Args:
        outputs: The folder.
        line: The branch.
        there: The contents of the folder, which were read before the branch's state.
        mark: The mark of the branch.
        consumers: The files of its consumers, by path.
    """
    for path in there.paths:
        folder, _, name = path.partition("/")
        if path in {EARLIEST, LATEST} or folder == _CONSUMERS:
            outputs.remove(path)
        elif name.startswith(f"{folder}-") and path not in line.texts:
            move_away(outputs, path)
    for path, body in consumers.items():
        outputs.restore(path, body)
    # Schemas are last: without one there is no table.
    for path in sorted(line.texts, reverse=True):
        text_file(path, line.texts[path]).write(outputs)
    outputs.restore(_MARK, mark.encode())


def remove_branch(outputs: StoreOutputs) -> None:
    """Remove the files of a branch that does not exist any more."""
    for folder in (*_FILES, _CONSUMERS):
        for path in list(outputs.paths(folder)):
            outputs.remove(path)
    outputs.remove(_MARK)


def read_consumers(outputs: StoreOutputs) -> dict[str, bytes]:
    """Return the files of the consumers of a branch, by path."""
    bodies = ((path, outputs.read(path)) for path in outputs.paths(_CONSUMERS))
    return {path: body for path, body in bodies if body is not None}
