"""Pictures of a table: how it grew and how skewed it is, and what it answers to a question."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from ledger.model.errors import MissingDependencyError
from projections.statistics.shown.query import Totals
from projections.statistics.shown.questions import Question
from projections.statistics.shown.report import Report

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

_INCHES = (11, 4.5)
_DOTS_AN_INCH = 120


def draw(path: Path, report: Report, history: Sequence[Totals]) -> None:
    """Draw growth beside skew into a PNG file.

    Left: rows and bytes at every snapshot. Right: the partitions from the greatest to the least,
    by the share of all bytes that these and all greater ones hold; even partitions are a straight
    line.

    Args:
        path: The file, which is replaced.
        report: The table's partitions.
        history: Its totals at every snapshot.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    figure = _figure()
    growth, skew = figure.subplots(1, 2)
    figure.suptitle(f"{report.table}, snapshot {report.snapshot_id}")

    snapshots = [each.snapshot_id for each in history]
    growth.set(title="Growth", xlabel="snapshot", ylabel="rows")
    growth.step(snapshots, [each.record_count for each in history], where="post", color="C0")
    sizes = growth.twinx()
    sizes.set_ylabel("bytes")
    sizes.step(snapshots, [each.file_size_in_bytes for each in history], where="post", color="C1")
    growth.yaxis.label.set_color("C0")
    sizes.yaxis.label.set_color("C1")

    shares = cumulative_shares([each.file_size_in_bytes for each in report.partitions])
    skew.set(title="Skew", xlabel="partitions, greatest first", ylabel="share of all bytes")
    skew.plot(range(len(shares)), shares, color="C1")
    skew.plot([0, max(1, len(shares) - 1)], [0, 1], linestyle=":", color="0.5")
    skew.set_ylim(0, 1.02)
    figure.savefig(path, format="png", dpi=_DOTS_AN_INCH)


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
    axes.set(xlabel=picture.unit)
    height = _BAR / len(picture.measures)
    for nth, name in enumerate(picture.measures):
        places = [each + nth * height for each in range(len(rows))]
        axes.barh(places, [each[name] for each in rows], height, label=name.replace("_", " "))
    middle = (len(picture.measures) - 1) * height / 2
    labels = [str(each[picture.label]) or "all" for each in rows]
    axes.set_yticks([each + middle for each in range(len(rows))], labels)
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, format="png", dpi=_DOTS_AN_INCH)


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
