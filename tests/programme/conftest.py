"""The programme's figures, printed at the end of every run that holds a part of it."""

from __future__ import annotations

import pytest

from tests.programme.figures import lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in lines():
        terminalreporter.write_sep("=", "the programme")
        terminalreporter.write_line(line)
