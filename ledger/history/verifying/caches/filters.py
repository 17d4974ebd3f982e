"""The filters of keys beside a log, compared with what the log makes them.

Each says itself how far it goes, and is right as far as that: whoever was killed between two of
them, or was older than they are, leaves them behind the checkpoints.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from attrs import define, field

from ledger.history.verifying.caches.compared import Caches
from ledger.history.verifying.finding import REPAIR, Finding
from ledger.log.caches.filters import KeyFilter, Layer, layers
from ledger.log.caches.lookup import Lookup
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.stream_log import StreamLog


def filter_findings(
    caches: Caches[Any, Any], boundary: int, wrong: AbstractSet[str]
) -> Iterator[Finding]:
    """Yield what is wrong with a stream's filters.

    Args:
        caches: The stream's, whose indexes were compared.
        boundary: The newest checkpoint's version that was reached.
        wrong: The keys of caches that are missing or do not fit.
    """
    log: StreamLog[Any, Any] = caches.from_log(wrong) if wrong else caches.subject.log
    for layer in layers(boundary):
        yield from _Comparison(caches, log.lookup, layer).findings()


@define
class _Comparison:
    """One layer's filter and its cuts beside what they should be."""

    caches: Caches[Any, Any]
    lookup: Lookup[Any]
    layer: Layer
    _made: dict[int, dict[str, KeyFilter]] = field(factory=dict)

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong; all that is not there is one finding."""
        store = self.caches.subject.store
        nothing = KeyFilter(0, array("I"))
        there = {key: store.read(key) for key, _ in self.lookup.filters.files(self.layer, nothing)}
        if not self.caches.mends and set(there.values()) == {None}:
            yield self._late([*there])
            return
        late: list[str] = []
        for key, body in there.items():
            found = None if body is None else KeyFilter.from_bytes(body)
            if body is None or (found is not None and self._is_behind(key, found)):
                late.append(key)
            elif found != self._right(self.layer.last)[key] and not self._is_ahead(found):
                said = "the filter of keys is other than the log makes it"
                yield Finding("derived", said, key, self.layer.last, REPAIR, self._anew([key]))
        if late:
            yield self._late(late)

    def _right(self, last: int) -> dict[str, KeyFilter]:
        """Return the layer's filter and its cuts, by their keys, as they go up to a version."""
        if last not in self._made:
            layer = self.layer._replace(last=last)
            whole = self.lookup.named.filter_made(layer)
            self._made[last] = dict(self.lookup.filters.files(layer, whole))
        return self._made[last]

    def _is_behind(self, key: str, found: KeyFilter) -> bool:
        is_shorter = self.layer.first <= found.last < self.layer.last
        is_at_checkpoint = not found.last % CHECKPOINT_INTERVAL
        return is_shorter and is_at_checkpoint and found == self._right(found.last)[key]

    def _is_ahead(self, found: KeyFilter | None) -> bool:
        """Whether somebody has gone on since, so that a filter is of what was not looked at."""
        subject = self.caches.subject
        return (
            found is not None
            and self.layer.last < found.last < 2**63
            and subject.store.exists(subject.layout.commit(found.last))
        )

    def _late(self, keys: Sequence[str]) -> Finding:
        said = "a filter of keys is not there, or does not go as far as the checkpoints"
        return Finding("absent", said, keys[0], self.layer.last, REPAIR, self._anew(keys))

    def _anew(self, keys: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
        if not self.caches.mends:
            return ()
        right = self._right(self.layer.last)
        return tuple((each, right[each].to_bytes()) for each in keys)
