"""The service itself: its configuration, its errors, and who may read what.

Source: Paimon's REST classes.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


@frozen
class ConfigResponse:
    """What a client has to know first.

    Attributes:
        defaults: Options that the client's own win over.
        overrides: Options that win over the client's own.
    """

    defaults: Mapping[str, str] = field(factory=dict, hash=False)
    overrides: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class ErrorResponse:
    """Why a request failed.

    Gateways answer with `Message` and `Code`; these are read, too.

    Attributes:
        resource_type: TABLE, COLUMN, SNAPSHOT, ...; None when it is about none.
        resource_name: Which one.
        message: For people.
        code: The HTTP status.

    Example:
        >>> ErrorResponse("TABLE", "orders", "there is no such table", code=404).code
        404
    """

    resource_type: str | None = None
    resource_name: str | None = None
    message: str | None = None
    code: int = field(kw_only=True)


@frozen
class GetTableTokenResponse:
    """Credentials for a table's files, good until `expires_at_millis` (Unix milliseconds)."""

    token: Mapping[str, str] = field(hash=False, repr=False)
    expires_at_millis: int


@frozen
class AuthTableQueryRequest:
    """Ask what may be read of a table; None stands for all its columns."""

    select: tuple[str, ...] | None = None


@frozen
class AuthTableQueryResponse:
    """What must be done to what is read: predicates and masks, each as Paimon's JSON text."""

    filter: tuple[str, ...] | None = None
    column_masking: Mapping[str, str] | None = field(default=None, hash=False)
