"""How many examples a property tries: a few in CI, a thousand with `make test-long`.

A property that names a number of its own names it by `examples`, so that the profile counts. One
whose examples take seconds is tried in parts (`in_parts`): each is a test of its own, with a seed
and servers' tables of its own, so that a long run that was cut off goes on where it stopped.
"""

import os

import pytest

PROFILE = "HYPOTHESIS_PROFILE"
LONG = 1_000
PARTS = 20
"""Of a property in parts: fifty examples each, so that no database is worn by a thousand."""


def is_long() -> bool:
    """Whether the profile `long` is chosen."""
    return os.environ.get(PROFILE) == "long"


def examples(*, quick: int) -> int:
    """`quick`, or a thousand with HYPOTHESIS_PROFILE=long."""
    return LONG if is_long() else quick


def in_parts() -> pytest.MarkDecorator:
    """Parametrizes `part`: 1 to 20 in the long profile, a seed each; otherwise one, without."""
    parts = range(1, PARTS + 1) if is_long() else [None]
    return pytest.mark.parametrize("part", parts, ids=lambda part: f"part-{part or 'all'}")


def examples_of_part(*, quick: int) -> int:
    """`quick`, or a twentieth of a thousand with HYPOTHESIS_PROFILE=long."""
    return LONG // PARTS if is_long() else quick
