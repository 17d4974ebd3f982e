"""Options of the ledger, which clients of a protocol neither see nor change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ledger.model.messages import excerpt
from ledger.state.declared_formats import OWN_PREFIX
from projections.rest.requests import RequestError


def reject_ledger_options(keys: Iterable[str]) -> None:
    """Reject a request that sets or removes options of the ledger.

    Args:
        keys: The keys that the request sets or removes.

    Raises:
        RequestError: One of them is an option of the ledger.
    """
    found = next((each for each in keys if each.startswith(OWN_PREFIX)), None)
    if found is not None:
        raise RequestError(
            400,
            f"option {excerpt(found)} is an option of the ledger, which clients cannot set or "
            "remove; use lakeledger, or another name",
        )


def client_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return options as clients see them: without those of the ledger.

    Example:
        >>> client_options({"ledger.require-message": "true", "owner": "ann"})
        {'owner': 'ann'}
    """
    return {key: each for key, each in options.items() if not key.startswith(OWN_PREFIX)}
