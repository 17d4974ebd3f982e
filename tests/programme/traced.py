"""A forked child that is killed right before one of its system calls, whichever that is.

The kernel stops a traced process at the entry of each call; killed there, it does not do the call.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# From <sys/ptrace.h>; the same on every processor.
_TRACE_ME, _SYSCALL, _SET_OPTIONS = 0, 24, 0x4200
_SYSCALLS_SHOW, _DIES_WITH_US = 0x1, 0x100000
_AT_SYSCALL: Final = signal.SIGTRAP | 0x80


def can_trace() -> bool:
    """Say whether this machine lets a process trace its child."""
    try:
        _, status = killed_at(lambda: None, 0)
    except OSError:
        return False
    return os.WIFSIGNALED(status)


def killed_at(work: Callable[[], None], number: int) -> tuple[int, int]:
    """Let a child work, and kill it right before its system call of that number.

    Returns:
        How many calls it began, and its status as `os.waitpid` has it.

    Raises:
        OSError: Nobody may trace here.
    """
    process = os.fork()
    if process == 0:
        code = 1
        try:
            _ptrace(_TRACE_ME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    if not os.WIFSTOPPED(status):
        raise PermissionError("nobody may trace here")
    _ptrace(_SET_OPTIONS, process, _SYSCALLS_SHOW | _DIES_WITH_US)
    return _followed(process, number)


def _followed(process: int, number: int) -> tuple[int, int]:
    begun, is_inside, passed_on = 0, False, 0
    while True:
        _ptrace(_SYSCALL, process, passed_on)
        _, status = os.waitpid(process, 0)
        if not os.WIFSTOPPED(status):
            return begun, status
        passed_on = 0
        if os.WSTOPSIG(status) != _AT_SYSCALL:
            passed_on = os.WSTOPSIG(status)
            continue
        is_inside = not is_inside
        if is_inside and begun == number:
            os.kill(process, signal.SIGKILL)
            return begun, os.waitpid(process, 0)[1]
        begun += is_inside


def _ptrace(request: int, process: int, data: int = 0) -> None:
    if _LIBC.ptrace(request, process, None, ctypes.c_void_p(data)) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")
