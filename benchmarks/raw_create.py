"""Lower bound of a commit: creation of one file as a log needs it, by plain system calls."""
# ruff: noqa: PTH108 - the lower bound uses plain system calls

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

BODY = b"x" * 400
"""Contents of about the length of a small commit."""


def durable_create(folder: Path, number: int) -> None:
    """Write a temporary file, fsync it, link it to its name, fsync the folder, unlink the first."""
    _create(folder, number, sync=os.fsync)


def plain_create(folder: Path, number: int) -> None:
    """Do the same without fsync."""
    _create(folder, number, sync=lambda _: None)


def _create(folder: Path, number: int, *, sync: Callable[[int], None]) -> None:
    name = f"{folder}/{number:020d}.json"
    draft = f"{folder}/.tmp-{number}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    os.write(file, BODY)
    sync(file)
    os.close(file)
    os.link(draft, name)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    sync(directory)
    os.close(directory)
    os.unlink(draft)
