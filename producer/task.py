"""A task: the instruction an agent gets and how its outcome is judged. Pure data."""

import unicodedata
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import AfterValidator

from schemas.entry import EntryContent

Split = Literal["train", "eval"]
Difficulty = Literal["easy", "medium", "hard"]
RECORDED: Final = "recorded"
"""The `source_type` of a task of another trainer's loop, which says by itself what is solved."""


def _check_name(name: str) -> str:
    """NFC-normalise a name, so that names that look the same are equal. Any script is accepted.

    Raises ValueError for an empty name, control characters and line breaks.
    """
    name = unicodedata.normalize("NFC", name)
    if not name.strip():
        message = "must not be empty"
        raise ValueError(message)
    if any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in name):
        message = f"must not contain control characters or line breaks, but is {name!r}"
        raise ValueError(message)
    return name


Name = Annotated[str, AfterValidator(_check_name)]
"""One line of text in any script."""


def split_joined(text: str) -> list[str]:
    """The device queries, or their answers, that `&` separates."""
    return [part.strip() for part in text.split("&")]


def joined_goals(queries: str, answers: str) -> list[tuple[str, str]]:
    """(device query, its expected answer) of each query in `queries`, which `&` separates.

    The answer to a single query is kept whole: it may contain `&`. Raises ValueError unless there
    is one answer for each query.
    """
    names = split_joined(queries)
    parts = split_joined(answers) if len(names) > 1 else [answers]
    if len(names) != len(parts):
        count = "1 answer" if len(parts) == 1 else f"{len(parts)} answers"
        message = (
            f"expected: {count} ({answers!r}) for {len(names)} queries ({queries!r}); give one for"
            " each, separated by &"
        )
        raise ValueError(message)
    return list(zip(names, parts, strict=True))


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Its row id in the log hashes every field, so a changed field is another task."""

    task_id: str
    """`train_02_enable_wifi`."""
    name: str
    description: str
    """The instruction given to the agent."""
    difficulty: Difficulty | None
    category: str | None
    """app, settings, navigation, system, input."""
    max_steps: int
    """Maximum number of turns."""
    validation_query: str | None
    """Name of a device query (`wifi_enabled`), or several that are joined by `&`; None: `judge`
    decides."""
    expected_result: str | None
    """The query's answer for success, as text: `True`, `255`, `com.android.settings`; of joined
    queries their answers, joined too."""
    setup: tuple[str, ...] = ()
    """Shell commands that put a fresh device into a state where the task is not solved yet
    (`settings put global wifi_on 0`)."""
    tags: tuple[str, ...] = ()
    app_name: str | None = None
    source_type: str = "custom"
    split: Split = "train"
    validation_config: dict[str, str] = field(default_factory=dict)
    """Recorded with the task; no query reads it."""
    judge: str | None = None
    """Of a task without a device query: `agent`, `environment`, or the URL of an OpenAI-compatible
    endpoint; None: the task cannot be judged."""
    judge_model: str | None = None
    """Whom the endpoint asks; None: no endpoint judges, or it is not known yet."""
    entry: EntryContent | None = None
    """Of tasks about a database: what it holds and the gold; the environment judges it. None: a
    device query or `judge` decides."""

    @property
    def validation_type(self) -> Literal["shell", "agent", "model", "environment"] | None:
        """How it is judged; None: it cannot be judged."""
        if self.entry is not None:
            return "environment"
        if self.validation_query is not None:
            return "shell"
        if self.judge is None:
            return None
        if self.judge == "environment":
            return "environment"
        return "agent" if self.judge == "agent" else "model"

    @property
    def is_judged(self) -> bool:
        """Whether a validator exists for it."""
        return self.validation_type is not None
