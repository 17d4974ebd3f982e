"""The README's examples print what the README says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_examples_print_what_stands_below_them() -> None:
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert len(found) == README.count("```python")
    told: dict[str, object] = {}
    for code, expected in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), told)  # noqa: S102 - our own example
        assert printed.getvalue() == expected
