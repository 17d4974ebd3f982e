"""Inputs of the fuzzer: the files of a foreign table or export, as changes to a kept valid one.

A seed is a zip file of what a real writer or a projection wrote. A case names its seed and the
files that differ from it, so that a finding is kept in a few hundred bytes.
"""

from __future__ import annotations

import base64
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

CORPUS: Final = Path(__file__).parent / "corpus"
SEEDS: Final = CORPUS / "seeds"

PATH_BYTES: Final = 120
"""Length of the path of every source folder: a table's metadata names it, and in Avro files a name
of another length would not fit."""

LOCATION: Final = "/" + "L" * (PATH_BYTES - 1)
"""Stands for the source folder in the files of seeds and cases."""


@frozen
class Case:
    """One input.

    Attributes:
        seed: The name of the seed; its part before the first `-` is the target.
        changed: The files that differ from the seed, by path; None for one that is absent.
    """

    seed: str
    changed: Mapping[str, bytes | None]

    @property
    def target(self) -> str:
        """The reader of this input: iceberg, delta, paimon, export or parquet."""
        return self.seed.partition("-")[0]

    @property
    def files(self) -> dict[str, bytes]:
        """All files, by path."""
        merged = {**seed_files(self.seed), **self.changed}
        return {path: body for path, body in sorted(merged.items()) if body is not None}

    def with_file(self, path: str, body: bytes | None) -> Case:
        """Return the case with a file replaced, added or removed."""
        changed = {**self.changed, path: body}
        if body == seed_files(self.seed).get(path):
            del changed[path]
        return evolve(self, changed=changed)


@cache
def seed_files(name: str) -> dict[str, bytes]:
    """Return the files of a seed, by path."""
    with zipfile.ZipFile(SEEDS / f"{name}.zip") as archive:
        return {each: archive.read(each) for each in archive.namelist()}


def seed_names() -> list[str]:
    """Return the names of all seeds."""
    return sorted(each.stem for each in SEEDS.glob("*.zip"))


def encoded(case: Case) -> bytes:
    """Return a case as JSON, its text files readable."""
    files = {path: _written(body) for path, body in sorted(case.changed.items())}
    return json.dumps({"seed": case.seed, "files": files}, indent=1).encode() + b"\n"


def decoded(body: bytes) -> Case:
    """Return what `encoded` wrote.

    Raises:
        ValueError: The bytes are something else.
    """
    found = json.loads(body)
    return Case(found["seed"], {path: _read(each) for path, each in found["files"].items()})


def _written(body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _read(said: Any) -> bytes | None:
    if said is None:
        return None
    return said.encode() if isinstance(said, str) else base64.b64decode(said["base64"])


def kept_cases() -> dict[str, Case]:
    """Return the cases of the corpus, by name: the seeds themselves, and what was found."""
    seeds = {each: Case(each, {}) for each in seed_names()}
    found = {each.stem: decoded(each.read_bytes()) for each in sorted(CORPUS.glob("*.json"))}
    return {**seeds, **found}


def source_folder(root: Path) -> Path:
    """Return a folder below a root whose path has the length that metadata has room for."""
    missing = PATH_BYTES - len(str(root)) - 1
    if missing < 1:
        raise ValueError(f"{root} is too long: set TMPDIR to a shorter path")
    return root / ("s" * missing)


@contextmanager
def laid_out(case: Case, root: Path) -> Iterator[Path]:
    """Write the files of a case into a folder of its own for a while.

    Args:
        case: The case.
        root: An empty folder.
    """
    folder = source_folder(root)
    for path, body in case.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body.replace(LOCATION.encode(), str(folder).encode()))
    folder.mkdir(exist_ok=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
