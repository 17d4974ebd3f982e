"""Calls of writers and their outcomes, with the steps of the schedule at which they happened."""

from __future__ import annotations

from typing import Literal

from attrs import define, field

Outcome = Literal["acknowledged", "failed", "silent", "unknown", "crashed"]


@define
class Attempt:
    """One call of one writer.

    Attributes:
        name: The operation; retries under the same commit id share it, and no others do.
        invoked: The step before the call.
        answered: The step after it.
        outcome: What the call returned or raised; a crashed writer has none. A store
            that did not answer before anything was sent is silent.
        version: The commit that holds it, when it was acknowledged; -1 when it was not named.
        is_repeated: Whether the same was reported as committed before.
        error: What was raised.
        kind: What was asked, in the catalog's words.
        key: Makes it the same as another, which may replace it: "USER IDENTIFIER KIND" of a
            snapshot, or "dropTable".
    """

    name: str
    invoked: int
    answered: int = -1
    outcome: Outcome = "crashed"
    version: int = -1
    is_repeated: bool = False
    error: str = ""
    kind: str = ""
    key: str = ""


@define
class Observation:
    """A state that a reader was given: its version, and the digest of all that it says."""

    invoked: int
    answered: int
    version: int
    digest: str


@define
class History:
    """All of one schedule."""

    attempts: list[Attempt] = field(factory=list)
    observations: list[Observation] = field(factory=list)
