"""Guided tour of `lakeledger quickstart` on real data."""

from __future__ import annotations

from ledger.cli.quickstart.steps import IDENTIFIER, happen
from ledger.cli.quickstart.story import Story, story_of, tell_story

__all__ = ["IDENTIFIER", "Story", "happen", "story_of", "tell_story"]
