"""Numbers that a field may hold."""

from typing import Annotated

from pydantic import Field

PositiveInt = Annotated[int, Field(ge=1, le=1_000_000)]
NonNegativeInt = Annotated[int, Field(ge=0, le=1_000_000)]
"""The tables' integers have 32 bits: a larger number would park the training's stream."""
BatchPart = Annotated[int, Field(ge=1, le=10_000)]
"""The product of two of them, the batch size, has a column too."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]

NONE = "none"
"""How a flag and TOML, which have no null, say None."""


def read_none(given: object) -> object:
    """None for the word; everything else as it is."""
    return None if given == NONE else given
