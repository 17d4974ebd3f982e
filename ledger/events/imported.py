"""Paimon's and Delta's parts of events, for imported tables.

Snapshots, tags, expiry and changes of columns are said by the events that every table has, schemas
under their own ids and what a rollback took away by those of tables that were born in Iceberg.

Source: Paimon's file layout.

Their snapshots, columns and layouts are said by the events that every table has; what is kept here
is how far the source was followed, and Delta's own words for the table as a whole.

Source: the Delta transaction protocol.
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


class DeltaBirth(
    Struct,
    frozen=True,
    rename="camel",
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
    tag="delta",
):
    """Where a table that comes from Delta comes from.

    `source` says whose it is, without secrets; `table_id` is the id of its first metadata there.
    """

    source: str
    table_id: str


class DeltaFollowed(Record, frozen=True, tag="syncDelta", kw_only=True):
    """All that a version of the source says has come in, up to and with this transaction.

    `timestamp_millis` is its own; the time of effect may be later, since that never goes back.
    `sha256` is of its commit file, in hex; absent where only a checkpoint told of it. `protocol`
    and `metadata` are the JSON that stands there, where it is new. `columns` gives the columns that
    are new their field ids, by the path of their physical names. `txns` are how far writers with
    keys of their own have come, where that is new. `operation` is what the source calls what was
    done; all else that it says of the commit is a property, which may be erased.
    """

    delta_version: int
    timestamp_millis: int
    sha256: str | UnsetType = UNSET
    protocol: str | UnsetType = UNSET
    metadata: str | UnsetType = UNSET
    columns: dict[str, int] | UnsetType = UNSET
    txns: dict[str, int] | UnsetType = UNSET
    operation: str | UnsetType = UNSET
