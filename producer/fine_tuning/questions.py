"""A text-to-SQL data set as conversations of prompts and gold answers.

The environment `text_to_sql` and its codec write them in the same form as in sampling.
"""

import logging
import re
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from producer.agents.text_to_sql.codec import SYSTEM_PROMPT, TextToSqlCodec
from producer.agents.text_to_sql.data.databases import database_sha256
from producer.agents.text_to_sql.data.sound_questions import sound_questions
from producer.agents.text_to_sql.data.tasks import question_prompt
from producer.errors import CuaTrainError, UsageError
from producer.supervised.sequences import Message
from schemas.actions import Answer

logger = logging.getLogger(__name__)

_FORGOTTEN: Final = re.compile(r" (?:WHERE|ORDER BY) [^()]*(?=\))")


class AnsweredQuestion(NamedTuple):
    """A question with its gold answer."""

    messages: tuple[Message, ...]
    group: str
    """Database and number of the first question with the same prompt."""
    identity: str
    """Hash of the whole question, including its database's content."""


def read_answered(
    folder: Path, system: str | None, *, skip_invalid: bool = False
) -> list[AnsweredQuestion]:
    """Read the questions of the split `train`. Raises UsageError that names file and field.

    Uses the gold in CoCTE form if the data set gives one, else its SQL unchanged. `system` replaces
    the environment's own system prompt. `skip_invalid` is passed to `sound_questions`.
    """
    try:
        questions, statements, _ = sound_questions(folder, "train", skip_invalid=skip_invalid)
    except CuaTrainError as error:
        message = f"data_path: {error.message}"
        raise UsageError(message, ways=error.ways) from error
    without = sum(question.cocte is None for question in questions)
    if without:
        logger.warning(
            "%d of %d questions in %s have no gold in CoCTE form; their SQL is learned as it is",
            *(without, len(questions), folder),
        )
    codec, found = TextToSqlCodec(), []
    first_with: dict[str, str] = {}
    for question in questions:
        answer = codec.encode(Answer(text=question.cocte or question.sql), 0, 0)
        messages = (
            Message("system", system or SYSTEM_PROMPT),
            Message("user", question_prompt(question, statements[question.database])),
            Message("assistant", answer),
        )
        name = f"{question.db_id}/{question.question_id}"
        group = first_with.setdefault(messages[1].content, name)
        identity = f"{name} {database_sha256(question.database)} {messages!r}"
        found.append(AnsweredQuestion(messages, group, identity))
    return found


def with_mistakes(
    answered: list[AnsweredQuestion], share: float, random: Random
) -> list[dict[str, list[dict[str, str]]]]:
    """The conversations as rows for `cua-train sql sft`, some of them with planted mistakes.

    About this `share` of the answers with a condition or an order inside a step lack the first one,
    as if by careless annotators. Imitation then learns to forget it as often, and rewards from
    executed rows can undo that.
    """
    return [
        {
            "messages": [
                {"role": message.role, "content": _mistaken(message, share, random)}
                for message in question.messages
            ]
        }
        for question in answered
    ]


def _mistaken(message: Message, share: float, random: Random) -> str:
    if message.role != "assistant" or random.random() >= share:
        return message.content
    return _FORGOTTEN.sub("", message.content, count=1)
