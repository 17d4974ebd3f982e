"""What a disk refuses: told at once, with the system's reason and the next step.

A refusal says for sure that nothing was written, so it is a `StoreError`. What leaves it open
whether something became visible stays an `OSError`: silence, which only reading back ends.
"""

from __future__ import annotations

import errno
import os
from typing import Final, NamedTuple

from ledger.model.errors import StoreError


class _Advice(NamedTuple):
    """What programs and people are told of a refusal.

    Attributes:
        kind: The error's `kind`.
        step: What to do.
    """

    kind: str
    step: str


_NO_SPACE: Final = _Advice("NO_SPACE", "free some space or raise the quota")
_READ_ONLY: Final = _Advice("READ_ONLY", "mount it for writing, or write to another place")
_NO_PERMISSION: Final = _Advice("NO_PERMISSION", "allow this user to write there")
_NO_FOLDER: Final = _Advice(
    "NO_FOLDER", "something else stands where a folder has to be; look at it and move it away"
)
_NAME: Final = _Advice("NAME_TOO_LONG", "take a shorter path")
_MANY_FILES: Final = _Advice("TOO_MANY_FILES", "let fewer files be open at once (ulimit -n)")
_NO_LINKS: Final = _Advice(
    "NO_HARD_LINKS",
    "its file system refuses hard links, without which a commit cannot appear at once; put the "
    "ledger on another one, such as ext4, XFS, Btrfs, APFS or NFS",
)
_OTHER: Final = _Advice("STORE", "look at the disk")

_BY_ERRNO: Final = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: _Advice("TOO_LARGE", "allow larger files there (ulimit -f)"),
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
    errno.EISDIR: _NO_FOLDER,
    errno.ELOOP: _NO_FOLDER,
    errno.ENOENT: _Advice("STORE", "its folder was taken away meanwhile"),
    errno.ENAMETOOLONG: _NAME,
    errno.EMFILE: _MANY_FILES,
    errno.ENFILE: _MANY_FILES,
}
_NO_LINK: Final = frozenset(
    {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
)
NO_NAME: Final = _NO_LINK | {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES),
    *(errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
}
"""What a whole file is refused its name with; after any other error it may have got it."""

NO_PATH: Final = frozenset({errno.ELOOP, errno.ENAMETOOLONG})
"""Of reading a file: no path leads to it, and none will before somebody changes the folders."""


def refusal(url: str, what: str, error: OSError) -> StoreError:
    """Return what to raise where nothing can have become visible.

    Args:
        url: The store's.
        what: What was tried, as in `create 'log/0'`.
        error: What the system said.

    Example:
        >>> full = OSError(errno.ENOSPC, "No space left on device")
        >>> refusal("file:///lake", "create 'log/0'", full).kind
        'NO_SPACE'
    """
    return _refusal(url, what, error, _BY_ERRNO.get(error.errno or 0, _OTHER))


def refusal_of_link(url: str, what: str, error: OSError) -> StoreError:
    """Return what to raise where a whole file was refused its second name; see `refusal`."""
    if error.errno in _NO_LINK:
        return _refusal(url, what, error, _NO_LINKS)
    return refusal(url, what, error)


def _refusal(url: str, what: str, error: OSError, advice: _Advice) -> StoreError:
    number = error.errno or 0
    said = os.strerror(number) if number else str(error)
    if number in errno.errorcode:
        said = f"{said} ({errno.errorcode[number]})"
    return StoreError(
        f"{url}: cannot {what}: {said}. Nothing was written; {advice.step}, then try again",
        advice.kind,
    )
