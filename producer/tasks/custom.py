"""A task as a user writes it: an object, or the instruction alone."""

import re
import unicodedata
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from producer.agents.android.queries import find_query
from producer.agents.android.query_descriptions import describe_unknown_query, describe_wrong_answer
from producer.task import Split, Task

Difficulty = Literal["easy", "medium", "hard"]
DEFAULT_MAX_STEPS = 20
"""Turns of a custom task without `max_steps`; the recipe's max_turns."""
MAX_SLUG_CHARS: Final = 40
MAX_TITLE_CHARS: Final = 80
ONLY_SHOWN: Final = frozenset({"judged", "source_type"})
"""Fields that `cua-train tasks show --json` prints and that follow from the others."""
OF_OTHER_SOURCES: Final = frozenset({"judge", "judge_model", "entry"})
"""Fields of every task that a task as a user writes it does not have."""


def _check_name(name: str) -> str:
    """NFC-normalized, so that names that look the same are the same. Any script is accepted."""
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


class CustomTask(BaseModel):
    """A task as a user writes it. A text is the instruction of a task without a validator."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task_id: Name
    """Identifies the task in reports and tables."""
    description: str = Field(min_length=1, pattern=r"\S")
    """The instruction."""
    name: Name | None = None
    """Title for people; None: the task_id."""
    difficulty: Difficulty | None = None
    """For filters; None: unrated."""
    category: str | None = None
    """For filters; None: none."""
    max_steps: int = Field(DEFAULT_MAX_STEPS, ge=1, le=1_000_000)
    """Turns the agent may take."""
    validation_query: str | None = None
    """Device query (`wifi_enabled`, `setting_global/wifi_on`); None: it cannot be judged."""
    expected: str | int | bool | None = None
    """The answer that solves the task; numbers and booleans are compared as text."""
    validation_config: dict[str, str] = {}
    """Only empty: no query takes parameters, other than in its name."""
    setup: tuple[str, ...] = ()
    """Shell commands run before the episode."""
    tags: tuple[str, ...] = ()
    """Recorded with the task."""
    app_name: str | None = None
    """Recorded with the task; None: no particular app."""
    split: Split = "train"
    """Whether the task is for training or evaluation."""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, given: Any) -> Any:  # noqa: ANN401  # whatever was passed
        """An instruction alone, or what `cua-train tasks show --json` prints."""
        if isinstance(given, dict):
            shown = {key: value for key, value in given.items() if key not in ONLY_SHOWN}
            if "expected_result" in shown and "expected" not in shown:
                shown["expected"] = shown.pop("expected_result")
            # Of a task of a source that is no file; there it has a value.
            return {k: v for k, v in shown.items() if k not in OF_OTHER_SOURCES or v is not None}
        if not isinstance(given, str):
            return given
        text = unicodedata.normalize("NFC", given.strip())
        return {"task_id": text_task_id(text), "name": _title(text), "description": text}

    @model_validator(mode="after")
    def _validator_is_complete(self) -> Self:
        if self.validation_query is not None and find_query(self.validation_query) is None:
            message = f"validation_query: {describe_unknown_query(self.validation_query)}"
            raise ValueError(message)
        if self.validation_query is not None and self.expected is None:
            message = (
                "expected: required with validation_query; give the answer that solves the task"
            )
            raise ValueError(message)
        if self.validation_query is None and self.expected is not None:
            message = "expected: needs a validation_query to compare with"
            raise ValueError(message)
        if self.validation_config:
            message = (
                "validation_config: no query takes parameters; leave it out (the name of some"
                " queries ends in one, such as app_running_PACKAGE)"
            )
            raise ValueError(message)
        if self.validation_query is not None:
            wrong = describe_wrong_answer(self.validation_query, str(self.expected))
            if wrong is not None:
                message = f"{wrong}; `cua-train tasks queries` lists what each query answers"
                raise ValueError(message)
        return self

    def task(self, source_type: str) -> Task:
        """The Task."""
        return Task(
            task_id=self.task_id,
            name=self.name or self.task_id,
            description=self.description,
            difficulty=self.difficulty,
            category=self.category,
            max_steps=self.max_steps,
            validation_query=self.validation_query,
            expected_result=None if self.expected is None else str(self.expected),
            setup=self.setup,
            tags=self.tags,
            app_name=self.app_name,
            source_type=source_type,
            split=self.split,
            validation_config=self.validation_config,
        )


def text_task_id(text: str) -> str:
    """The id of a task that is an instruction alone: the same text, the same id."""
    words = re.sub(r"[\W_]+", "_", text.casefold()).strip("_")[:MAX_SLUG_CHARS].strip("_")
    return f"{words or 'task'}_{sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _title(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MAX_TITLE_CHARS else f"{words[: MAX_TITLE_CHARS - 1]}…"
