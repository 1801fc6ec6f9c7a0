"""Keeps freed memory in the process, so that the next tensor reuses it.

By default glibc returns a large block to the kernel when it is freed, so the next tensor of that
size causes page faults again, and glibc gives every thread its own heap. For the cost of both with
a small policy see docs/measurements/demo-policy.md. Imports no torch, so that it can run first.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_UNLIMITED = 2**31 - 1
_OLD_GLIBC_MAX = 2**25
"""The largest mmap threshold that older glibc accepts."""


def keep_freed_memory() -> bool:
    """Never return freed memory to the kernel, and use one heap for all threads.

    Applies to the rest of the process. False if the C library does not support it (not glibc).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    is_set = mallopt(_MMAP_THRESHOLD, _UNLIMITED) or mallopt(_MMAP_THRESHOLD, _OLD_GLIBC_MAX)
    return bool(is_set and mallopt(_TRIM_THRESHOLD, _UNLIMITED) and mallopt(_ARENA_MAX, 1))
