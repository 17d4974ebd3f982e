"""The files of a Paimon table, as Paimon's own writers write them.

Others may import:
    `format`       Paimon as a format of tables, which the entry point names
    `materialise`  keeping the files on a store
    `command`      its flags on the command line
    `paths`        what files are called and where they stand, and which a change would write
    `manifests`    manifests and lists
    `files`        the small files
    `rows`         binary rows
    `statistics`   its part in what `lakeledger stats` counts and publishes
    `importing`    tables that others made, coming into the ledger with their history

Inside: `project` is one run over the log, or by `born` of a table that comes from Paimon, whose
engines' manifests it carries on, and by `promoted` of what the ledger adds once it owns it;
`engines` reads what these list; `position` says where it stands, `planned` what a change would
write and leave out, `rules` what Paimon can hold.
"""

from __future__ import annotations

from projections.paimon.files.json import paimon_json
from projections.paimon.files.schema_file import schema_file, schema_from_json, schema_to_json

__all__ = ["paimon_json", "schema_file", "schema_from_json", "schema_to_json"]
