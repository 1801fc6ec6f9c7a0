"""Gold sessions of DB Bench as training data: the gold is executed, then its rows are answered.

They are rendered as prompts are when the policy is sampled, so that it meets nothing new.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from transformers import PreTrainedTokenizerBase

from producer.codecs.dbbench import DbBenchCodec
from producer.environments.dbbench.observation import rows_text
from producer.policy.torch_policy.render import Renderer
from producer.sql_data.dbbench.tasks import task_of
from producer.sql_execution import Rows
from producer.supervised.example import Example
from schemas.actions import Answer, ExecuteSql
from schemas.entry import EntryContent

DONE = "done"
"""The final answer after an order."""


@dataclass(frozen=True, slots=True)
class GoldSession:
    """What is said in a session that solves its entry."""

    instruction: str
    """The task's description."""
    operation: str
    """First completion."""
    observation: str
    """What the database says to it."""
    answer: str
    """Second completion."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All of it."""
        return self.instruction, self.operation, self.observation, self.answer


def gold_session(entry: EntryContent) -> GoldSession:
    """The session of an entry with its gold. ValueError if it has no SQL."""
    if entry.sql is None:
        message = f"entry {entry.entry_id} has no gold"
        raise ValueError(message)
    codec = DbBenchCodec()
    rows = entry.answer_direct
    shown = cast("tuple[tuple[int | float | str | None, ...], ...]", rows or ())
    observation = rows_text(Rows((), shown, 0))
    answer = DONE if rows is None else observation
    return GoldSession(
        instruction=task_of(entry).description,
        operation=codec.encode(ExecuteSql(sql=entry.sql), 0, 0),
        observation=observation,
        answer=codec.encode(Answer(text=answer), 0, 0),
    )


def build_examples(
    sessions: Sequence[GoldSession],
    tokenizer: PreTrainedTokenizerBase,
    system_prompt: str | None,
) -> list[Example]:
    """Both completions are imitated, with the token that ends them."""
    renderer = Renderer(tokenizer, None, system_prompt)
    return [_example(session, renderer, tokenizer) for session in sessions]


def _example(
    session: GoldSession, renderer: Renderer, tokenizer: PreTrainedTokenizerBase
) -> Example:
    tokens: list[int] = []
    loss_mask: list[bool] = []
    for prompt, completion in (
        (renderer.first_turn(session.instruction, None), session.operation),
        (renderer.next_turn(None, stopped=True, text=session.observation), session.answer),
    ):
        written = tokenizer(completion, add_special_tokens=False)["input_ids"]
        tokens += [*prompt, *written, tokenizer.eos_token_id]
        loss_mask += [False] * len(prompt) + [True] * (len(written) + 1)
    return Example(tuple(tokens), tuple(loss_mask))
