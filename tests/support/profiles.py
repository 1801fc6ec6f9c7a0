"""How many examples a property tries: a few in CI, a thousand with `make test-long`.

A property that names a number of its own names it by `examples`, so that the profile counts.
"""

import os

PROFILE = "HYPOTHESIS_PROFILE"
LONG = 1_000


def is_long() -> bool:
    """Whether the profile `long` is chosen."""
    return os.environ.get(PROFILE) == "long"


def examples(*, quick: int) -> int:
    """`quick`, or a thousand with HYPOTHESIS_PROFILE=long."""
    return LONG if is_long() else quick
