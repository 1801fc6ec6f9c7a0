"""Converts configuration files of other projects to our own fields.

Agent-PEFT's assignments become fields of `cua-train run`, verl's trainer files those of `sql rl`,
RewardSQL's files those of `sql sft` and `sql reward-model`. Other files have our fields already.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.errors import UsageError
from producer.foreign_files.agent_peft import is_agent_peft, read_agent_peft
from producer.foreign_files.parsing import parse_file
from producer.foreign_files.reading import Reading
from producer.foreign_files.rewardsql_models import (
    is_guessed,
    is_rewardsql,
    objective_of,
    read_original,
)
from producer.foreign_files.verl_trainer import is_verl_trainer, read_verl_trainer

logger = logging.getLogger(__name__)

MAX_REASONS_SHOWN: Final = 8
"""Maximum reasons that are shown one by one; if there are more, only a summary is shown."""


class Origin(NamedTuple):
    """A kind of file of another project."""

    title: str
    command: str
    """The `cua-train` command that accepts such a file."""


AGENT_PEFT: Final = Origin("an Agent-PEFT assignment", "run")
VERL: Final = Origin("a verl trainer file", "sql rl")
SFT: Final = Origin("a RewardSQL file", "sql sft")
REWARD_MODEL: Final = Origin("a RewardSQL file", "sql reward-model")


@dataclass(frozen=True, slots=True)
class Converted:
    """A file in our own fields, and notes about the conversion."""

    path: Path
    origin: Origin | None
    """None if the file already had our fields."""
    read: Reading

    @property
    def title(self) -> str:
        """The kind of file, for messages."""
        return "a configuration" if self.origin is None else self.origin.title

    @property
    def fields(self) -> dict[str, Any]:
        """The fields, under our names."""
        return self.read.given

    def name_of(self, field: str) -> str:
        """The file's name for one of our fields."""
        return self.read.names.get(field, field)

    def log(self) -> None:
        """Log the fields that are not honoured as written, with reasons."""
        reasons = self.read.reasons()
        shown = reasons if len(reasons) <= MAX_REASONS_SHOWN else self.read.summary()
        for line in [*self.read.told, *shown, *self.read.unknown_line()]:
            logger.warning("%s: %s", self.path.name, line)
        for line in reasons if shown is not reasons else ():
            logger.debug("%s: %s", self.path.name, line)


def convert(
    path: Path,
    command: str | None = None,
    *,
    kind: str | None = None,
    overridden: Collection[str] = (),
    has_flash_attention: bool = False,
) -> Converted:
    """Read a file of any kind.

    `command` is the `cua-train` command that reads it; a file for another command is refused. None
    accepts any. `kind` is that of a reward model, process or pairwise; None decides by the file's
    fields. `overridden` are our fields that flags set, whatever the file says. Without
    FlashAttention, its field has no effect. Raises UsageError that names the file and fields that
    cannot be honoured.
    """
    fields = parse_file(path)
    read = Reading(overridden=frozenset(overridden))
    if is_agent_peft(fields):
        origin = AGENT_PEFT
        read_agent_peft(read, path, fields)
    elif is_verl_trainer(fields):
        origin = VERL
        read_verl_trainer(read, path, fields)
    elif is_rewardsql(fields, command):
        objective = objective_of(fields, command, kind)
        origin = SFT if objective == "sft" else REWARD_MODEL
        if command is None and is_guessed(fields):
            read.told.append(
                "the file does not say what it trains; converted for `cua-train sql sft`. For a"
                " reward model add input_key and label_key, or chosen_key and rejected_key"
            )
        read_original(read, fields, objective, has_flash_attention=has_flash_attention)
    else:
        read.given |= fields
        return Converted(path, None, read)
    if command not in {None, origin.command}:
        message = f"{path} is {origin.title}; use `cua-train {origin.command} --config {path}`"
        raise UsageError(message)
    if read.problems:
        first = f"{path} has values that cannot be honoured; change or remove these fields:"
        raise UsageError("\n  ".join([first, *read.problems]))
    return Converted(path, origin, read)
