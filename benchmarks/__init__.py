"""Benchmarks: one question each, with a floor or a rival in the same run.

Run one as `python -m benchmarks.replay`, smaller with `--size 1000`, for programs with
`--output json`. Histories are built once and kept in `--workdir`.

Figures that compare are ratios of times taken in turn (A B A B) on one machine; absolute times
are of the machine at hand and mean nothing elsewhere. Every run prints a fingerprint of what it
computed: an optimisation that changes it changed the behaviour.

Goals: to notice when a commit, an opening or a replay gets slower, and to know how far each is
from what the disk and the decoder allow. Not a goal: a ranking of table formats, whose commits
promise different things; each rival's line says what it promises.
"""
