"""CatalogHandle: reading a ledger's catalog, and the way in for all that is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ledger.commit_options import CommitOptions, fresh_id, request_of
from ledger.events.catalog_events import CatalogEvent
from ledger.events.commit import NEWEST_FORMAT, OLDEST_FORMAT, Commit
from ledger.evolution.catalog_record import CatalogStream
from ledger.evolution.catalog_state import EMPTY_CATALOG, CatalogState
from ledger.log.append import Appender
from ledger.log.landing import Draft, Unknown, land
from ledger.log.request import Appended, Request
from ledger.log.stream_log import StreamLog
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import (
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    StoreError,
    UpgradeRequiredError,
)
from ledger.stores import Store
from ledger.table_setting import TableSetting

if TYPE_CHECKING:
    from ledger.evolution.catalog_request import CatalogRequest

T = TypeVar("T")

_ROOT_KEY = "_ledger/ledger.json"


class _Root(msgspec.Struct, frozen=True, rename="camel"):
    """The file `_ledger/ledger.json`, written once: the format that the ledger began with."""

    format: int
    ledger_id: str


_ROOT = msgspec.json.Decoder(_Root)


class CatalogHandle:
    """One ledger's catalog stream; `Ledger` is what a user holds."""

    def __init__(self, setting: TableSetting) -> None:
        self._setting = setting
        self._store: Store = setting.store
        self.log: StreamLog[CatalogState, CatalogEvent] = StreamLog(
            setting.store, "_ledger", CatalogStream(), setting.gate
        )
        self._appender: Appender[CatalogState, CatalogEvent] = Appender(
            self.log, setting.now_millis, setting.patience
        )
        self.ledger_id = self._read_root()

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere it is opened anew: threads and what was read stay here.
        return type(self), (self._setting,)

    @property
    def url(self) -> str:
        """The root's canonical URL."""
        return self._store.url

    def _read_root(self) -> str | None:
        body = self._store.read(_ROOT_KEY)
        if body is None:
            return None
        try:
            root = _ROOT.decode(body)
        except msgspec.DecodeError as error:
            raise DamagedLogError(f"{_ROOT_KEY} is no ledger's root: {error}", _ROOT_KEY) from error
        if root.format > NEWEST_FORMAT:
            raise UpgradeRequiredError(
                f"{self.url} has format {root.format}; this version reads up to {NEWEST_FORMAT}: "
                "upgrade lakeledger"
            )
        if root.format < OLDEST_FORMAT:
            raise DamagedLogError(
                f"{_ROOT_KEY} has format {root.format}, which there never was", _ROOT_KEY
            )
        self._setting.gate.begin(root.format)
        return root.ledger_id

    def refuse_lost_root(self) -> None:
        """Refuse a place whose root file is gone while its log is there.

        Raises:
            DamagedLogError: It is such a place.
        """
        if self.ledger_id is None and self._store.exists(self.log.layout.commit(0)):
            # Whoever began the log wrote the root before.
            self.ledger_id = self._read_root()
            if self.ledger_id is None:
                raise DamagedLogError(
                    f"{self.url} has a catalog's log, but {_ROOT_KEY} is missing, and a new one "
                    "would give the ledger another identity. Restore the file from a backup; "
                    "nothing was written",
                    _ROOT_KEY,
                )

    def init(self) -> str:
        """Write the root's file if it is not there; return the ledger's id.

        Raises:
            DamagedLogError: It is not there, but a log is: that is no empty place.
            StoreError: The place cannot hold a ledger, or did not answer; no commit was written.
        """
        self.refuse_lost_root()
        if self.ledger_id is None:
            body = msgspec.json.encode(_Root(NEWEST_FORMAT, fresh_id())) + b"\n"
            outcome = land(self._store, Draft(_ROOT_KEY, body, 0), self._setting.patience)
            if isinstance(outcome, Unknown):
                raise StoreError(
                    f"{self.url}/{_ROOT_KEY}: the store gave no answer ({outcome.cause}); whether "
                    "the ledger has begun is unknown, and no commit was written. Ask again"
                ) from outcome.cause
            self.ledger_id = self._read_root()
        return self.ledger_id or ""

    @property
    def state(self) -> CatalogState:
        """The newest state, after reading what others appended since the last look."""
        state = self.log.refresh() or EMPTY_CATALOG
        self._setting.gate.learn(state.format)
        return state

    @property
    def format(self) -> int:
        """The newest format of commits that the ledger takes: a new ledger's is the newest."""
        self.log.refresh()
        return self.log.format

    @takes(first=its.whole)
    def events(self, first: int = 0) -> Iterator[Commit[CatalogEvent]]:
        """Yield the catalog's commits from `first` on."""
        return (read.commit for read in self.log.commits(first, self.state.version))

    @takes(commit_id=its.text)
    def find_commit(self, commit_id: str) -> Commit[CatalogEvent] | None:
        """Return the catalog's commit that holds what was asked under an id; see `Table`'s."""
        self.log.refresh()
        return self.log.find_commit(commit_id)

    def _request(self, asked: Any, options: CommitOptions) -> Request:
        return request_of(options, asked=asked, default_author=self._setting.author)

    def _commit(
        self, make: Callable[[], CatalogRequest | None], request: Request
    ) -> Appended[CatalogState]:
        from ledger.birth import NOTHING
        from ledger.evolution.catalog_decide import CatalogIntent

        self.init()
        landed = self._appender.landed_before(request)
        if landed is not None:
            return landed
        self.log.refresh()
        wanted = make()
        return self._appender.append(NOTHING if wanted is None else CatalogIntent(wanted), request)

    def _ask(self, request: CatalogRequest, options: CommitOptions) -> Appended[CatalogState]:
        asked = [type(request).__name__, request]
        return self._commit(lambda: request, self._request(asked, options))

    def _after(self, request: Request, version: int, rest: Callable[[], T]) -> T:
        """Do the rest of what a commit began that has landed; nothing makes that a failure.

        Raises:
            CommitUnknownError: The store does not answer, or the rest was refused for now.
        """
        failure: Exception | None = None
        try:
            for _ in self._setting.patience.attempts():
                try:
                    return rest()
                except OSError as error:
                    failure = error
        except (CommitConflictError, StoreError) as error:
            failure = error
        raise CommitUnknownError(
            f"commit {request.commit_id} has landed in version {version}, but what follows from "
            "it could not be done or read; whoever opens the table or looks at the view next "
            "goes on from there, and asking again with the same commit_id= is safe",
            request.commit_id,
            version,
        ) from failure

    def _events_of(self, version: int) -> Iterator[CatalogEvent]:
        for transaction in self.log.commit_at(version).transactions:
            yield from transaction.events
