"""Demonstrations of DB Bench: sessions of the scripted policy, including its mistakes.

They are rendered like the prompts used in sampling, so that the policy then sees the same format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast
from uuid import UUID

from transformers import PreTrainedTokenizerBase

from producer.agents.dbbench.codec import DbBenchCodec, rows_text
from producer.agents.dbbench.data.tasks import NUM_ROUNDS, task_of
from producer.environments.environment import TextObservation
from producer.policy.policy import SampleRequest, Turn
from producer.policy.scripted_learner import GoldOracle
from producer.policy.torch_policy.render import Renderer
from producer.seeds import derived_seed
from producer.sql_execution import Rows
from producer.supervised.objective import Example
from schemas.actions import ExecuteSql
from schemas.entry import EntryContent

NOT_GOLD: Final = rows_text(Rows((), ((0,),)))
"""The database's answer to `SELECT 0`, the query that the scripted policy executes by mistake."""


class Round(NamedTuple):
    """One round of a session."""

    completion: str
    said: str | None
    """The database's reply; None if the completion ended the session."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """The text of a session of the scripted policy."""

    instruction: str
    """The task's description."""
    rounds: tuple[Round, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the session."""
        parts = (part for item in self.rounds for part in item if part is not None)
        return self.instruction, *parts


def demonstrate(entry: EntryContent, *, noise: float = 0.0, seed: int = 0) -> Demonstration:
    """A session of `GoldOracle` with probability `noise` of a mistake in each round.

    Without noise the gold is executed, then its rows are answered. Nothing is really executed: the
    gold's result is taken from the entry. Raises ValueError if the entry has no gold.
    """
    if entry.sql is None:
        message = f"entry {entry.entry_id} has no gold"
        raise ValueError(message)
    shown = cast("tuple[tuple[int | float | str | None, ...], ...]", entry.answer_direct or ())
    gold_rows = rows_text(Rows((), shown))
    oracle = GoldOracle(DbBenchCodec(), noise=noise, seed=seed, asks_first=True)
    task, said = task_of(entry), None
    history: tuple[Turn, ...] = ()
    rounds: list[Round] = []
    for number in range(NUM_ROUNDS):
        round_seed = derived_seed(seed, number)
        request = SampleRequest(UUID(int=0), task, history, None, 0.0, 0, round_seed, said)
        (completion,) = oracle.sample([request])
        action, asked = completion.actions[0].action, said
        said = None
        if isinstance(action, ExecuteSql):
            said = gold_rows if action.sql == entry.sql else NOT_GOLD
        rounds.append(Round(completion.text, said))
        if said is None:
            break
        history = (*history, Turn(TextObservation(asked), completion))
    return Demonstration(task.description, tuple(rounds))


def build_examples(
    demonstrations: Sequence[Demonstration],
    tokenizer: PreTrainedTokenizerBase,
    system_prompt: str | None,
) -> list[Example]:
    """Build examples in which every completion, with its end token, is a target."""
    renderer = Renderer(tokenizer, None, system_prompt)
    return [_example(demonstration, renderer, tokenizer) for demonstration in demonstrations]


def _example(
    demonstration: Demonstration, renderer: Renderer, tokenizer: PreTrainedTokenizerBase
) -> Example:
    tokens: list[int] = []
    loss_mask: list[bool] = []
    prompt = renderer.first_turn(demonstration.instruction, None)
    for completion, said in demonstration.rounds:
        written = tokenizer(completion, add_special_tokens=False)["input_ids"]
        tokens += [*prompt, *written, tokenizer.eos_token_id]
        loss_mask += [False] * len(prompt) + [True] * (len(written) + 1)
        prompt = renderer.next_turn(None, stopped=True, text=said)
    return Example(tuple(tokens), tuple(loss_mask))
