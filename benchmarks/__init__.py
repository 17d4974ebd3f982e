"""Benchmarks: one question each, with a lower bound or a rival in the same run.

Run one as `python -m benchmarks.replay`, smaller with `--size 1000`, for programs with
`--output json`. Histories are built once and kept in `--workdir`.

Compared figures are ratios of times taken in turn (A B A B) on one machine; absolute times are of
this machine only. Every run prints a fingerprint of its results: an optimisation that changes it
changed the behaviour.

Goals: to detect regressions of commits, openings and replays, and to show the distance of each to
the limit set by disk and decoder. Not a goal: a ranking of table formats, whose commits have
different guarantees; each rival's line names its own.
"""
