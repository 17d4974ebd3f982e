"""Signals that end what goes on for ever."""

from __future__ import annotations

import gc
import signal

import pytest

from ledger.cli.stopping import Stop, ends_at_once, ends_between_rounds


class _Finalised:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_python_loses_in_a_finaliser_ends_the_next_wait() -> None:
    with ends_at_once() as stop:
        _Finalised()
        gc.collect()
        with pytest.raises(KeyboardInterrupt):
            stop.sleep(600)


def test_an_interruption_leaves_what_is_under_way() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), ends_at_once():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_what_is_asked_between_rounds_ends_the_wait_and_interrupts_nothing(asked: int) -> None:
    with ends_between_rounds() as stop:
        assert not stop.wait(0)
        signal.raise_signal(asked)
        assert stop.wait(600)


def test_without_a_signal_it_waits() -> None:
    Stop().sleep(0)
