"""A folder of a Paimon table as a dict of texts, changed as Paimon's own managers change it.

Source: Paimon's FileSystemBranchManager, TagManager and RollbackHelper classes.
"""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field

MAIN = "main"
Files = dict[str, str]


def _trimmed(tag: str) -> str:
    """Return the text of the snapshot in a tag."""
    lines = [each for each in tag.splitlines() if '"tag' not in each]
    lines[-2] = lines[-2].removesuffix(",")
    return "\n".join(lines)


@define
class FolderModel:
    """The files of each line, by path below its folder.

    Attributes:
        lines: The lines by name; `main` always exists.
    """

    lines: dict[str, Files] = field(factory=lambda: {MAIN: {}})

    def numbers(self, line: str, what: str) -> list[int]:
        """Return the ids of a line's schemas or snapshots, ascending."""
        start = f"{what}/{what}-"
        found = (each.removeprefix(start) for each in self.lines[line] if each.startswith(start))
        return sorted(map(int, found))

    def read(self, line: str, path: str) -> Any:
        return json.loads(self.lines[line][path])

    def tags(self, line: str) -> dict[str, int]:
        """Return the snapshot ids of a line's tags."""
        paths = [each for each in self.lines[line] if each.startswith("tag/tag-")]
        return {each.removeprefix("tag/tag-"): self.read(line, each)["id"] for each in paths}

    def write(self, line: str, path: str, text: str) -> None:
        self.lines[line][path] = text

    def delete_tag(self, line: str, name: str) -> None:
        del self.lines[line][f"tag/tag-{name}"]

    def rollback(self, line: str, snapshot_id: int) -> None:
        files = self.lines[line]
        for name, tagged in self.tags(line).items():
            if tagged > snapshot_id:
                del files[f"tag/tag-{name}"]
        for each in self.numbers(line, "snapshot"):
            if each > snapshot_id:
                del files[f"snapshot/snapshot-{each}"]

    def create(self, name: str, tag: str | None, line: str) -> None:
        files = self.lines[line]
        made: Files = {}
        last = self.numbers(line, "schema")[-1]
        if tag is not None:
            made[f"tag/tag-{tag}"] = files[f"tag/tag-{tag}"]
            snapshot = self.read(line, f"tag/tag-{tag}")
            path, last = f"snapshot/snapshot-{snapshot['id']}", snapshot["schemaId"]
            made[path] = files[path] if path in files else _trimmed(files[f"tag/tag-{tag}"])
        for each in self.numbers(line, "schema"):
            if each <= last:
                made[f"schema/schema-{each}"] = files[f"schema/schema-{each}"]
        self.lines[name] = made

    def rename(self, name: str, to_name: str) -> None:
        self.lines[to_name] = self.lines.pop(name)

    def drop(self, name: str) -> None:
        del self.lines[name]

    def forward(self, name: str, line: str) -> None:
        files = self.lines[line]
        first = self.numbers(name, "snapshot")[0]
        schema_id = self.read(name, f"snapshot/snapshot-{first}")["schemaId"]
        gone = [
            *(f"snapshot/snapshot-{n}" for n in self.numbers(line, "snapshot") if n >= first),
            *(f"schema/schema-{n}" for n in self.numbers(line, "schema") if n >= schema_id),
            *(f"tag/tag-{tag}" for tag, each in self.tags(line).items() if each >= first),
        ]
        for each in gone:
            del files[each]
        files |= self.lines[name]
        # Paimon would leave a gap in the ids here, where only a tag has a snapshot.
        for tag, number in self.tags(name).items():
            path = f"snapshot/snapshot-{number}"
            if path not in files and number > self.numbers(line, "snapshot")[0]:
                files[path] = _trimmed(files[f"tag/tag-{tag}"])

    def has_other_tagged_snapshot(self, name: str, line: str) -> bool:
        """Return whether a tag of a branch names another snapshot than the line has of its id."""
        files, branch = self.lines[line], self.lines[name]
        for tag, number in self.tags(name).items():
            path = f"snapshot/snapshot-{number}"
            tags = [f"tag/tag-{each}" for each, it in self.tags(line).items() if it == number]
            known = next((files[each] for each in (path, *tags) if each in files), None)
            uuid = json.loads(branch[f"tag/tag-{tag}"])["uuid"]
            if path not in branch and known is not None and json.loads(known)["uuid"] != uuid:
                return True
        return False
