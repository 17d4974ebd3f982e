"""Inputs near to real ones: cut, flipped, spliced, nested and huge."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

DEEP: Final = 3_000
HOSTILE_TEXTS: Final = (
    *("", "\0", "..", "../../etc/passwd", "a\nb", "\ud800", "ﷺ" * 50, "a" * 10_000, "'", "`", '"'),
    *("NaN", "Infinity", "-1", "9" * 5_000, "1e999999999", "ROW<" * 500, "(" * DEEP, "[" * DEEP),
    *("ARRAY<" * 2_000, "DECIMAL(999999999999999999999)", "%00%2e%2e", "{" * DEEP, "memory://"),
)
HOSTILE_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, float("nan"), [], {}),
    *([[]], {"": None}, {"type": "nothing"}, *HOSTILE_TEXTS),
)


def nested(depth: int = DEEP) -> bytes:
    """Return JSON deeper than any parser may follow."""
    return b'{"fields":' * depth + b"1" + b"}" * depth


@st.composite
def broken(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """Draw a real file with a few bytes changed, cut or spliced."""
    body = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(body) - 1)))
        match draw(st.integers(0, 5)):
            case 0 if body:
                body[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del body[at:]
            case 2:
                other = draw(st.sampled_from(samples))
                body[at:] = other[draw(st.integers(0, len(other))) :]
            case 3:
                body[at:at] = draw(st.binary(max_size=12))
            case 4 if body:
                del body[at : at + draw(st.integers(1, 40))]
            case _ if body:
                body[at : at + 8] = draw(st.sampled_from((b"\xff" * 8, b"\0" * 8, b"99999999")))
    return bytes(body)


@st.composite
def bent(draw: st.DrawFn, samples: Sequence[Any]) -> Any:
    """Draw a real JSON document with a few of its values exchanged, left out or doubled."""
    document = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 3))):
        document = _bent_once(draw, document)
    return document


def _bent_once(draw: st.DrawFn, document: Any) -> Any:
    places = list(_places(document))
    if not places:
        return draw(st.sampled_from(HOSTILE_VALUES))
    holder, key = draw(st.sampled_from(places))
    match draw(st.integers(0, 4)):
        case 0:
            del holder[key]
        case 1:
            other, other_key = draw(st.sampled_from(places))
            if other_key in other if isinstance(other, dict) else other_key < len(other):
                holder[key] = copy.deepcopy(other[other_key])
        case _:
            holder[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE_VALUES)))
    return document


def _places(document: Any) -> Any:
    if isinstance(document, dict):
        items: Any = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    else:
        return
    for key, value in items:
        yield document, key
        yield from _places(value)


def texts(samples: Sequence[str]) -> st.SearchStrategy[str]:
    """Draw texts near to real ones, hostile ones, and any."""
    near = broken([each.encode() for each in samples]).map(lambda b: b.decode(errors="replace"))
    return st.one_of(near, st.sampled_from(HOSTILE_TEXTS), st.text(max_size=60))


def documents(samples: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Draw parsed JSON near to real documents, and hostile values."""
    return st.one_of(bent(samples), st.sampled_from(HOSTILE_VALUES))


def files(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Draw files near to real ones; JSON ones are bent, too."""
    strategies: list[st.SearchStrategy[bytes]] = [broken(samples), st.binary(max_size=200)]
    try:
        parsed = [json.loads(each) for each in samples]
    except ValueError:
        return st.one_of(strategies)
    encoded = bent(parsed).map(lambda each: json.dumps(each).encode(errors="replace"))
    return st.one_of(*strategies, encoded, st.just(nested()), st.just(b"[" * DEEP))
