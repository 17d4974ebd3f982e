"""Contents of a disk after a loss of power: what was synced, and any part of what was not.

A `Recorder` writes down what a `LocalStore` does to files and folders, and does it for real but
for the syncs. `Disk` says what may be left of that: every name that its folder's sync has not
covered may be there or not, or back if it was taken away, in any combination; content that was not
synced may be empty, half or whole. That is less than file systems promise, so what survives here
survives there.
"""
# ruff: noqa: PTH118, PTH119, PTH120 - the paths of system calls

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import pytest
from attrs import define, field, frozen

from ledger.stores.base import is_key

Kind = Literal["mkdir", "name", "rename", "unname", "write", "sync", "sync folder", "ack"]
MOST_SUBSETS: Final = 16
_NAMING: Final = ("mkdir", "name", "rename", "unname")


@frozen
class Step:
    """One thing that was done.

    Attributes:
        kind: What.
        folder: The folder whose names it changes or syncs.
        name: The name it is about; for "ack", the operation that was acknowledged.
        inode: The file's number.
        body: What was written.
        old: The name that a rename takes away.
    """

    kind: Kind
    folder: str = ""
    name: str = ""
    inode: int = 0
    body: bytes = b""
    old: str = ""


@define
class Recorder:
    """The steps done, in order; `on_step` is called before each, and may raise.

    Attributes:
        root: The folder that is looked at.
        steps: What was done in it.
    """

    root: str
    steps: list[Step] = field(factory=list)
    on_step: Callable[[], None] = lambda: None
    _real: dict[str, Any] = field(factory=dict)
    _folders: dict[int, str] = field(factory=dict)

    def acknowledge(self, name: str) -> None:
        self.steps.append(Step("ack", name=name))

    @contextmanager
    def recording(self) -> Iterator[None]:
        names = ("open", "close", "write", "fsync", "link", "replace", "unlink", "mkdir")
        self._real = {name: getattr(os, name) for name in names}
        with pytest.MonkeyPatch.context() as patch:
            for name in names:
                patch.setattr(os, name, getattr(self, f"_{name}"))
            yield

    def _open(self, path: Any, flags: int, *rest: Any, **names: Any) -> int:
        creates = bool(flags & os.O_EXCL)
        if creates:
            self.on_step()
        descriptor = int(self._real["open"](path, flags, *rest, **names))
        if creates:
            folder = self._folders[names["dir_fd"]]
            inode = os.fstat(descriptor).st_ino
            self.steps.append(Step("name", folder, path, inode))
        elif flags & os.O_DIRECTORY:
            self._folders[descriptor] = path
        return descriptor

    def _close(self, descriptor: int) -> None:
        self._folders.pop(descriptor, None)
        self._real["close"](descriptor)

    def _write(self, descriptor: int, body: Any) -> int:
        self.on_step()
        written = int(self._real["write"](descriptor, body))
        inode = os.fstat(descriptor).st_ino
        self.steps.append(Step("write", inode=inode, body=bytes(body)[:written]))
        return written

    def _fsync(self, descriptor: int) -> None:
        self.on_step()
        if descriptor in self._folders:
            self.steps.append(Step("sync folder", self._folders[descriptor]))
        else:
            self.steps.append(Step("sync", inode=os.fstat(descriptor).st_ino))

    def _link(self, source: str, name: str, **names: Any) -> None:
        self.on_step()
        self._real["link"](source, name, **names)
        folder = self._folders[names["dst_dir_fd"]]
        inode = os.stat(name, dir_fd=names["dst_dir_fd"]).st_ino
        self.steps.append(Step("name", folder, name, inode))

    def _replace(self, source: str, name: str, **names: Any) -> None:
        self.on_step()
        self._real["replace"](source, name, **names)
        folder = self._folders[names["dst_dir_fd"]]
        inode = os.stat(name, dir_fd=names["dst_dir_fd"]).st_ino
        self.steps.append(Step("rename", folder, name, inode, old=source))

    def _unlink(self, path: str, **names: Any) -> None:
        self.on_step()
        self._real["unlink"](path, **names)
        if names:
            self.steps.append(Step("unname", self._folders[names["dir_fd"]], path))
        else:
            self.steps.append(Step("unname", os.path.dirname(path), os.path.basename(path)))

    def _mkdir(self, path: str, *rest: Any) -> None:
        self.on_step()
        self._real["mkdir"](path, *rest)
        self.steps.append(Step("mkdir", os.path.dirname(path), os.path.basename(path)))


