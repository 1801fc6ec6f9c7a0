"""What torch frees stays with the process, to be used again.

glibc hands a large block back to the kernel as soon as it is freed, and the next tensor of the same
size is faulted in page by page; and it gives every thread a heap of its own. What both cost a small
policy is in docs/decisions/policy.md.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_ALL = 2**31 - 1
_LARGEST_OF_OLD_GLIBC = 2**25


def keep_freed_memory() -> bool:
    """For the rest of the process, from its one heap.

    False where the C library has no such switch (it is not glibc).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    is_set = mallopt(_MMAP_THRESHOLD, _ALL) or mallopt(_MMAP_THRESHOLD, _LARGEST_OF_OLD_GLIBC)
    return bool(is_set and mallopt(_TRIM_THRESHOLD, _ALL) and mallopt(_ARENA_MAX, 1))
