"""Command `verify`.

The files of a format are verified by its part `kept` (see `ledger.formats`), other derived files by
the entry points of group `lakeledger.verifications`. Both are objects with two methods:

- `verify(table)` compares the files with the projection of the log and returns an object with the
  paths `missing`, `changed` and `foreign`, and the error `damage` if the files were projected from
  another log;
- `rebuild(table)` restores them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, Final, Protocol, cast

from attrs import evolve, field, frozen
from cyclopts import Parameter

from ledger.cli.options import LedgerFlags, tables_of
from ledger.cli.output import Screen, progress_reports
from ledger.following.files import freshness
from ledger.formats import having, part, part_if_any
from ledger.history.older import state_at_snapshot
from ledger.history.verifying.spans import Workers
from ledger.history.verifying.subject import FROM_BACKUP, REPAIR, Expected, Finding, Subject
from ledger.history.verifying.surroundings import (
    CatalogedTable,
    CatalogedTables,
    DataFiles,
    ahead,
    catalog_contradictions,
    lost_sidecar_values,
    restore_missing_commits,
)
from ledger.history.verifying.verify import Verification, repair, unmet
from ledger.ledger import Ledger
from ledger.log.request import now_millis
from ledger.model.errors import DamagedLogError, LedgerError, NotFoundError
from ledger.model.names import Identifier
from ledger.model.plugins import load, names
from ledger.opening.context import TableSetting
from ledger.relocation.moving import LocationReference, unfinished_projections
from ledger.state.table import TableState
from ledger.table_handle import TableHandle, handle_of

_Flag = Parameter(negative="", show_default=False)
_QUIET: Final = frozenset({"absent"})
"""Kinds of findings that are ignored in dropped tables."""


@contextmanager
def _show_progress(screen: Screen, what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar, or print progress at intervals if stderr is not a terminal."""
    notice = progress_reports(screen, "{}: {:,} of {:,} commits")
    with screen.progress(what) as bar:

        def report(done: int, of: int) -> None:
            bar(done, of)
            if not sys.stderr.isatty():
                notice(what, done, of)

        yield report


@frozen
class _StreamFinding:
    """Finding in a stream, and if it was repaired."""

    stream: str
    finding: Finding
    repaired: bool

    @property
    def fails(self) -> bool:
        return self.finding.fails and not self.repaired

    def document(self) -> dict[str, Any]:
        finding = self.finding
        facts = {
            "stream": self.stream,
            "kind": finding.kind,
            "what": finding.what,
            "file": finding.file,
            "version": finding.version,
            "advice": finding.advice,
            "repaired": self.repaired,
        }
        return {key: value for key, value in facts.items() if value is not None}


