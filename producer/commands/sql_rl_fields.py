"""The fields of a file for `cua-train sql rl`: the configuration's and the command's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue

from producer.config import without_unset
from producer.config.fields import ConfigFields
from producer.field_errors import read_as
from producer.numbers import PositiveInt

Algorithm = Literal[
    "grpo",
    "ppo",
    "rloo",
    "prime",
    "dapo",
    "remax",
    "reinforce_plus_plus",
    "reinforce_plus_plus_baseline",
    "opo",
    "gpg",
    "grpo_passk",
]


class SqlRlFields(ConfigFields):
    """Each checked for itself alone."""

    algorithm: Algorithm | None = None
    """Chooses the advantages, unless a core_function does."""
    normalize_by_std: bool = True
    """With the algorithm grpo: divide advantages by the standard deviation of their group."""
    data_path: Path | None = None
    """Data set in BIRD's or Spider's layout, or verl's Parquet file of prompts."""
    eval_data_path: Path | None = None
    """The same, of the questions to evaluate on. None: those of data_path that are held out."""
    skip_invalid: bool = False
    """Leave out questions without a database or with a gold that fails."""
    output_dir: Path | None = None
    """Folder of the result."""
    epochs: PositiveInt | None = None
    """Passes over the questions, in place of num_steps."""
    mini_batch_size: PositiveInt | None = None
    """Prompts of an optimiser step, in place of num_substeps."""
    warmup_ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the steps with a rising learning rate, in place of learning_rate_warmup_steps."""


COMMAND_FIELDS: Final = SqlRlFields.model_fields.keys() - ConfigFields.model_fields.keys()
"""Fields that are not in the configuration; the command derives configuration fields from some."""


def read_sql_rl(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, JsonValue]:
    """The given fields as JSON, each validated separately.

    Raises UsageError that lists every problem, with the user's own field names from `names`.
    """
    fields = without_unset(dict(given))
    read = read_as(SqlRlFields, fields, names)
    return read.model_dump(mode="json", include={*fields})
