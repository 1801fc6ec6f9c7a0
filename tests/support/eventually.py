"""Waiting in a test for what another thread or another process does."""

import time
from collections.abc import Callable

WITHIN_S = 60.0
"""Tells late from never: on a busy machine a process may take a quarter of it to start."""


def eventually(
    condition: Callable[[], object],
    within_s: float = WITHIN_S,
    found: Callable[[], object] | None = None,
) -> float:
    """Return once it holds; how many seconds that took.

    `found`: what to look at when it has not come true.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, (
            f"not within {within_s:.0f} s{'' if found is None else f', but {found()!r}'}"
        )
        time.sleep(0.02)
    return time.monotonic() - began