@frozen
class _VerificationRun:
    """Verification of streams of a ledger.

    Attributes:
        lake: Ledger to verify.
        setting: Settings to open tables, including dropped ones.
        repairs: True to restore derived files.
        looks_at_data: True to check data files too.
        screen: Output of progress.
        workers: Processes for long logs.
        expected: Heads recorded elsewhere.
        found: Findings so far.
        verified: Streams verified so far.
    """

    lake: Ledger
    setting: TableSetting
    repairs: bool
    looks_at_data: bool
    screen: Screen
    workers: Workers
    expected: Sequence[Expected]
    found: list[_StreamFinding] = field(factory=list)
    verified: list[tuple[Subject[Any, Any], Verification[Any, Any]]] = field(factory=list)

    def verify_everything(self) -> None:
        """Verify the catalog, and every table that it ever contained."""
        for cataloged in self._verify_catalog():
            self._verify_table(cataloged)
        self._heads()

    def one(self, name: str) -> None:
        """Verify one table and its entries in the catalog.

        Raises:
            NotFoundError: The catalog has no such table.
        """
        cataloged_tables = self._verify_catalog()
        cataloged = cataloged_tables.named(Identifier.parse(name))
        if cataloged is None:
            raise NotFoundError(f"table {name} does not exist; see: lakeledger show")
        del self.verified[:]
        self._verify_table(cataloged)
        self._heads()

    def _verify_catalog(self) -> CatalogedTables:
        cataloged_tables = CatalogedTables()
        subject = Subject("catalog", handle_of(self.lake).log, has_files=False)
        verification = Verification(
            subject, self.expected, cataloged_tables.learn, mends=self.repairs
        )
        self._verify_stream(subject, verification)
        if verification.state is not None:
            self.setting.root_location.learn(verification.state)
        return cataloged_tables

    def _verify_table(self, cataloged: CatalogedTable) -> None:
        table = TableHandle(cataloged.identifier, cataloged.path, self.setting)
        subject = Subject(cataloged.name, table.log, has_files=True)
        verification: Verification[Any, Any] = Verification(
            subject, self.expected, mends=self.repairs, workers=self.workers
        )
        self._verify_stream(
            subject, verification, quiet=_QUIET if cataloged.dropped_millis else frozenset()
        )
        for finding in catalog_contradictions(cataloged, subject, verification):
            self._record_finding(subject, finding)
        if verification.version >= 0 and cataloged.dropped_millis is None:
            self._verify_projections(table, cataloged.name)
            if verification.state is not None:
                self._check_freshness(table, cataloged.name)
        if self.looks_at_data and verification.state is not None and not cataloged.is_purged:
            self._verify_data_files(table, subject, verification.state)

    def _verify_data_files(
        self, table: TableHandle, subject: Subject[Any, Any], state: TableState
    ) -> None:
        with self.screen.progress(f"checking the data files of {subject.name}") as progress:
            table.log.refresh()
            looking = DataFiles(
                table.live,
                partial(state_at_snapshot, table.log),
                table.files_of_engines,
                table.folder,
                self.setting.file_access(table.folder),
            )
            for finding in looking.problems(state, progress):
                self._record_finding(subject, finding)
            for finding in _engine_findings(table, state):
                self._record_finding(subject, finding)

    def _verify_stream(
        self,
        subject: Subject[Any, Any],
        verification: Verification[Any, Any],
        quiet: frozenset[str] = frozenset(),
    ) -> None:
        self.verified.append((subject, verification))
        for finding in (
            restore_missing_commits(subject, self.setting.retry_policy) if self.repairs else ()
        ):
            self.found.append(_StreamFinding(subject.name, finding, repaired=True))
        with _show_progress(self.screen, f"verifying {subject.name}") as progress:
            for finding in verification.run(progress):
                if finding.kind not in quiet:
                    self._record_finding(subject, finding)
        state = verification.state
        if state is not None and state.keeps_outside:
            for finding in lost_sidecar_values(subject, state.version):
                self._record_finding(subject, finding)
        late = None if state is None else ahead(subject, state, now_millis())
        if late is not None:
            self._record_finding(subject, late)

    def _record_finding(self, subject: Subject[Any, Any], finding: Finding) -> None:
        repaired = self.repairs and repair(subject, finding)
        self.found.append(_StreamFinding(subject.name, evolve(finding, remedy=()), repaired))

    def _verify_projections(self, table: TableHandle, name: str) -> None:
        moved = {
            each.format: self._unfinished_finding(table, each)
            for each in unfinished_projections(table)
        }
        for format_name, differing in differences(table):
            findings = [moved[format_name]] if format_name in moved else differing
            derived = any(each.kind == "derived" for each in findings)
            done = self.repairs and derived
            if done:
                rebuild(table, format_name)
            self.found.extend(
                _StreamFinding(name, each, done and each.kind == "derived") for each in findings
            )

    def _unfinished_finding(self, table: TableHandle, tie: LocationReference) -> Finding:
        """Return the finding that files were projected for another location than the table's.

        It is a failure if the ledger is recorded here, since readers of the files are misled.
        Otherwise the move is not recorded yet.
        """
        if self.setting.root_location.is_recorded_at(table.ledger_url):
            one = f"lakeledger project {tie.format} {tie.table}"
            advice = f"complete the move with: lakeledger move, or of these files with: {one}"
            return Finding("derived", tie.what, table.location, None, advice)
        advice = "record the change with: lakeledger move, move --alias or move --copy"
        return Finding("unfinished", tie.what, table.location, None, advice)

    def _check_freshness(self, table: TableHandle, name: str) -> None:
        """Add findings for projections that are behind; they are not failures."""
        for each in freshness(table):
            if each.behind:
                said = f"the {each.format} files are at {each}"
                advice = f"update them with: lakeledger follow {name} --once"
                finding = Finding("unfinished", said, "", each.version, advice)
                self.found.append(_StreamFinding(name, finding, repaired=False))

    def _heads(self) -> None:
        names = {subject.name for subject, _ in self.verified}
        stream = names.pop() if len(names) == 1 else "ledger"
        for finding in unmet(self.expected, self.verified):
            self.found.append(_StreamFinding(stream, finding, repaired=False))


