"""Imitated answers with mistakes: one place, the share asked for, and rows that tell."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from producer.fine_tuning.mistaken_answers import with_mistakes
from producer.fine_tuning.questions import AnsweredQuestion, read_answered
from producer.process_rewards.sql_text import find_sql
from producer.sql_data.text_to_sql.generate import SyntheticSize, write_synthetic
from producer.supervised.sequences import Message


def _answered(answer: str) -> AnsweredQuestion:
    messages = (Message("user", "Is MAX(a) > 1? ASC"), Message("assistant", answer))
    return AnsweredQuestion(messages, "group", "identity")


def _answers(answers: list[str], share: float, seed: int = 0) -> list[str]:
    rows = with_mistakes([_answered(one) for one in answers], share, Random(seed))
    assert all(row["messages"][0]["content"] == "Is MAX(a) > 1? ASC" for row in rows)
    return [row["messages"][1]["content"] for row in rows]


@pytest.mark.parametrize(
    ("right", "mistaken"),
    [
        ("SELECT a FROM t WHERE b > 15", "SELECT a FROM t WHERE b < 15"),
        ("SELECT a FROM t WHERE b < 15", "SELECT a FROM t WHERE b > 15"),
        ("SELECT MAX(a) FROM t", "SELECT MIN(a) FROM t"),
        ("SELECT MIN(a) FROM t", "SELECT MAX(a) FROM t"),
        ("SELECT AVG(a) FROM t", "SELECT SUM(a) FROM t"),
        ("SELECT SUM(a) FROM t", "SELECT AVG(a) FROM t"),
        ("SELECT a FROM t ORDER BY b ASC LIMIT 1", "SELECT a FROM t ORDER BY b DESC LIMIT 1"),
        ("SELECT a FROM t ORDER BY b DESC LIMIT 1", "SELECT a FROM t ORDER BY b ASC LIMIT 1"),
    ],
)
def test_a_mistake_is_the_other_comparison_function_or_order(right: str, mistaken: str) -> None:
    assert _answers([right], 1.0) == [mistaken]
    assert _answers([right], 0.0) == [right]


def test_an_answer_without_a_place_for_a_mistake_stays_as_it_is() -> None:
    answer = "SELECT COUNT(*) FROM maximum WHERE min = 'DESCARTES' AND sum <> 3"
    assert _answers([answer], 1.0) == [answer]


def test_one_place_of_several_is_mistaken() -> None:
    answer = "SELECT MAX(a) FROM t WHERE b > 15"
    found = {one for seed in range(20) for one in _answers([answer], 1.0, seed)}
    assert found == {"SELECT MIN(a) FROM t WHERE b > 15", "SELECT MAX(a) FROM t WHERE b < 15"}


def test_about_the_share_of_the_answers_is_mistaken_and_a_seed_gives_the_same() -> None:
    answers = ["SELECT MAX(a) FROM t"] * 1000
    found = _answers(answers, 0.3)
    assert found == _answers(answers, 0.3)
    # 300 expected; four standard deviations are 58.
    assert 242 <= found.count("SELECT MIN(a) FROM t") <= 358


def test_a_mistaken_answer_of_a_synthetic_question_has_other_rows(tmp_path: Path) -> None:
    templates = ("filter", "count", "aggregate", "top", "join_filter", "group_count")
    write_synthetic(tmp_path, 0, SyntheticSize(3, 1, 2, templates, most_tables=2))
    answered = read_answered(tmp_path, None)
    mistaken = with_mistakes(answered, 1.0, Random(0))
    num_changed = 0
    for question, row in zip(answered, mistaken, strict=True):
        right, wrong = question.messages[-1].content, row["messages"][-1]["content"]
        if right == wrong:
            continue
        num_changed += 1
        database = question.group.split("/")[0]
        path = tmp_path / "train_databases" / database / f"{database}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            rows = []
            for text in (right, wrong):
                span = find_sql(text)
                assert span is not None
                rows.append(set(connection.execute(text[span.start : span.end])))
        assert rows[0] != rows[1], wrong
    assert num_changed >= 12
