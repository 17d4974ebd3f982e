"""Pictures of a table: how it grew and how skewed it is, and what it answers to a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from ledger.model.errors import MissingDependencyError
from ledger.model.messages.excerpt import moment, size
from projections.statistics.shown.query import TableTotals
from projections.statistics.shown.questions import Question
from projections.statistics.shown.report import Report

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_Unit = Literal["rows", "bytes"]

_INCHES = (11, 5)
_DOTS_AN_INCH = 120
_MOST_DOTS = 50
_COLOURS: dict[_Unit, str] = {"rows": "C0", "bytes": "C1"}


def draw(
    path: Path, report: Report, history: Sequence[TableTotals], when: Callable[[int], int]
) -> None:
    """Draw growth beside skew into a PNG file.

    Left: rows and size at every snapshot, one below the other. Right: the partitions from the
    greatest to the least, by the share of the size that these and all greater ones hold; even
    partitions are a straight line.

    Args:
        path: The file, which is replaced.
        report: The table's partitions.
        history: Its totals at every snapshot.
        when: When a version was, Unix milliseconds; asked of the few that are labelled.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    figure = _figure()
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
    _draw_skew(panels["skew"], [each.file_size_in_bytes for each in report.partitions])
    figure.savefig(path, format="png", dpi=_DOTS_AN_INCH)


def _draw_growth(
    panel: Axes, history: Sequence[TableTotals], values: Sequence[int], unit: _Unit
) -> None:
    marker = "." if len(history) <= _MOST_DOTS else ""
    snapshots = [each.snapshot_id for each in history]
    panel.step(snapshots, values, where="post", marker=marker, color=_COLOURS[unit])
    _whole(panel.xaxis)
    _read_as(panel.yaxis, unit)
    panel.set_ylim(0, max([1, *values]) * 1.05)
    panel.grid(axis="y", color="0.9")


def _draw_skew(panel: Axes, sizes: Sequence[int]) -> None:
    shares = cumulative_shares(sizes)
    panel.set(title="Skew", xlabel="partitions, greatest first", ylabel="share of the size")
    panel.plot(range(len(shares)), shares, color=_COLOURS["bytes"], label="these partitions")
    even = [0, max(1, len(shares) - 1)]
    panel.plot(even, [0, 1], linestyle=":", color="0.5", label="if all were alike")
    panel.set_ylim(0, 1.02)
    panel.legend(loc="lower right")
    panel.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")
    _whole(panel.xaxis)


def _whole(axis: Axis) -> None:
    """Label whole numbers alone, and few of them."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def _read_as(axis: Axis, unit: str) -> None:
    """Label an axis as people read its unit: thousands apart, bytes in kB, MB, ..."""
    from matplotlib.ticker import MaxNLocator

    if unit == "bytes":
        # Steps that a decimal says, since a size is told by one.
        axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _position: size(round(value)).replace(".0 ", " "))
    else:
        _whole(axis)
        axis.set_major_formatter(lambda value, _position: f"{value:,.0f}")


def draw_answer(path: Path, question: Question, title: str, answer: pa.Table) -> None:
    """Draw an answer into a PNG file, a bar or two a row, the first rows of it.

    Args:
        path: The file, which is replaced.
        question: What was asked.
        title: Of what.
        answer: What `questions.answer` gave.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    figure = _figure()
    axes = figure.subplots()
    picture = _PICTURES[question]
    rows = answer.slice(0, _MOST_BARS).to_pylist()
    figure.suptitle(f"{title}: {question}")
    axes.set(xlabel="size" if picture.unit == "bytes" else picture.unit)
    _read_as(axes.xaxis, picture.unit)
    height = _BAR / len(picture.measures)
    for nth, name in enumerate(picture.measures):
        places = [each + nth * height for each in range(len(rows))]
        axes.barh(places, [each[name] for each in rows], height, label=_called(name))
    middle = (len(picture.measures) - 1) * height / 2
    labels = [str(each[picture.label]) or "all" for each in rows]
    axes.set_yticks([each + middle for each in range(len(rows))], labels)
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, format="png", dpi=_DOTS_AN_INCH)


def _called(measure: str) -> str:
    return measure.replace("_in_bytes", "").replace("_", " ")


@frozen
class _Picture:
    """Which columns of an answer are drawn."""

    label: str
    measures: tuple[str, ...]
    unit: str


_MOST_BARS = 30
_BAR = 0.8

_PICTURES: dict[Question, _Picture] = {
    "compaction": _Picture("partition", ("file_count", "file_count_after"), "files"),
    "growth": _Picture("day", ("added_file_size_in_bytes", "file_size_in_bytes"), "bytes"),
    "untouched": _Picture("partition", ("untouched_days",), "days"),
    "late": _Picture("partition", ("late_record_count",), "rows"),
    "retention": _Picture("partition", ("freed_file_size_in_bytes",), "bytes"),
    "filter": _Picture("spec_id", ("file_size_in_bytes", "read_size_in_bytes"), "bytes"),
}


def _figure() -> Figure:
    if find_spec("matplotlib") is None:
        raise MissingDependencyError("a plot needs matplotlib: pip install 'lakeledger[plot]'")
    # Neither pyplot nor its global state: this draws on any thread, without a screen.
    from matplotlib.figure import Figure

    return Figure(figsize=_INCHES, layout="constrained")


def cumulative_shares(sizes: Sequence[int]) -> list[float]:
    """Return what share of all the greatest sizes hold: of the first none, one, two, ...

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
