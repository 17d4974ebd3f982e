from __future__ import annotations

import threading
from typing import Any

from msgspec import Struct

from ledger.decide import Batch
from ledger.decide.format_rules import cached_attribute


class Meeting(Struct, frozen=True, dict=True):
    """Something that two threads can work out only at the same time."""

    place: threading.Barrier

    @cached_attribute
    def both_came(self) -> bool:
        """Return whether another thread computes its own meanwhile."""
        return self.place.wait(30) in {0, 1}


def test_a_thread_that_computes_a_value_blocks_no_other() -> None:
    place = threading.Barrier(2)
    one, other = Meeting(place), Meeting(place)
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(other.both_came))
    thread.start()
    assert one.both_came
    thread.join(30)
    assert found == [True]
    # Kept: no second computation follows.
    assert one.both_came


def test_formats_that_look_into_files_keep_no_other_thread_waiting() -> None:
    """The values that a batch computes; each may read every list of files."""
    place = threading.Barrier(2)

    class History:
        def reach(self, state: object) -> str:
            place.wait(30)
            return f"reach of {state}"

    def batch(state: str) -> Batch:
        stub: Any = None
        return Batch(state, stub, stub, stub, History())  # type: ignore[arg-type]

    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(batch("one").reach))
    thread.start()
    found.append(batch("two").reach)
    thread.join(30)
    assert sorted(map(str, found)) == ["reach of one", "reach of two"]


def test_the_property_itself_is_asked_of_the_class() -> None:
    assert isinstance(Meeting.both_came, cached_attribute)
    assert Meeting.both_came.__doc__ == "Return whether another thread computes its own meanwhile."
