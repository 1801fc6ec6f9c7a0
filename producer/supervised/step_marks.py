"""How a prompt and its steps become tokens with a marker after each step. Imports no torch.

Each text between markers is tokenised alone, so that a marker is the same tokens everywhere and a
step's score does not depend on the steps behind it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.errors import NotFoundError, UsageError

FILE: Final = "step_scorer.json"
BETWEEN_STEPS: Final = "\n\n"
"""A blank line: CoCTE's."""


@dataclass(frozen=True, slots=True)
class StepMarks:
    """What a process reward model was trained with."""

    placeholder_token: str
    reward_tokens: tuple[str, str]

    def write(self, folder: Path) -> None:
        """Write it into the folder of the weights."""
        (folder / FILE).write_text(json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n")


def read_step_marks(folder: Path) -> StepMarks:
    """NotFoundError when the folder holds no process reward model."""
    try:
        stored = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return StepMarks(stored["placeholder_token"], tuple(stored["reward_tokens"]))
    except (OSError, ValueError, KeyError, TypeError):
        message = (
            f"{folder} holds no process reward model (it has no readable {FILE}); train one with"
            " `cua-train sql reward-model`"
        )
        raise NotFoundError(message) from None


def step_texts(prompt: str, steps: Sequence[str]) -> list[str]:
    """What stands before each marker; the first begins with the prompt."""
    first = f"{prompt}{BETWEEN_STEPS}" if prompt else ""
    return [f"{BETWEEN_STEPS if at else first}{step}" for at, step in enumerate(steps)]


class Marked(NamedTuple):
    """Tokens and the position of each marker's last token."""

    tokens: tuple[int, ...]
    markers: tuple[int, ...]


def mark_steps(tokenizer: Any, marks: StepMarks, texts: Iterable[str]) -> Marked:  # noqa: ANN401  # transformers
    """Tokens of the texts, each followed by the marker."""
    marker = tokenizer.encode(marks.placeholder_token, add_special_tokens=False)
    tokens: list[int] = []
    markers = []
    for text in texts:
        tokens += tokenizer.encode(text, add_special_tokens=False)
        tokens += marker
        markers.append(len(tokens) - 1)
    return Marked(tuple(tokens), tuple(markers))


def label_tokens(tokenizer: Any, marks: StepMarks) -> tuple[int, int]:  # noqa: ANN401
    """Ids of the two label tokens. UsageError unless each is one token, and another."""
    found = []
    for text in marks.reward_tokens:
        ids = tokenizer.encode(text, add_special_tokens=False)
        if len(ids) != 1:
            message = (
                f"reward_tokens: {text!r} is {len(ids)} tokens of this policy; choose texts that"
                " are one token each"
            )
            raise UsageError(message)
        found.append(int(ids[0]))
    if found[0] == found[1]:
        message = f"reward_tokens: {marks.reward_tokens} are the same token of this policy"
        raise UsageError(message)
    return found[0], found[1]
