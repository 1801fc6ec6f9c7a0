"""Answers as careless annotators write them: some forget the first step's condition or order.

Imitation of such answers learns their form, the names to copy, and to forget as often; rewards of
executed rows can teach not to. `producer.agents.text_to_sql.data.wrong_answers` proves
that an answer without its condition or order gives other rows.
"""

import re
from random import Random
from typing import Final

from producer.fine_tuning.questions import AnsweredQuestion
from producer.supervised.sequences import Message

_FORGOTTEN: Final = re.compile(r" (?:WHERE|ORDER BY) [^()]*(?=\))")


def with_mistakes(
    answered: list[AnsweredQuestion], share: float, random: Random
) -> list[dict[str, list[dict[str, str]]]]:
    """The conversations as rows of a file of `cua-train sql sft`, in order.

    About this share of the answers with a condition or an order in a step's parentheses is without
    the first of them.
    """
    return [
        {
            "messages": [
                {
                    "role": message.role,
                    "content": _mistaken(message, share, random),
                }
                for message in question.messages
            ]
        }
        for question in answered
    ]


def _mistaken(message: Message, share: float, random: Random) -> str:
    if message.role != "assistant" or random.random() >= share:
        return message.content
    return _FORGOTTEN.sub("", message.content, count=1)
