"""`lakeledger import paimon`, and what the other commands say of a table that came in so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.projections.paimon.importing.paimon_source import PaimonSource

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.mark.usefixtures("installed")
def test_the_command_brings_it_in(shop: Run, tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append()
    command = ("import", "paimon", source.folder, "here.t")
    planned = shop(*command, "--dry-run", "--output", "json").document
    assert (planned["dryRun"], planned["snapshots"]) == (True, [1])
    ran = shop(*command)
    assert (ran.code, ran.err) == (0, "")
    assert "nothing is new" in shop(*command).out
    for each in (("log", "here.t"), ("show", "here.t"), ("snapshots", "here.t"), ("verify",)):
        ran = shop(*each)
        assert ran.code == 0, (each, ran.err)
    assert shop("project", "paimon", "here.t").code == 0
