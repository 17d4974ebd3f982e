"""Which tables there are in a folder or a catalog, for those who import them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from ledger.model.errors import InvalidInputError, NotFoundError, StoreError
from projections.importing.files import SourceFiles

IsTable = Callable[[SourceFiles, str], bool]
"""Says whether a folder is a table of the format, whole or broken."""


@frozen
class FoundTable:
    """A table of others.

    Attributes:
        database: What its source calls the database that it is in.
        name: And itself.
        source: What to import it by.
    """

    database: str
    name: str
    source: str

    def called(self, database: str | None) -> str:
        """Return its name in a ledger: `database.table`, in its own database when None."""
        return f"{database or self.database}.{self.name}"


def has_folder(*names: str) -> IsTable:
    """Return how tables of a format are known: by folders of these names in them."""

    def is_table(files: SourceFiles, folder: str) -> bool:
        return any(_is_there(files, f"{folder}/{each}") for each in names)

    return is_table


def _is_there(files: SourceFiles, folder: str) -> bool:
    try:
        files.names(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # Importing it will say why.
        return True
    return True


def tables_below(files: SourceFiles, root: str, is_table: IsTable) -> list[FoundTable]:
    """Return the tables in a folder, or in the folders in it, which stand for databases then.

    A database's folder may end in `.db`, as Hive's and Paimon's do.

    Args:
        files: Reads them.
        root: The folder.
        is_table: Knows one of the format.

    Raises:
        NotFoundError: There is no such folder, or no table in it.
        InvalidInputError: It is a table itself.
        StoreError: It may not be listed.
    """
    if is_table(files, root):
        raise InvalidInputError(f"{root} is a table: say what it is to be called, DATABASE.TABLE")
    try:
        names = _shown(files.names(root))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"there is no folder {root}") from error
    except OSError as error:
        raise StoreError(f"{root} cannot be listed: {error}") from error
    found = list(_found(files, root, names, is_table))
    if not found:
        raise NotFoundError(f"{root} holds no such table, nor do the folders in it")
    return found


def _found(
    files: SourceFiles, root: str, names: list[str], is_table: IsTable
) -> Iterator[FoundTable]:
    for name in names:
        folder = f"{root}/{name}"
        if is_table(files, folder):
            yield FoundTable(_database(root), name, folder)
            continue
        try:
            inside = _shown(files.names(folder))
        except OSError:
            # A file, or a folder of somebody else's.
            continue
        for each in inside:
            if is_table(files, f"{folder}/{each}"):
                yield FoundTable(_database(folder), each, f"{folder}/{each}")


def _database(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2].removesuffix(".db")


def _shown(names: list[str]) -> list[str]:
    return [each for each in names if each[0] not in "._"]
