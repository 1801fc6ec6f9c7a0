"""Sessions of DB Bench: what is said, how they end, what they come to."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pydantic import JsonValue

from producer.agents.dbbench.codec import DbBenchCodec
from producer.agents.dbbench.environment import DbBenchEnvironment
from producer.codecs.codec import CONTEXT_FULL, parse_error
from producer.environments.environment import ActionRefusedError, EnvironmentFailedError
from producer.rollouts.requests import Act
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Click, ExecuteSql
from schemas.entry import Column, EntryContent, TableInfo
from schemas.session import SessionEnded
from schemas.turn import TakenAction

TABLE = TableInfo(
    name="my table",
    columns=(Column(name="id", type="INT"), Column(name="na`me", type="TEXT")),
    rows=((1, "Ann, Ms"), ("2", None), (3, "O'Brien")),
)
CODEC = DbBenchCodec()
DELETED = "104a8ce09828183b4d52c863c3aae71d"


def task_of(
    *,
    direct: tuple[tuple[JsonValue, ...], ...] | None = None,
    md5: str | None = None,
    sql: str = "SELECT 1",
    table: TableInfo = TABLE,
) -> Task:
    entry = EntryContent(
        kind="dbbench",
        entry_id="0",
        instruction="Do it.",
        table_info=table,
        answer_direct=direct,
        answer_md5=md5,
        sql=sql,
    )
    return Task("0", "0", "Do it.", None, None, 3, None, None, entry=entry)


def play(task: Task, completions: Sequence[str]) -> tuple[list[str | None], SessionEnded, Verdict]:
    """What was said after each completion, how it ended, and the verdict."""
    environment = DbBenchEnvironment()
    observation = environment.open(task, 0)
    said, taken = [], list[TakenAction]()
    for completion in completions:
        acted = Act(CODEC.parse(completion, 0, 0), observation).perform(environment)
        assert not hasattr(acted.observation, "png")
        said.append(getattr(acted.observation, "text", None))
        taken += acted.actions
    verdict = environment.judge(task, Evidence((), tuple(taken), len(completions)))
    environment.close()
    assert verdict.facts is not None
    (ended,) = verdict.facts(UUID(int=1), datetime.now(UTC))
    assert isinstance(ended, SessionEnded)
    return said, ended, verdict


def operation(sql: str) -> str:
    return f"Action: Operation\n```sql\n{sql}\n```"


def answer(text: str) -> str:
    return f"Action: Answer\nFinal Answer: {text}"


def test_rows_and_errors_come_back_as_text() -> None:
    said, ended, _ = play(
        task_of(direct=((2,),)),
        [
            operation("SELECT * FROM `my table` ORDER BY id"),
            operation("SELECT nothing FROM `my table`"),
            operation("UPDATE `my table` SET id = 4 WHERE id = 9"),
        ],
    )
    assert said[0] == "[(1, 'Ann, Ms'), (2, None), (3, \"O'Brien\")]"
    assert str(said[1]).startswith("Error: ")
    assert "nothing" in str(said[1])
    assert said[2] == "[]"
    assert (ended.num_rounds, ended.num_operations, ended.num_sql_errors) == (3, 3, 1)


def test_many_rows_are_cut_and_it_is_said() -> None:
    table = TableInfo(
        name="t",
        columns=(Column(name="id", type="INT"),),
        rows=tuple((number,) for number in range(300)),
    )
    said, _, _ = play(task_of(direct=((2,),), table=table), [operation("SELECT id FROM t")])
    assert str(said[0]).endswith(", (199,), ...]\nOnly the first 200 rows are shown.")


def test_a_right_answer_completes_the_session() -> None:
    _, ended, verdict = play(task_of(direct=((2, "b"),)), [answer("[(2, 'b')]")])
    assert (ended.session_status, ended.outcome) == ("completed", "correct")
    assert (ended.answer, ended.table_hash) == ("[(2, 'b')]", None)
    assert verdict.success


def test_a_wrong_answer_completes_it_too() -> None:
    _, ended, verdict = play(task_of(direct=((2, "b"),)), [answer("[(2, 'c')]")])
    assert (ended.session_status, ended.outcome) == ("completed", "incorrect")
    assert not verdict.success


def test_a_changed_table_is_judged_by_its_state_whatever_is_answered() -> None:
    delete = operation("DELETE FROM `my table` WHERE id < 3")
    _, ended, _ = play(task_of(md5=DELETED), [delete, answer("nonsense")])
    assert (ended.session_status, ended.outcome) == ("completed", "correct")
    assert ended.table_hash == DELETED


def test_correct_and_not_completed_is_possible() -> None:
    delete = operation("DELETE FROM `my table` WHERE id < 3")
    _, ended, verdict = play(task_of(md5=DELETED), [delete, delete, delete])
    assert (ended.session_status, ended.outcome) == ("task_limit_reached", "correct")
    assert ended.answer is None
    assert verdict.success
    _, ended, _ = play(task_of(md5=DELETED), [delete, "I am done."])
    assert (ended.session_status, ended.outcome) == ("agent_validation_failed", "correct")
    assert "no Action" in str(ended.error_message)


def test_no_answer_is_incorrect_even_where_the_gold_has_no_rows() -> None:
    _, ended, _ = play(task_of(direct=()), [operation("SELECT 1")] * 3)
    assert (ended.session_status, ended.outcome) == ("task_limit_reached", "incorrect")


def test_a_full_context_is_a_status_of_its_own() -> None:
    full = parse_error("parse", "the prompt has 9,000 tokens").model_copy(
        update={"tool_name": CONTEXT_FULL}
    )
    environment = DbBenchEnvironment()
    task = task_of(direct=((1,),))
    environment.open(task, 0)
    verdict = environment.judge(task, Evidence((), (full,), 1))
    environment.close()
    assert verdict.details["session_status"] == "agent_context_limit"


def test_order_counts_where_the_gold_orders() -> None:
    gold = ((2,), (1,))
    ordered = task_of(direct=gold, sql="SELECT id FROM t ORDER BY id DESC")
    unordered = task_of(direct=gold, sql="SELECT id FROM t")
    assert play(ordered, [answer("[(1,), (2,)]")])[1].outcome == "incorrect"
    assert play(unordered, [answer("[(1,), (2,)]")])[1].outcome == "correct"


def test_sessions_never_see_each_others_changes() -> None:
    task = task_of(direct=((3,),))
    play(task, [operation("DELETE FROM `my table`")])
    said, _, _ = play(task, [operation("SELECT COUNT(*) FROM `my table`")])
    assert said == ["[(3,)]"]


def test_a_database_refuses_clicks() -> None:
    environment = DbBenchEnvironment()
    environment.open(task_of(direct=((1,),)), 0)
    with pytest.raises(ActionRefusedError, match="cannot click"):
        environment.act(Click(x=1, y=1))
    environment.close()
    environment.close()
    with pytest.raises(EnvironmentFailedError, match="not open"):
        environment.act(ExecuteSql(sql="SELECT 1"))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (((1,),), r"row_list\[0\]: it has 1 values; there are 2 columns"),
        (((1, "a"), ("x", "b")), r"row_list\[1\], column id: 'x' is no number"),
        (((2**31, "a"),), "out of range"),
        (((1, ["a"]),), "is no text"),
    ],
)
def test_rows_that_do_not_fit_are_named(
    rows: tuple[tuple[JsonValue, ...], ...], reason: str
) -> None:
    table = TABLE.model_copy(update={"rows": rows})
    with pytest.raises(EnvironmentFailedError, match=reason):
        DbBenchEnvironment().open(task_of(direct=((1,),), table=table), 0)