@define
class Disk:
    """A disk under the steps that were recorded.

    Attributes:
        root: The store's root.
        before: What was there, synced, before the first step.
        steps: What was done since.
    """

    root: str
    before: Mapping[str, bytes]
    steps: Sequence[Step]

    def after(self, end: int, rng: random.Random) -> Iterator[dict[str, bytes]]:
        """Yield what may be stored, by key, if the power is lost after the first `end` steps."""
        unsynced = self._unsynced_names(end)
        files = self._unsynced_files(end)
        subsets = _subsets(len(unsynced), rng)
        for kept, share in itertools.product(subsets, (0.0, 0.5, 1.0) if files else (1.0,)):
            lost = {number for number, is_kept in zip(unsynced, kept, strict=True) if not is_kept}
            yield self._stored(end, lost, files, share)

    def _unsynced_names(self, end: int) -> list[int]:
        """Return the steps whose names may be lost; drafts' own names hide nothing and are not."""
        found: list[int] = []
        for number, step in enumerate(self.steps[:end]):
            if step.kind == "sync folder":
                found = [each for each in found if self.steps[each].folder != step.folder]
            elif step.kind in _NAMING and not step.name.startswith(".tmp-"):
                found.append(number)
        return found

    def _unsynced_files(self, end: int) -> set[int]:
        found: set[int] = set()
        for step in self.steps[:end]:
            if step.kind == "write":
                found.add(step.inode)
            elif step.kind == "sync":
                found.discard(step.inode)
        return found

    def _stored(
        self, end: int, lost: set[int], unsynced: set[int], share: float
    ) -> dict[str, bytes]:
        folders = {os.path.dirname(os.path.join(self.root, key)) for key in self.before}
        folders = {parent for each in folders for parent in _above(each)}
        folders |= set(_above(os.path.dirname(self.root)))
        names: dict[str, int] = {}
        stored = {os.path.join(self.root, key): body for key, body in self.before.items()}
        bodies: dict[int, bytes] = {}
        for number, step in enumerate(self.steps[:end]):
            path = os.path.join(step.folder, step.name)
            if step.kind == "write":
                bodies[step.inode] = bodies.get(step.inode, b"") + step.body
            elif number in lost:
                continue
            elif step.kind == "mkdir":
                folders.add(path)
            elif step.kind in ("name", "rename"):
                names[path] = step.inode
            elif step.kind == "unname":
                names.pop(path, None)
                stored.pop(path, None)
        stored = {os.path.relpath(path, self.root): body for path, body in stored.items()}
        for path, inode in names.items():
            key = os.path.relpath(path, self.root)
            if is_key(key) and set(_above(os.path.dirname(path))) <= folders:
                body = bodies.get(inode, b"")
                stored[key] = body[: int(len(body) * share)] if inode in unsynced else body
        return stored

    def acknowledged(self, end: int) -> list[str]:
        """Return the operations that were acknowledged by then."""
        return [step.name for step in self.steps[:end] if step.kind == "ack"]


def _above(folder: str) -> Iterator[str]:
    """Yield a folder and all above it."""
    while folder not in ("", "/"):
        yield folder
        folder = os.path.dirname(folder)


def _subsets(size: int, rng: random.Random) -> list[tuple[bool, ...]]:
    if 2**size <= MOST_SUBSETS:
        return list(itertools.product((False, True), repeat=size))
    some = [tuple(rng.random() < 0.5 for _ in range(size)) for _ in range(MOST_SUBSETS)]
    return [(False,) * size, (True,) * size, *some]
