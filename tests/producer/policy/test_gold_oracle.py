"""The scripted policy of data sets: what it answers when a gold is odd."""

from uuid import UUID

import pytest

from producer.agents.dbbench.codec import DbBenchCodec
from producer.agents.dbbench.data.tasks import task_of
from producer.policy.policy import SampleRequest
from producer.policy.scripted_learner import UNREADABLE, GoldOracle
from schemas.actions import Answer, ExecuteSql
from schemas.entry import Column, EntryContent, TableInfo
from tests.support.turns import past_turn


def asked(sql: str, said: str | None) -> SampleRequest:
    """What it is asked in the first round, or once the environment has `said` something."""
    entry = EntryContent(
        kind="dbbench",
        entry_id="1",
        instruction="Which?",
        table_info=TableInfo(name="t", columns=(Column(name="a", type="INT"),), rows=()),
        answer_direct=((1,), (2,)),
        sql=sql,
        skills=("select",),
    )
    past = past_turn(None, "", None)
    history = () if said is None else (past,)
    return SampleRequest(UUID(int=1), task_of(entry), history, None, 1.0, 64, 1, text=said)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("[(1,), (2,)]", "[(1,), (2,)]"),
        ("[(1,), ...]\nOnly the first 1 rows are shown.", "[[1], [2]]"),
        ("Error: near\n(: syntax error", "Error: near (: syntax error"),
        ("", "done"),
    ],
)
def test_rows_that_were_not_all_shown_are_answered_from_the_gold(said: str, answer: str) -> None:
    oracle = GoldOracle(DbBenchCodec(), noise=0.0, seed=0, asks_first=True)
    (completion,) = oracle.sample([asked("SELECT a FROM t", said)])
    assert completion.actions[0].action == Answer(text=answer)


def test_a_gold_that_the_format_cannot_hold_is_a_completion_without_an_action() -> None:
    oracle = GoldOracle(DbBenchCodec(), noise=0.0, seed=0, asks_first=True)
    fenced, plain = oracle.sample([asked("SELECT '```'", None), asked("SELECT a FROM t", None)])
    assert fenced.text == UNREADABLE
    assert plain.actions[0].action == ExecuteSql(sql="SELECT a FROM t")
