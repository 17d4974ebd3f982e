"""Report and plots of `lakeledger stats`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from ledger.model.errors import StoreError
from ledger.model.extras import missing_extra_error
from ledger.model.messages import moment, size
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of
from projections.dlf import Style, render
from projections.materialising import Progress, ignore_progress
from projections.statistics.definition import SHOWN
from projections.statistics.engine_listed import EngineListedStatistics
from projections.statistics.materialise import Engine, refresh
from projections.statistics.partition_rendering import Instant, PartitionRendering, rendering_of
from projections.statistics.query import (
    Order,
    StatisticsSource,
    TableTotals,
    greatest_partitions,
    partitions,
    render_partitions,
)
from projections.statistics.questions import Question
from projections.statistics.tile_rows import Kept

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


@frozen(kw_only=True)
class Report:
    """Statistics of a table at one instant.

    Attributes:
        table: The table's full name.
        version: The commit.
        snapshot_id: The snapshot; 0 before the first.
        engine: The engine that read new commits.
        partitions: All that have files, as from `query.partitions`.
        rendering: Their rendering.
        opening_snapshot_id: The first snapshot that is counted by itself, if the manifest lists of
            older ones expired before they were counted; None if all are.
    """

    table: str
    version: int
    snapshot_id: int
    engine: str
    partitions: pa.Table
    rendering: PartitionRendering
    opening_snapshot_id: int | None = None

    @property
    def sums(self) -> dict[str, int]:
        """Sums over the table, by their names in the DLF metadata API."""
        import pyarrow.compute as pc

        names = ("record_count", "file_size_in_bytes", "file_count")
        return {SHOWN[name]: pc.sum(self.partitions[name]).as_py() or 0 for name in names}

    def document(self, order: Order, top: int) -> dict[str, Any]:
        """Return the report as plain JSON; partitions in the shape of the DLF metadata API."""
        first = greatest_partitions(self.partitions, order, top)
        opening = self.opening_snapshot_id
        return {
            "table": self.table,
            "version": self.version,
            "snapshotId": self.snapshot_id,
            "engine": self.engine,
            **({} if opening is None else {"openingSnapshotId": opening}),
            "partitionCount": len(self.partitions),
            **self.sums,
            "partitions": [
                render(each, Style.DLF) for each in render_partitions(first, self.rendering)
            ],
        }


def refreshed_statistics(
    table: Table,
    at: TableAt,
    engine: Engine,
    notice: Callable[[str], None],
    on_progress: Progress = ignore_progress,
) -> StatisticsSource:
    """Return a table's statistics after a refresh; if they cannot be kept, computed ones."""
    if not at.state.lists_files:
        return EngineListedStatistics(handle_of(table), at)
    try:
        refresh(handle_of(table).log, engine, on_progress=on_progress)
    except (OSError, StoreError) as error:
        notice(f"the statistics cannot be kept ({error}); they are computed without keeping them")
    return Kept.of(handle_of(table).log)


def report_of(table: Table, kept: StatisticsSource, at: Instant, engine: str) -> Report:
    """Return the report of a table at an instant."""
    rendering = rendering_of(at)
    return Report(
        table=str(table.identifier),
        version=at.state.version,
        snapshot_id=at.state.last_snapshot_id,
        engine=engine,
        partitions=partitions(kept, at, rendering),
        rendering=rendering,
        opening_snapshot_id=kept.opening_snapshot_id,
    )


def busiest(table: Table, at: TableAt, *, top: int) -> dict[str, Any]:
    """Return the report of a table at an instant as JSON, with the partitions of the most rows.

    Args:
        table: The table; its statistics are refreshed.
        at: The instant.
        top: Maximum number of partitions.
    """
    refresh(handle_of(table).log)
    report = report_of(table, Kept.of(handle_of(table).log), at, "local")
    return report.document("records", top)


_Unit = Literal["rows", "bytes"]

_INCHES = (11, 5)
_DOTS_AN_INCH = 120
_MOST_DOTS = 50
_COLOURS: dict[_Unit, str] = {"rows": "C0", "bytes": "C1"}


