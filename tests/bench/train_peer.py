"""TRL's side of the training bench: a `GRPOTrainer` on the same weights, prompts and loss."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from datasets import Dataset
from transformers import AutoProcessor, PrinterCallback, TrainerCallback
from trl import GRPOTrainer

from producer.policy.torch_policy.network import Network
from tests.bench.train_case import Case, PromptGroup, reward_of
from tests.bench.train_ours import Spent
from tests.bench.train_peer_setup import (
    DecodedGroup,
    answer_with_calls,
    config_of,
    decoded,
    same_policy,
)


class Computed(NamedTuple):
    """What TRL computes of given sequences."""

    logprobs: list[list[float]]
    """Of each sequence's completion tokens."""
    prompts: list[list[int]]
    """Tokens of each sequence's first prompt."""
    gradients: dict[str, torch.Tensor]
    """By the name of the adapter's weight."""


class PeerTrainer:
    """A `GRPOTrainer` whose steps are timed, and alternate with something else."""

    def __init__(
        self,
        folder: Path,
        network: Network,
        case: Case,
        steps: Sequence[Sequence[PromptGroup]],
        **settings: Any,
    ) -> None:
        """`network`: its adapter is copied. `settings`: of GRPOConfig, in place of ours."""
        self._case = case
        self._steps = [decoded(groups) for groups in steps]
        self._given: list[list[list[int]]] | None = None
        self._generation_s = 0.0
        self._num_calls = 0
        """Of the tool, in this step."""
        self._shown: list[DecodedGroup] = []
        """Of each rollout of this step."""
        processor = AutoProcessor.from_pretrained(folder, padding_side="left")
        multi_turn: dict[str, Any] = {}
        if case.num_turns > 1:
            answer_with_calls(processor)
            multi_turn = {"tools": [self._tool()]}
        self.trainer: Any = GRPOTrainer(
            model=same_policy(folder, network),
            processing_class=processor,
            reward_funcs=[self._rewards],
            args=config_of(folder, network, case, len(steps), settings),
            train_dataset=self._dataset(),
            **multi_turn,
        )
        self.trainer.remove_callback(PrinterCallback)
        self._generate_single_turn = self.trainer._generate_single_turn
        self._generate_and_score = self.trainer._generate_and_score_completions
        self.trainer._generate_single_turn = self._one_turn
        self.trainer._generate_and_score_completions = self._timed

    def train(self, between: Callable[[int], None]) -> list[Spent]:
        """CPU-seconds of every step; calls `between` after each, outside of them."""
        spent: list[Spent] = []
        self.trainer.add_callback(_Stopwatch(self, spent, between))
        self.trainer.train()
        return spent

    def take_generation_s(self) -> float:
        """CPU-seconds of generation since the last call."""
        taken, self._generation_s = self._generation_s, 0.0
        return taken

    def compute(self, answers: list[list[list[int]]]) -> Computed:
        """Log-probs and gradients of one update on the first step's prompts.

        `answers`: by turn, by rollout; taken in place of generated ones.
        """
        trainer = self.trainer
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
        scored: list[torch.Tensor] = []
        logprobs_of = trainer._get_per_token_logps_and_entropies

        def noting(*given: Any, **named: Any) -> Any:
            found = logprobs_of(*given, **named)
            scored.append(found[0].detach())
            return found

        self._given = [[*turn] for turn in answers]
        trainer._get_per_token_logps_and_entropies = noting
        rows = [
            trainer.train_dataset[prompt]
            for prompt in range(self._case.num_prompts)
            for _ in range(self._case.group_size)
        ]
        inputs = trainer._generate_and_score_completions(rows)
        trainer._compute_loss(trainer.model, inputs).backward()
        trainer._get_per_token_logps_and_entropies = logprobs_of
        self._given = None
        self._generation_s = 0.0
        mask_BT = inputs["completion_mask"] * inputs.get("tool_mask", 1)
        gradients = {
            name: weight.grad.clone()
            for name, weight in trainer.model.named_parameters()
            if weight.grad is not None
        }
        trainer.model.zero_grad(set_to_none=True)
        return Computed(
            [row[own == 1].tolist() for row, own in zip(scored[-1], mask_BT, strict=True)],
            [
                row[own == 1].tolist()
                for row, own in zip(inputs["prompt_ids"], inputs["prompt_mask"], strict=True)
            ],
            gradients,
        )

    def _timed(self, inputs: Any) -> Any:
        began = time.process_time()
        self._num_calls = 0
        self._shown = [self._group(row["at"]) for row in inputs]
        scored = self._generate_and_score(inputs)
        self._generation_s += time.process_time() - began
        return scored

    def _one_turn(self, *given: Any, **named: Any) -> Any:
        if self._given is not None:
            return self._given.pop(0), None
        return self._generate_single_turn(*given, **named)

    def _rewards(self, completion_ids: list[list[int]], **_: Any) -> list[float]:
        return [reward_of(tokens[-self._case.num_tokens :]) for tokens in completion_ids]

    def _dataset(self) -> Dataset:
        """A row per prompt, whose screens are decoded already."""

        def rows(batch: dict[str, list[int]]) -> dict[str, list[Any]]:
            groups = [self._group(at) for at in batch["at"]]
            return {
                "prompt": [
                    [
                        {
                            "role": "user",
                            "content": [
                                {"type": "text", "text": group.description},
                                {"type": "image", "image": group.first},
                            ],
                        }
                    ]
                    for group in groups
                ],
                "at": batch["at"],
            }

        num_rows = len(self._steps) * self._case.num_prompts
        return Dataset.from_dict({"at": list(range(num_rows))}).with_transform(rows)

    def _group(self, at: int) -> DecodedGroup:
        """Of a row of the dataset."""
        step, prompt = divmod(at, self._case.num_prompts)
        return self._steps[step][prompt]

    def _tool(self) -> Callable[[], list[dict[str, Any]]]:
        """What TRL calls for each rollout in turn, then again for the next turn of each."""

        def act() -> list[dict[str, Any]]:
            """Take the action; the screen after it."""
            turn, row = divmod(self._num_calls, self._case.num_rollouts)
            self._num_calls += 1
            later = self._shown[row].later[row % self._case.group_size]
            return [{"type": "image", "image": later[turn]}]

        return act


class _Stopwatch(TrainerCallback):  # type: ignore[misc]  # transformers ships no types
    """Times each step from the end of the one before, `between` apart."""

    def __init__(
        self, peer: PeerTrainer, spent: list[Spent], between: Callable[[int], None]
    ) -> None:
        self._peer, self._spent, self._between = peer, spent, between
        self._began_s = time.process_time()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        total_s = time.process_time() - self._began_s
        generation_s = self._peer.take_generation_s()
        self._spent.append(Spent(generation_s, total_s - generation_s))
        self._between(len(self._spent) - 1)
        self._began_s = time.process_time()
