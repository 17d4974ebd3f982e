"""No input crashes, hangs or fills the memory of a decoder: it reads, or says what is wrong.

`LAKELEDGER_EXAMPLES=20000` tries more inputs on each decoder.
"""

from __future__ import annotations

import os
import resource

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from ledger import LedgerError
from tests.programme.decoders import DECODERS
from tests.programme.figures import FIGURES

EXAMPLES = int(os.environ.get("LAKELEDGER_EXAMPLES", "40"))
MOST_GROWTH_KIB = 600 * 1024
SLOW_MILLIS = 5_000
"""A hang is longer than any pause of a busy machine."""


@pytest.mark.parametrize("name", DECODERS)
def test_any_input_is_read_or_refused_by_a_typed_error(name: str) -> None:
    decoder = DECODERS[name]
    inputs = decoder.inputs()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @seed(0)
    @settings(
        max_examples=EXAMPLES,
        deadline=SLOW_MILLIS,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def examine(data: st.DataObject) -> None:
        given_input = data.draw(inputs)
        FIGURES["decoder inputs"] += 1
        said = ""
        try:
            decoder.decode(given_input)
        except LedgerError as error:
            said = str(error)
        assert len(said) < 50_000, "an error text that repeats its input"

    examine()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_KIB
