"""The story that `lakeledger quickstart` tells, on real data.

- `flights`: the sample, and the rows of one day in a table's schema of that day.
- `steps`: what happens to the table, over the public API alone.
- `formats`: a small table more, kept in every format, and how to read it.
- `story`: what the ledger says afterwards; every number is read from it.
- `command`: the folder that it happens in, and the same for people.

`data/` holds the sample and says where it comes from.
"""

from __future__ import annotations

from ledger.cli.quickstart.steps import IDENTIFIER, happen
from ledger.cli.quickstart.story import Story, story_of, tell

__all__ = ["IDENTIFIER", "Story", "happen", "story_of", "tell"]
