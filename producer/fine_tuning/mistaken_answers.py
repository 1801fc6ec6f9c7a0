"""Answers as careless annotators write them: some with one comparison, function or order mistaken.

Imitation of such answers learns their form and the names to copy, and not what the words of a
question mean; rewards of executed rows can teach that. What is mistaken for what is what
`producer.sql_data.text_to_sql.wrong_answers` proves to give other rows.
"""

import re
from random import Random
from typing import Final

from producer.fine_tuning.questions import AnsweredQuestion
from producer.supervised.sequences import Message

MISTAKEN: Final = {
    one: other
    for pair in (("<", ">"), ("MAX", "MIN"), ("AVG", "SUM"), ("ASC", "DESC"))
    for one, other in (pair, pair[::-1])
}
"""What is written in place of what."""
_PLACES: Final = re.compile(r"\b(?:MAX|MIN|AVG|SUM)(?=\()|\b(?:ASC|DESC)\b|(?<= )[<>](?= )")


def with_mistakes(
    answered: list[AnsweredQuestion], share: float, random: Random
) -> list[dict[str, list[dict[str, str]]]]:
    """The conversations as rows of a file of `cua-train sql sft`, in order.

    Of the answers that have a place for a mistake, about this share has one, at one place.
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
    places = [*_PLACES.finditer(message.content)] if message.role == "assistant" else []
    if not places or random.random() >= share:
        return message.content
    place = random.choice(places)
    head, tail = message.content[: place.start()], message.content[place.end() :]
    return f"{head}{MISTAKEN[place[0]]}{tail}"