def verify(
    name: Annotated[
        str | None,
        Parameter(help="DATABASE.TABLE; default: the whole ledger.", completer=tables_of),
    ] = None,
    /,
    *,
    expect: Annotated[
        tuple[str, ...],
        Parameter(negative="", show_default=False, help="Head recorded elsewhere; repeatable."),
    ] = (),
    repair: Annotated[
        bool, _Flag, Parameter(help="Restore derived files, and commit files from segments.")
    ] = False,
    data: Annotated[
        bool,
        _Flag,
        Parameter(help="Also check data files, and what engines reported."),
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Verify the hash chain and everything derived from the log; exits with 6 on damage.

    Reads every commit along the hash chain and checks its events for consistency: unique ids and
    files, sums, ranges of ids. Reads the lists of files that commits reference, and compares
    checkpoints, key indexes, file runs, segments and projections with the log. A log with a newest
    commit ahead of this machine's clock fails too, since one of the two is wrong (see
    correct-clock).

    Changes nothing without --repair, which restores derived files, and missing commit files byte
    for byte from segments. It never rewrites a log. A long log is verified by as many processes as
    there are processors.

    With --data, it checks the existence, size and row count of data files too, and compares the
    statistics that engines reported with the manifests that they wrote.

    The last lines are the heads. Store them elsewhere: a truncated or fully rewritten log is only
    detected by comparison with such a head (--expect VERSION:sha256:HEX, or sha256:HEX).

    Example:
        lakeledger verify

        lakeledger verify shop.flights
    """
    heads = [Expected.parse(each) for each in expect]
    lake = place.with_caches().open()
    setting = TableSetting(
        handle_of(lake).log.store,
        place.storage_options(),
        author="",
        allowed=handle_of(lake).setting.allowed,
        root_location=handle_of(lake).setting.root_location,
    )
    with Workers(setting.options_for) as workers:
        run = _VerificationRun(lake, setting, repair, data, place.screen, workers, heads)
        if name is None:
            run.verify_everything()
        else:
            run.one(name)
    place.screen.result(_verification_document(run), lambda to: _print_verification(to, run))
    _raise_on_failures(run)


def _raise_on_failures(run: _VerificationRun) -> None:
    failures = [each for each in run.found if each.fails]
    if not failures:
        return
    first = failures[0]
    at = "" if first.finding.version is None else f" version {first.finding.version}"
    others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    raise DamagedLogError(
        f"{first.stream}{at}: {first.finding.file}: {first.finding.what}{others}; "
        f"{first.finding.advice}",
        first.finding.file,
    )


def _heads(run: _VerificationRun) -> Iterator[dict[str, Any]]:
    for subject, verification in run.verified:
        yield {
            "stream": subject.name,
            "location": f"{subject.store.url}/{subject.layout.root}",
            "version": verification.version,
            "head": verification.digest,
        }


def _verification_document(run: _VerificationRun) -> dict[str, Any]:
    return {
        "sound": not any(each.fails for each in run.found),
        "findings": [each.document() for each in run.found],
        "streams": list(_heads(run)),
    }


def _print_verification(screen: Screen, run: _VerificationRun) -> None:
    for each in run.found:
        finding = each.finding
        at = "" if finding.version is None else f", version {finding.version}"
        screen.line(f"{'repaired' if each.repaired else finding.kind}: {each.stream}{at}")
        screen.line(f"  {finding.file}" if finding.file else "  (no file)")
        screen.line(f"  {finding.what}")
        if not each.repaired:
            screen.line(f"  {finding.advice}")
    for head in _heads(run):
        digest = head["head"] or "damaged"
        screen.line(f"{head['stream']}  {head['version']}:{digest}")
    if not any(each.fails for each in run.found):
        count = len(run.verified)
        logs = "the log is" if count == 1 else f"all {count} logs are"
        screen.notice(f"{logs} intact; store the heads above elsewhere, for --expect")


GROUP = "lakeledger.verifications"
"""Entry points that verify other derived files, such as statistics."""


class FormatFindings(Protocol):
    """Differences of a format's files from the projection, by path below the location."""

    @property
    def missing(self) -> Sequence[str]:
        """Missing files."""

    @property
    def changed(self) -> Sequence[str]:
        """Files with other bytes."""

    @property
    def foreign(self) -> Sequence[str]:
        """Files that the ledger did not project."""

    @property
    def inexpressible(self) -> Sequence[str]:
        """Facts that the format cannot express, one sentence each."""

    @property
    def damage(self) -> DamagedLogError | None:
        """Error if the files were projected from another log; else None."""


class FormatVerifier(Protocol):
    """Interface of a projection for verification."""

    def verify(self, table: TableHandle) -> FormatFindings:
        """Compare the files on the store with the projection of the log."""

    def rebuild(self, table: TableHandle) -> object:
        """Restore missing and changed files."""


def _load_format_verifier(name: str) -> FormatVerifier:
    offered: Any = part(name, "kept") if name in having("kept") else load(GROUP, name)
    return cast(FormatVerifier, offered)


def differences(table: TableHandle) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the findings about a table's files by installed format."""
    for name in sorted({*having("kept"), *names(GROUP)}):
        try:
            found = _load_format_verifier(name).verify(table)
            if found.damage is not None:
                # Files rebuilt from a damaged log would hide the damage.
                raise found.damage
        except DamagedLogError as error:
            yield name, [Finding("damage", f"{name}: {error.message}", error.file, None)]
            continue
        except LedgerError as error:
            where = table.location
            advice = "see the message"
            yield name, [Finding("unfinished", f"{name}: {error.message}", where, None, advice)]
            continue
        yield name, list(_format_findings(name, found))


def _engine_findings(table: TableHandle, state: TableState) -> Iterator[Finding]:
    """Yield the findings where reports of a table's engines contradict their manifests."""
    if state.lists_files:
        return
    problems_of = part_if_any(state.origin.format_name, "engine_problems")
    if problems_of is None:
        return
    try:
        for problem in problems_of(table, state):
            yield Finding("data", problem, "", state.version, _ENGINES)
    except LedgerError as error:
        yield Finding("data", error.message, table.location, None, FROM_BACKUP)


_ENGINES: Final = (
    "the manifests are what engines read; find the commit whose statistics are wrong by "
    "lakeledger log, and correct its engine"
)


def rebuild(table: TableHandle, name: str) -> None:
    """Restore a table's files of a format."""
    _load_format_verifier(name).rebuild(table)


def _format_findings(name: str, found: FormatFindings) -> Iterator[Finding]:
    for path in found.missing:
        yield Finding("derived", f"the {name} file is missing", path, None, REPAIR)
    for path in found.changed:
        said = f"the {name} file differs from the projection of the log"
        yield Finding("derived", said, path, None, REPAIR)
    for path in found.foreign:
        yield Finding("foreign", f"the ledger did not project this {name} file", path, None, _LOOK)
    for said in found.inexpressible:
        yield Finding("inexpressible", said, "", None, "no action is needed")


_LOOK = (
    "--repair deletes it only if an interrupted projection left it; else check it, and delete it "
    "yourself if no engine needs it"
)
