"""The text-to-SQL codec: a completion is one query, which is the answer.

    ```sql
    WITH cheap AS (SELECT id FROM book WHERE price < 9)

    SELECT count(*) FROM cheap
    ```

The query is the last SQL block, or the whole completion if that begins like a query. Any SQL is
allowed; if it is in CoCTE form (`producer.process_rewards.cocte`), its steps can be scored.
"""

from typing import Final

from producer.codecs.codec import Codec, cannot_encode, parse_error
from producer.process_rewards.fences import FENCE
from producer.process_rewards.sql_text import SQL_LITERALS, find_sql
from schemas.actions import Action, Answer, Terminate
from schemas.turn import TakenAction

TOOL: Final = "sql"
SYSTEM_PROMPT: Final = """\
You answer questions about a SQLite database with one query. Write it in steps: one common table \
expression for each step, a blank line between the steps, the query that answers last.

```sql
WITH cheap AS (SELECT id FROM book WHERE price < 9)

SELECT count(*) FROM cheap
```"""


class TextToSqlCodec(Codec):
    """The text-to-SQL codec; the format is described in the module. Stateless."""

    name = "text_to_sql"
    literals = SQL_LITERALS

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # noqa: ARG002  # required by the interface
        """Write the query as a fenced block, which also ends the episode.

        There is no text for `terminate`. Raises CannotEncodeError.
        """
        match action:
            case Answer(text=text) if FENCE not in text:
                return self.readable(f"{FENCE}sql\n{text}\n{FENCE}", action)
            case _:
                return cannot_encode(self.name, action)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:  # noqa: ARG002  # required by the interface
        """The query as the answer followed by the end of the episode, or one `parse` error."""
        span = find_sql(answer)
        if span is None:
            return (parse_error("parse", "there is no query and no block of SQL"),)
        sql = answer[span.start : span.end]
        return (
            TakenAction(tool_name=TOOL, tool_args={"sql": sql}, action=Answer(text=sql)),
            TakenAction(tool_name=TOOL, tool_args={}, action=Terminate()),
        )
