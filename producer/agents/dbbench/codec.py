r"""The DB Bench codec: one action a completion, an SQL statement or the final answer.

    Action: Operation
    ```sql
    SELECT name FROM people WHERE age > 30
    ```

    Action: Answer
    Final Answer: [('Anna',), ('Bo',)]

Whatever stands before the action is passed over. Anything else is invalid and ends the session.
"""

import re
from typing import Final

from producer.codecs.codec import Codec, cannot_encode, parse_error
from producer.sql_execution import Rows
from producer.thoughts import BLOCK_LITERAL, FINAL_LITERAL
from schemas.actions import Action, Answer, ExecuteSql, Terminate
from schemas.turn import TakenAction

ACTION: Final = re.compile(r"Action: (Operation|Answer)")
SQL: Final = re.compile(r"```sql[ \t]*+\r?\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)
"""AgentBench asks for `sql` in small letters and LF. Capitals and CR LF say the same; a block that
names another language or none, or has tildes, is no operation there or here."""
LITERALS: Final = f"{BLOCK_LITERAL}|{FINAL_LITERAL}"
FINAL: Final = re.compile(r"\nFinal Answer:(.*)")
SYSTEM_PROMPT: Final = """\
You answer questions about a MySQL database with one table, or carry out orders on it. You have 3 \
rounds. In each, write one action, in one of two forms.

To execute one SQL statement:
Action: Operation
```sql
SELECT name FROM people WHERE age > 30
```
Its rows come back as text, such as [('Anna',), ('Bo',)], or the database's error.

To end the session:
Action: Answer
Final Answer: [('Anna',), ('Bo',)]
After a question, the final answer is the rows that answer it: numbers as numbers, texts in \
quotes, NULL as None. After an order, the table is judged and not the answer; write done.

Anything else is invalid and ends the session."""


class DbBenchCodec(Codec):
    """The DB Bench codec; the format is described in the module. Stateless."""

    name = "dbbench"
    literals = LITERALS

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # noqa: ARG002  # the interface's
        """An operation or an answer; `terminate` is said by the answer. CannotEncodeError."""
        match action:
            case ExecuteSql(sql=sql) if "```" not in sql:
                return self.readable(f"Action: Operation\n```sql\n{sql}\n```", action)
            case Answer(text=text) if "\n" not in text:
                return self.readable(f"Action: Answer\nFinal Answer: {text}", action)
            case _:
                return cannot_encode(self.name, action)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:  # noqa: ARG002  # the interface's
        """The operation, or the answer and the end of the session, or one `parse` error."""
        action = ACTION.search(answer)
        if action is None:
            return (parse_error("parse", "there is no Action: Operation and no Action: Answer"),)
        rest = answer[action.end() :]
        if action[1] == "Operation":
            sql = SQL.search(rest)
            if sql is None:
                message = "there is no SQL between ```sql and ```"
                return (parse_error("parse", message, action[1]),)
            operation = ExecuteSql(sql=sql[1].strip())
            return (_taken("Operation", "sql", operation.sql, operation),)
        final = FINAL.search(rest)
        if final is None:
            message = "there is no line that begins with Final Answer:"
            return (parse_error("parse", message, action[1]),)
        said = Answer(text=final[1].strip())
        return (
            _taken("Answer", "answer", said.text, said),
            TakenAction(tool_name="Answer", tool_args={}, action=Terminate()),
        )


def rows_text(rows: Rows) -> str:
    """What the agent sees of a statement's rows, as Python writes a list of tuples."""
    listed = ", ".join(map(repr, rows.rows))
    if rows.is_truncated:
        return f"[{listed}, ...]\nOnly the first {len(rows.rows)} rows are shown."
    return f"[{listed}]"


def _taken(tool_name: str, argument: str, value: str, action: Action) -> TakenAction:
    return TakenAction(tool_name=tool_name, tool_args={argument: value}, action=action)
