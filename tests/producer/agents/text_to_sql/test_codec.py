"""The text-to-SQL codec: a query and the end, or a parse error."""

import pytest

from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.codecs.codec import CannotEncodeError
from schemas.actions import Answer, Click, Terminate

CODEC = TextToSqlCodec()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "```sql\nSELECT 1\n```",
        "First the cheap ones.\n```sql\nSELECT 0\n```\nNo:\n```sql\nSELECT 1\n```",
    ],
)
def test_a_query_is_the_answer_and_the_end(text: str) -> None:
    answer, end = CODEC.parse(text, 0, 0)
    assert answer.action == Answer(text="SELECT 1")
    assert answer.tool_args == {"sql": "SELECT 1"}
    assert end.action == Terminate()
    assert answer.error_type is end.error_type is None


@pytest.mark.parametrize("text", ["", "I do not know", "```python\n1\n```"])
def test_anything_else_is_one_parse_error(text: str) -> None:
    (call,) = CODEC.parse(text, 0, 0)
    assert call.action is None
    assert call.error_type == "parse"


@pytest.mark.parametrize("sql", ["SELECT 1", "WITH a AS (SELECT 1)\n\nSELECT * FROM a", "no sql"])
def test_what_is_encoded_is_parsed_back(sql: str) -> None:
    (answer, _) = CODEC.parse(CODEC.encode(Answer(text=sql), 0, 0), 0, 0)
    assert answer.action == Answer(text=sql)


@pytest.mark.parametrize("action", [Click(x=1, y=1), Terminate(), Answer(text="SELECT '```'")])
def test_other_actions_cannot_be_encoded(action: Click | Terminate | Answer) -> None:
    with pytest.raises(CannotEncodeError):
        CODEC.encode(action, 0, 0)