def draw_report(
    path: Path, report: Report, history: Sequence[TableTotals], when: Callable[[int], int]
) -> None:
    """Draw growth and skew next to each other into a PNG file.

    Left: rows and size at every snapshot. Right: the partitions in descending order of size, by the
    cumulative share of the total; equal partitions give a straight line.

    Args:
        path: The file, which is replaced.
        report: The table's partitions.
        history: Its totals at every snapshot.
        when: Returns a version's time, Unix milliseconds; called for the labelled ones.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    figure = _new_figure()
    panels = figure.subplot_mosaic([["rows", "skew"], ["size", "skew"]])
    figure.suptitle(f"{report.table}, snapshot {report.snapshot_id}")
    _draw_growth(panels["rows"], history, [each.record_count for each in history], "rows")
    _draw_growth(panels["size"], history, [each.file_size_in_bytes for each in history], "bytes")
    panels["rows"].set(title="Rows")
    panels["size"].set(title="Size", xlabel="snapshot, and its day (UTC)")
    versions = {each.snapshot_id: each.version for each in history}

    def day(snapshot: float, _position: object = None) -> str:
        version = versions.get(round(snapshot))
        if version is None or snapshot != round(snapshot):
            return ""
        return f"{round(snapshot)}\n{moment(when(version))[:10]}"

    panels["size"].xaxis.set_major_formatter(day)
    _draw_skew(panels["skew"], report.partitions["file_size_in_bytes"].to_pylist())
    figure.savefig(path, format="png", dpi=_DOTS_AN_INCH)


def _draw_growth(
    panel: Axes, history: Sequence[TableTotals], values: Sequence[int], unit: _Unit
) -> None:
    marker = "." if len(history) <= _MOST_DOTS else ""
    snapshots = [each.snapshot_id for each in history]
    panel.step(snapshots, values, where="post", marker=marker, color=_COLOURS[unit])
    _label_integers(panel.xaxis)
    _format_labels_by_unit(panel.yaxis, unit)
    panel.set_ylim(0, max([1, *values]) * 1.05)
    panel.grid(axis="y", color="0.9")


def _draw_skew(panel: Axes, sizes: Sequence[int]) -> None:
    shares = cumulative_shares(sizes)
    panel.set(title="Skew", xlabel="partitions, greatest first", ylabel="share of the size")
    panel.plot(range(len(shares)), shares, color=_COLOURS["bytes"], label="these partitions")
    even = [0, max(1, len(shares) - 1)]
    panel.plot(even, [0, 1], linestyle=":", color="0.5", label="if all were equal")
    panel.set_ylim(0, 1.02)
    panel.legend(loc="lower right")
    panel.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")
    _label_integers(panel.xaxis)


def _label_integers(axis: Axis) -> None:
    """Label integers only, and few of them."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def _format_labels_by_unit(axis: Axis, unit: str) -> None:
    """Format an axis's labels by unit: thousands separators, bytes in kB, MB, ..."""
    from matplotlib.ticker import MaxNLocator

    if unit == "bytes":
        # Decimal steps, since sizes are shown in decimal units.
        axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _position: size(round(value)).replace(".0 ", " "))
    else:
        _label_integers(axis)
        axis.set_major_formatter(lambda value, _position: f"{value:,.0f}")


def draw_answer(path: Path, question: Question, title: str, answer: pa.Table) -> None:
    """Draw an answer into a PNG file, one or two bars per row, the first rows of it.

    Args:
        path: The file, which is replaced.
        question: The question.
        title: The title.
        answer: The result of `questions.answer`.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    figure = _new_figure()
    axes = figure.subplots()
    picture = _PICTURES[question]
    rows = answer.slice(0, _MOST_BARS).to_pylist()
    figure.suptitle(f"{title}: {question}")
    axes.set(xlabel="size" if picture.unit == "bytes" else picture.unit)
    _format_labels_by_unit(axes.xaxis, picture.unit)
    height = _BAR / len(picture.measures)
    for nth, name in enumerate(picture.measures):
        places = [each + nth * height for each in range(len(rows))]
        axes.barh(places, [each[name] for each in rows], height, label=_measure_label(name))
    middle = (len(picture.measures) - 1) * height / 2
    labels = [str(each[picture.label]) or "all" for each in rows]
    axes.set_yticks([each + middle for each in range(len(rows))], labels)
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, format="png", dpi=_DOTS_AN_INCH)


def _measure_label(measure: str) -> str:
    return measure.replace("_in_bytes", "").replace("_", " ")


@frozen
class _AnswerPlot:
    """Drawn columns of an answer."""

    label: str
    measures: tuple[str, ...]
    unit: str


_MOST_BARS = 30
_BAR = 0.8

_PICTURES: dict[Question, _AnswerPlot] = {
    "compaction": _AnswerPlot("partition", ("file_count", "file_count_after"), "files"),
    "growth": _AnswerPlot("day", ("added_file_size_in_bytes", "file_size_in_bytes"), "bytes"),
    "untouched": _AnswerPlot("partition", ("untouched_days",), "days"),
    "late": _AnswerPlot("partition", ("late_record_count",), "rows"),
    "retention": _AnswerPlot("partition", ("freed_file_size_in_bytes",), "bytes"),
    "filter": _AnswerPlot("spec_id", ("file_size_in_bytes", "read_size_in_bytes"), "bytes"),
}


def _new_figure() -> Figure:
    if find_spec("matplotlib") is None:
        raise missing_extra_error("a plot needs matplotlib", "plot")
    # Neither pyplot nor its global state: this draws on any thread, without a display.
    from matplotlib.figure import Figure

    return Figure(figsize=_INCHES, layout="constrained")


def cumulative_shares(sizes: Sequence[int]) -> list[float]:
    """Return the cumulative shares of the sorted sizes, greatest first, starting with 0.

    Example:
        >>> cumulative_shares([1, 2, 1])
        [0.0, 0.5, 0.75, 1.0]
    """
    total = sum(sizes) or 1
    shares, held = [0.0], 0
    for each in sorted(sizes, reverse=True):
        held += each
        shares.append(held / total)
    return shares
