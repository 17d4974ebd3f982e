"""What the names of older schemas meant, as a file beside the log says it, against the log.

Readers without field ids are answered by it, so that a wrong one would refuse what is right, or let
a name mean two things.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from ledger.history.past import kept_names, names_made
from ledger.history.verifying.finding import FROM_BACKUP, REPAIR, Finding
from ledger.log.caches.checkpoint import Head
from ledger.log.codec import digest
from ledger.log.travel import at_version
from ledger.model.errors import LedgerError

if TYPE_CHECKING:
    from ledger.history.verifying.caches.compared import Caches


def name_findings(caches: Caches[Any, Any], wrong: AbstractSet[str]) -> Iterator[Finding]:
    """Yield what is wrong with the file of a table's names; that there is none is fine.

    Args:
        caches: The stream's, whose log was found to fit.
        wrong: The keys of caches that are missing or do not fit.
    """
    store, layout = caches.subject.store, caches.subject.layout
    key = layout.names
    body = store.read(key)
    if body is None:
        return
    found = kept_names(body)
    commit = None if found is None else store.read(layout.commit(found.version))
    if found is not None and commit is None:
        said = f"this was made from version {found.version}, which the log does not have"
        yield Finding("damage", said, key, found.version)
        return
    if found is not None and commit is not None and digest(commit) != found.head:
        said = "the names were made from another commit of that version"
        advice = f"the log was changed: {FROM_BACKUP}"
        yield Finding("damage", said, key, found.version, advice)
        return
    log = caches.from_log(wrong)
    log.refresh()
    head = log.head if found is None else Head(at_version(log, found.version), found.head)
    try:
        ids = head.state.named_schema_ids if found is None else found.schema_ids
        right = names_made(log, ids, head)
    except LedgerError:
        # It says that it is of schemas that there never were.
        right = names_made(log, head.state.named_schema_ids, head)
    if right != body:
        said = "what the names of older schemas meant is other than the log makes it"
        remedy = ((key, right),) if caches.mends else ()
        yield Finding("derived", said, key, head.state.version, REPAIR, remedy)
