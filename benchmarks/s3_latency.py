"""Latency of a durable commit to an object store, compared with one conditional put.

A warm handle sets an option and the table's comment; the raw conditional put of as many bytes is
made by the same client, in turn, on a real server on this machine (SeaweedFS) or on a bucket of
yours. Every put has its own key, so that none fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cyclopts

import ledger
from benchmarks.bucket import place_for
from benchmarks.measure import Figure, Output, Report, Times, many_in_turn, question_of, show
from benchmarks.raw_create import BODY
from ledger import Schema, SetOption, Table, UpdateComment
from ledger.stores import client_options, open_store

MILLISECOND = 1e6
TIMES_PUT = 1.5
COLUMNS = 200
TABLE = "shop.orders"


def run(url: str, options: Mapping[str, Any], *, repeats: int, width: int = COLUMNS) -> Report:
    lake = ledger.open(url, options, author="bench")
    lake.create_database("shop")
    table = lake.create_table(TABLE, Schema.of({f"c{each}": "INT" for each in range(width)}))
    put, read = _raw(f"{url}/raw", options)
    cases: dict[str, Callable[[int], object]] = {
        "conditional put": put,
        "commit": lambda number: _commit(table, number),
        "read": read,
        "refresh, nothing new": lambda _: table.state,
    }
    times = many_in_turn(cases, repeats)
    start = time.perf_counter_ns()
    reopened = ledger.open(url, options).table(TABLE).state
    opened_ns = time.perf_counter_ns() - start
    return Report(
        question_of(__doc__),
        f"(version, columns)={(reopened.version, len(reopened.schema.names))}",
        (
            *_figures(times),
            Figure(f"open, {reopened.version} commits", opened_ns / MILLISECOND, "ms"),
        ),
    )


def _raw(
    url: str, options: Mapping[str, Any]
) -> tuple[Callable[[int], object], Callable[[int], object]]:
    import s3fs

    # The same client as under the store: fsspec caches one for the same options.
    client = s3fs.S3FileSystem(**client_options(url, options))
    folder = url.removeprefix("s3://")

    def put(number: int) -> object:
        return client.pipe_file(f"{folder}/{number}", BODY, mode="create")

    store = open_store(url, options)
    return put, lambda number: store.read(f"{number}")


def _commit(table: Table, number: int) -> object:
    return table.alter([SetOption("team.option", str(number)), UpdateComment(f"as of {number}")])


def _figures(times: Mapping[str, Times]) -> Iterator[Figure]:
    for name, each in times.items():
        yield Figure(name, each.median_ns / MILLISECOND, "ms")
    ratio = times["commit"].median_ns / times["conditional put"].median_ns
    yield Figure("commit / conditional put", ratio, "x", at_most=TIMES_PUT)


def main(*, url: str | None = None, repeats: int = 300, output: Output = "text") -> None:
    """Commit to a table of 200 columns in a bucket.

    Args:
        url: An empty s3://BUCKET/FOLDER, with credentials from the environment; None starts
            SeaweedFS.
        repeats: Number of repeats of each case; the median counts.
        output: text or json.
    """
    with place_for(url) as (place, options):
        show(run(place, options, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
