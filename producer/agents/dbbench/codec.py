"""The DB Bench codec: one action per completion, an SQL statement or the final answer.

    Action: Operation
    ```sql
    SELECT name FROM people WHERE age > 30
    ```

    Action: Answer
    Final Answer: [('Anna',), ('Bo',)]

Text before the action is ignored. A completion without an action is invalid and ends the session.
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
"""AgentBench expects a lower-case `sql` and LF. Capitals and CR LF are accepted too, since they
mean the same. As in AgentBench, a block in another or no language, or fenced by tildes, is no
operation."""
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

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # noqa: ARG002  # required by the interface
        """Write an operation or an answer; the answer implies `terminate`.

        Raises CannotEncodeError.
        """
        match action:
            case ExecuteSql(sql=sql) if "```" not in sql:
                return self.readable(f"Action: Operation\n```sql\n{sql}\n```", action)
            case Answer(text=text) if "\n" not in text:
                return self.readable(f"Action: Answer\nFinal Answer: {text}", action)
            case _:
                return cannot_encode(self.name, action)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:  # noqa: ARG002  # required by the interface
        """The operation, the answer followed by the session's end, or one `parse` error."""
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
    """Format a statement's rows for the agent, like a Python list of tuples."""
    listed = ", ".join(map(repr, rows.rows))
    if rows.is_truncated:
        return f"[{listed}, ...]\nOnly the first {len(rows.rows)} rows are shown."
    return f"[{listed}]"


def _taken(tool_name: str, argument: str, value: str, action: Action) -> TakenAction:
    return TakenAction(tool_name=tool_name, tool_args={argument: value}, action=action)
