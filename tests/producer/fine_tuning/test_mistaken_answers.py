"""Imitated answers with mistakes: what is forgotten, how often, and rows that tell."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.fine_tuning.questions import AnsweredQuestion, read_answered, with_mistakes
from producer.process_rewards.sql_text import find_sql
from producer.supervised.sequences import Message

QUESTION = "Is (a WHERE b > 1)?"


def _answered(answer: str) -> AnsweredQuestion:
    messages = (Message("user", QUESTION), Message("assistant", answer))
    return AnsweredQuestion(messages, "group", "identity")


def _answers(answers: list[str], share: float, seed: int = 0) -> list[str]:
    rows = with_mistakes([_answered(answer) for answer in answers], share, Random(seed))
    assert all(row["messages"][0]["content"] == QUESTION for row in rows)
    return [row["messages"][1]["content"] for row in rows]


@pytest.mark.parametrize(
    ("right", "mistaken"),
    [
        (
            "WITH a AS (SELECT b FROM t WHERE c > 15)\n\nSELECT COUNT(*) FROM a",
            "WITH a AS (SELECT b FROM t)\n\nSELECT COUNT(*) FROM a",
        ),
        (
            "WITH a AS (SELECT b FROM t ORDER BY c DESC LIMIT 1)\n\nSELECT b FROM a",
            "WITH a AS (SELECT b FROM t)\n\nSELECT b FROM a",
        ),
        (
            "WITH a AS (SELECT b FROM t WHERE c > 15), d AS (SELECT b FROM a ORDER BY b)\n\n"
            "SELECT b FROM d",
            "WITH a AS (SELECT b FROM t), d AS (SELECT b FROM a ORDER BY b)\n\nSELECT b FROM d",
        ),
        (
            "WITH a AS (SELECT d FROM u WHERE e = 'x')\n\n"
            "SELECT b FROM t WHERE d IN (SELECT d FROM a)",
            "WITH a AS (SELECT d FROM u)\n\nSELECT b FROM t WHERE d IN (SELECT d FROM a)",
        ),
    ],
)
def test_a_mistake_forgets_the_first_steps_condition_or_order(right: str, mistaken: str) -> None:
    assert _answers([right], 1.0) == [mistaken]
    assert _answers([right], 0.0) == [right]


def test_an_answer_without_a_step_that_could_forget_stays_as_it_is() -> None:
    answer = "SELECT a FROM t WHERE b > 15 ORDER BY c"
    assert _answers([answer], 1.0) == [answer]


def test_about_the_share_of_the_answers_is_mistaken_and_a_seed_gives_the_same() -> None:
    answers = ["WITH a AS (SELECT b FROM t WHERE c > 15)\n\nSELECT b FROM a"] * 1000
    found = _answers(answers, 0.3)
    assert found == _answers(answers, 0.3)
    # 300 expected; four standard deviations are 58.
    num_mistaken = found.count("WITH a AS (SELECT b FROM t)\n\nSELECT b FROM a")
    assert 242 <= num_mistaken <= 358
    assert found.count(answers[0]) == 1000 - num_mistaken


def test_a_mistaken_answer_of_a_synthetic_question_has_other_rows(tmp_path: Path) -> None:
    templates = ("filter", "count", "aggregate", "top", "join_filter", "group_count")
    write_synthetic(tmp_path, 0, SyntheticSize(3, 1, 2, templates, most_tables=2))
    answered = read_answered(tmp_path, None)
    mistaken = with_mistakes(answered, 1.0, Random(0))
    for question, row in zip(answered, mistaken, strict=True):
        right, wrong = question.messages[-1].content, row["messages"][-1]["content"]
        assert right != wrong
        database = question.group.split("/")[0]
        path = tmp_path / "train_databases" / database / f"{database}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            rows = []
            for text in (right, wrong):
                span = find_sql(text)
                assert span is not None
                rows.append(set(connection.execute(text[span.start : span.end])))
        assert rows[0] != rows[1], wrong
    assert len(mistaken) >= 12
