"""Makes a finding small: what differs from its seed is taken back as far as it stays a finding."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.fuzzing.cases import Case, seed_files
from tests.fuzzing.mutating import rehashed

_SECONDS: Final = 60
"""Time for one finding."""

_ABSENT: Final = object()


def minimised(case: Case, still_fails: Callable[[Case], bool]) -> Case:
    """Return the smallest case found that still fails."""
    end = time.monotonic() + _SECONDS
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(case):
            if time.monotonic() > end:
                return case
            if smaller != case and still_fails(smaller):
                case, is_smaller = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    seed = seed_files(case.seed)
    for path in case.changed:
        yield case.with_file(path, seed.get(path))
    for path, body in case.changed.items():
        if body is not None:
            for each in _nearer(seed.get(path, b""), body):
                yield case.with_file(path, rehashed(each) if case.target == "export" else each)


def _nearer(seed: bytes, body: bytes) -> Iterator[bytes]:
    """Yield bodies that have less of a difference."""
    try:
        ours, theirs = _documents(seed), _documents(body)
    except (ValueError, RecursionError):
        yield from _nearer_bytes(seed, body)
        return
    if len(ours) == len(theirs):
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            for each in _nearer_json(one, other):
                lines = [*theirs[:at], each, *theirs[at + 1 :]]
                yield _text(lines, is_lines=len(lines) > 1 or body.endswith(b"\n"))


def _documents(body: bytes) -> list[Any]:
    try:
        return [json.loads(body)]
    except ValueError:
        return [json.loads(each) for each in body.splitlines()]


def _text(lines: list[Any], *, is_lines: bool) -> bytes:
    separators = (",", ":") if is_lines else None
    end = "\n" if is_lines else ""
    return "".join(f"{json.dumps(each, separators=separators)}{end}" for each in lines).encode()


def _nearer_json(seed: Any, said: Any) -> Iterator[Any]:
    """Yield JSON with one node taken back, the larger ones first."""
    if _is_same(seed, said):
        return
    if seed is not _ABSENT:
        yield seed
    if isinstance(said, dict):
        yield from _nearer_object(seed if isinstance(seed, dict) else {}, said)
    elif isinstance(said, list):
        yield from _nearer_list(seed if isinstance(seed, list) else [], said)
    elif isinstance(said, str):
        lengths = (0, 1, len(said) // 2)
        yield from (said[:length] for length in lengths if length < len(said))


def _nearer_object(seed: dict[str, Any], said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, value in said.items():
        if key not in seed:
            yield {name: each for name, each in said.items() if name != key}
        for each in _nearer_json(seed.get(key, _ABSENT), value):
            yield {**said, key: each}
    for key in seed.keys() - said.keys():
        yield {**said, key: seed[key]}


def _nearer_list(seed: list[Any], said: list[Any]) -> Iterator[list[Any]]:
    for at, value in enumerate(said):
        if len(said) > len(seed):
            yield [*said[:at], *said[at + 1 :]]
        for each in _nearer_json(seed[at] if at < len(seed) else _ABSENT, value):
            yield [*said[:at], each, *said[at + 1 :]]


def _is_same(seed: Any, said: Any) -> bool:
    return seed is not _ABSENT and json.dumps(seed) == json.dumps(said)


def _nearer_bytes(seed: bytes, body: bytes) -> Iterator[bytes]:
    if len(seed) == len(body):
        different = [
            at for at, (one, other) in enumerate(zip(seed, body, strict=True)) if one != other
        ]
        step = max(1, len(different) // 2)
        while True:
            for begin in range(0, len(different), step):
                changed = bytearray(body)
                for at in different[begin : begin + step]:
                    changed[at] = seed[at]
                yield bytes(changed)
            if step == 1:
                return
            step //= 2
    for length in (0, len(body) // 2, len(body) * 3 // 4, len(body) - 64, len(body) - 1):
        if 0 <= length < len(body):
            yield body[:length]
