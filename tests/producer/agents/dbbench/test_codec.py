"""The DB Bench format: two actions, and what is invalid."""

import pytest

from producer.agents.dbbench.codec import DbBenchCodec
from producer.codecs.codec import CannotEncodeError
from schemas.actions import Answer, ExecuteSql, Terminate, Wait

CODEC = DbBenchCodec()


def actions_of(text: str) -> list[object]:
    return [call.action for call in CODEC.parse(text, 0, 0)]


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "SELECT a\nFROM t -- all\nWHERE b = 'x'", "SELECT '`', \"#\""]
)
def test_an_operation_is_read_as_it_was_written(sql: str) -> None:
    assert actions_of(CODEC.encode(ExecuteSql(sql=sql), 0, 0)) == [ExecuteSql(sql=sql)]


@pytest.mark.parametrize(
    "block",
    [
        "```sql\r\nSELECT 1\r\n```",
        "```SQL\nSELECT 1\n```",
        "```sql  \nSELECT 1\n```",
        "````sql\nSELECT 1\n````",
    ],
)
def test_a_block_may_end_its_lines_as_elsewhere_and_name_sql_in_capitals(block: str) -> None:
    assert actions_of(f"Action: Operation\n{block}") == [ExecuteSql(sql="SELECT 1")]


@pytest.mark.parametrize("text", ["[(1, 'a')]", "done", "Action: Operation", ""])
def test_an_answer_ends_the_session(text: str) -> None:
    encoded = CODEC.encode(Answer(text=text), 0, 0)
    assert actions_of(encoded) == [Answer(text=text), Terminate()]


def test_thoughts_before_the_action_are_passed_over() -> None:
    text = (
        "Let me look.\n\nAction: Operation\nFirst all of it:\n```sql\nSELECT * FROM t\n```\nThen."
    )
    assert actions_of(text) == [ExecuteSql(sql="SELECT * FROM t")]


def test_only_the_line_of_the_answer_is_the_answer() -> None:
    assert actions_of("Action: Answer\nFinal Answer: [(1,)]\nbecause") == [
        Answer(text="[(1,)]"),
        Terminate(),
    ]


def test_the_first_action_counts() -> None:
    text = "Action: Answer\nFinal Answer: 1\nAction: Operation\n```sql\nSELECT 1\n```"
    assert actions_of(text) == [Answer(text="1"), Terminate()]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no Action"),
        ("SELECT 1", "no Action"),
        ("```sql\nSELECT 1\n```", "no Action"),
        ("action: operation\n```sql\nSELECT 1\n```", "no Action"),
        ("Action: Select", "no Action"),
        ("Action: Operation\nSELECT 1", "no SQL between"),
        ("Action: Operation\n```sql\nSELECT 1", "no SQL between"),
        ("Action: Operation\n```\nSELECT 1\n```", "no SQL between"),
        ("Action: Operation\n```mysql\nSELECT 1\n```", "no SQL between"),
        ("Action: Operation\n~~~sql\nSELECT 1\n~~~", "no SQL between"),
        ("```sql\nSELECT 1\n```\nAction: Operation", "no SQL between"),
        ("Action: Answer [(1,)]", "Final Answer"),
        ("Action: Answer Final Answer: 1", "Final Answer"),
        ("Final Answer: 1\nAction: Answer", "Final Answer"),
    ],
)
def test_anything_else_is_one_parse_error(text: str, reason: str) -> None:
    (call,) = CODEC.parse(text, 0, 0)
    assert (call.action, call.error_type) == (None, "parse")
    assert reason in str(call.error_message)


@pytest.mark.parametrize(
    "action", [Wait(), Terminate(), Answer(text="1\n2"), ExecuteSql(sql="SELECT '```'")]
)
def test_what_would_be_read_as_something_else_is_not_written(action: Answer) -> None:
    with pytest.raises(CannotEncodeError):
        CODEC.encode(action, 0, 0)
