"""Types of fields: numbers, and lists of names."""

from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ErrorType

from producer.json_text import read_json

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
"""None in a flag or in TOML, which have no null."""


def read_none(given: object) -> object:
    """None for the word; other values unchanged."""
    return None if given == NONE else given


def check_distinct(names: tuple[str, ...], noun: str, give: str, once: str) -> tuple[str, ...]:
    """`names`. ValueError for none (what to `give`) and for one given twice (why only `once`)."""
    if not names or not all(names):
        message = f"names no {noun}; give {give}, separated by commas"
        raise ValueError(message)
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        message = f"{', '.join(repeated)} given twice; {once}"
        raise ValueError(message)
    return names


def read_names(given: object, separator: str | None = None) -> object:
    """A text as a list of names: a JSON list, or names between separators. ValueError."""
    if not isinstance(given, str):
        return given
    if not given.startswith("["):
        return [name.strip() for name in given.split(separator)] if separator else [given]
    try:
        return read_json(given)
    except ValueError as error:
        message = f"{given!r} is not a JSON list of names ({error})"
        raise ValueError(message) from error


class UserFields(BaseModel):
    """Base class of what users write: true and false are no numbers.

    pydantic reads them as 1 and 0 wherever a field is a number.
    """

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool_as_number(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401  # of any field
        if not isinstance(value, bool) or info.field_name is None:
            return value
        kinds = _types_in(cls.model_fields[info.field_name].annotation)
        if bool in kinds or kinds.isdisjoint({int, float}):
            return value
        mistake: ErrorType = "int_type" if int in kinds else "float_type"
        raise PydanticKnownError(mistake)


def _types_in(annotation: object) -> set[type]:
    found: set[type] = {annotation} if isinstance(annotation, type) else set()
    return found.union(*map(_types_in, get_args(annotation)))
