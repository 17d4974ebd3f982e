"""What Paimon's files say and the ledger's own events do not: tables that are born there.

Snapshots, tags, expiry and changes of columns are said by the events that every table has, schemas
under their own ids and what a rollback took away by those of tables that were born in Iceberg.

Source: Paimon's file layout.
"""

from msgspec import UNSET, Struct, UnsetType

from ledger.events.base import Record


class PaimonBirth(
    Struct,
    frozen=True,
    rename="camel",
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
    tag="paimon",
):
    """Where a table that comes from Paimon comes from.

    `source` says whose it is, without secrets; `location` is its folder there, below which its
    engines' manifests and data files stay; `schema_id` is the id of its first schema.
    """

    source: str
    location: str
    schema_id: int = 0


class PaimonBranchUpdated(Record, frozen=True, tag="updateBranch", kw_only=True):
    """A branch of a Paimon table has these files now, and those no more.

    A branch has schemas, snapshots and tags of its own, whose ids are those of the main line over
    again. `added` are their files' texts, by their paths below the branch's folder. A branch
    without files is gone.
    """

    branch_name: str
    added: dict[str, str] | UnsetType = UNSET
    removed: tuple[str, ...] = ()
