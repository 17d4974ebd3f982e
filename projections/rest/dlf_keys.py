"""Access keys of clients that sign their requests, read from the operator's file.

A signature is computed from the secret itself, so that the file has secrets and no hashes: only its
owner may read it.
"""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import field, frozen

from ledger.model.errors import InvalidInputError
from projections.rest.authentication import check_principal

_MEMBERS: Final = {"secret", "principal", "security-token"}
_LONGEST_KEY_ID: Final = 128
_LONGEST_SECRET: Final = 4096


@frozen
class AccessKey:
    """A key that requests are signed with.

    Attributes:
        principal: Name of the principal that has it: the author of its commits.
        secret: The secret.
        security_token: The token that its requests have to carry; None if any or none will do.
    """

    principal: str
    secret: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)


def read_key_file(path: Path) -> Mapping[str, AccessKey]:
    """Return the access keys of a file, by their ids.

    The file is TOML, with a table for each id: `secret`, `principal`, and optionally
    `security-token`.

    Raises:
        InvalidInputError: It cannot be read, others than its owner can read or write it, or it has
            no keys or a malformed one; the message repeats no secret.
    """
    try:
        mode = path.stat().st_mode
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"the key file {path} cannot be read: {error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInputError(
            f"the key file {path} has secrets, and its mode {stat.S_IMODE(mode):04o} lets others "
            f"than its owner use it; run: chmod 600 {path}"
        )
    if not document:
        raise InvalidInputError(f"the key file {path} has no access key; {_WAY}")
    return {
        key_id: _access_key(key_id, members, f"access key {number} of {path}")
        for number, (key_id, members) in enumerate(document.items(), 1)
    }


_WAY: Final = 'write a table [ACCESS_KEY_ID] with secret = "..." and principal = "..." for each'


def _access_key(key_id: str, members: object, where: str) -> AccessKey:
    """Return a key; messages have its position instead of its id, which may be a secret."""
    if (
        not isinstance(members, dict)
        or not {"secret", "principal"} <= members.keys() <= _MEMBERS
        or not all(_is_header_text(each) for each in members.values())
    ):
        raise InvalidInputError(
            f"{where} has other members than the texts secret, principal and security-token, of "
            f"printable ASCII without blanks around; {_WAY}"
        )
    if not _is_header_text(key_id) or len(key_id) > _LONGEST_KEY_ID or set(key_id) & set("/,: "):
        raise InvalidInputError(
            f"{where} has an id that no client can send; write at most {_LONGEST_KEY_ID} printable "
            "ASCII characters without blanks, '/', ',' and ':'"
        )
    check_principal(members["principal"])
    return AccessKey(members["principal"], members["secret"], members.get("security-token"))


def _is_header_text(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= _LONGEST_SECRET
        and value.isascii()
        and value.isprintable()
        and value == value.strip()
    )
