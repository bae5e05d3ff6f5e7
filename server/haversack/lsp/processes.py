"""Whether another process is still there, without disturbing it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def is_alive(process: int) -> bool:
    """False once `process` has ended, even while it waits for its parent to notice."""
    if process <= 0:
        return True  # no process has such a number: the client told nothing
    if sys.platform == "win32":
        return _is_alive_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    try:
        # After the name in parentheses comes the state; Z and X are ended processes that still have a number.
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return True


def _is_alive_windows(process: int) -> bool:
    """`os.kill(pid, 0)` would end the process on Windows, so its handle is asked instead."""
    import ctypes  # noqa: PLC0415 - only Windows has what is used of it

    synchronize, wait_timeout = 0x0010_0000, 0x0000_0102
    kernel = ctypes.WinDLL("kernel32")  # pyright: ignore[reportAttributeAccessIssue]
    handle = kernel.OpenProcess(synchronize, False, process)
    if not handle:
        return False
    try:
        return kernel.WaitForSingleObject(handle, 0) == wait_timeout
    finally:
        kernel.CloseHandle(handle)
