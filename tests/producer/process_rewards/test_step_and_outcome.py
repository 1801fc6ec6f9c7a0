"""The reward of tokens: their step's score, and the outcome."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from producer.process_rewards.cocte import TokenSpan, starts_of
from producer.process_rewards.step_and_outcome import (
    RewardBatch,
    RewardWeights,
    ScoredSteps,
    StepAndOutcomeManager,
    score_completion,
    token_rewards,
)

STEPS = ScoredSteps(("a", "b"), (TokenSpan(0, 2), TokenSpan(2, 3)), (0.5, 0.9))
COMPLETION = "WITH a AS (SELECT 1)\n\nSELECT * FROM a"


def test_every_token_has_its_step_s_score_and_the_outcome() -> None:
    found = token_rewards(3, 1.0, STEPS, RewardWeights(rm_coef=0.5, verifier_coef=2.0))
    assert found == pytest.approx([2.25, 2.25, 2.45])
    assert token_rewards(3, 0.0, STEPS, RewardWeights(1.0, 1.0)) == [0.5, 0.5, 0.9]
    assert token_rewards(3, 1.0, STEPS, RewardWeights(1.0, 0.0)) == [0.5, 0.5, 0.9]


@pytest.mark.parametrize("steps", [STEPS, None])
def test_without_scores_the_outcome_is_on_the_last_token(steps: ScoredSteps | None) -> None:
    weights = RewardWeights(rm_coef=0.0 if steps else 1.0)
    assert token_rewards(3, 1.0, steps, weights) == [0.0, 0.0, 1.0]
    assert token_rewards(0, 1.0, steps, weights) == []


def test_a_completion_s_steps_are_scored_once_each_with_the_prompt() -> None:
    asked = []

    def score_steps(prompt: str, steps: Any) -> list[float]:
        asked.append((prompt, steps))
        return [0.25, 1.0]

    tokens = ["WITH a AS ", "(SELECT 1)", "\n\n", "SELECT *", " FROM a"]
    found = score_completion("Q", COMPLETION, starts_of(tokens), score_steps)
    assert asked == [("Q", ("WITH a AS (SELECT 1)", "SELECT * FROM a"))]
    assert found.spans == ((0, 3), (3, 5))
    assert found.scores == (0.25, 1.0)


def test_a_completion_without_sql_is_one_step() -> None:
    found = score_completion("Q", "no idea", [0, 3], lambda _prompt, steps: [0.1] * len(steps))
    assert found == (("no idea",), ((0, 2),), (0.1,))


@pytest.mark.parametrize("scores", [[0.5], [0.5, 0.5, 0.5], [0.5, 1.1], [float("nan"), 0.5]])
def test_other_than_a_probability_for_each_step_is_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="a score from 0 to 1 for each of 2 steps"):
        score_completion("Q", COMPLETION, [0], lambda *_: scores)


class Tokenizer:
    def decode(self, tokens: torch.Tensor) -> str:
        return "".join("_ab"[token] for token in tokens.tolist()) + "<|im_end|>"


def manager_and_calls(config: Any) -> tuple[StepAndOutcomeManager, list[dict[str, Any]]]:
    calls: list[dict[str, Any]] = []

    def compute_score(**given: Any) -> float:
        calls.append(given)
        return float(given["solution_str"] == "ab")

    return StepAndOutcomeManager(Tokenizer(), 2, config, compute_score), calls


def batch(**more: torch.Tensor) -> RewardBatch:
    return RewardBatch(
        {
            "prompts": torch.tensor([[0, 1], [1, 1]]),
            "responses": torch.tensor([[1, 2, 0], [2, 2, 1]]),
            "attention_mask": torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]]),
            **more,
        },
        {
            "db_id": ["x", "y"],
            "index": [3, 4],
            "reward_model": [{"ground_truth": "g"}, {"ground_truth": "h"}],
        },
    )


def test_the_manager_asks_for_each_response_and_rewards_its_last_token() -> None:
    manager, calls = manager_and_calls({"verifier": {"reward_coef": 2.0, "port": 5887}})
    assert manager(batch()).tolist() == [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    assert calls[0] == {
        "port": 5887,
        "db_id": "x",
        "question_id": 3,
        "solution_str": "ab",
        "ground_truth": "g",
        "extra_info": None,
    }
    assert calls[1]["solution_str"] == "bba"


def test_a_step_s_score_on_its_last_token_is_spread_over_its_tokens() -> None:
    config = SimpleNamespace(
        reward_model=SimpleNamespace(rm_coef=1.0), verifier=SimpleNamespace(reward_coef=1.0)
    )
    manager, _ = manager_and_calls(config)
    scores = torch.tensor([[0.0, 0.5, 0.0], [0.25, 0.0, 0.75]])
    found = manager(batch(rm_scores=scores))
    assert found.dtype == torch.float32
    assert found.tolist() == [[1.5, 1.5, 0.0], [0.25, 0.75, 0.75]]


def test_without_an_outcome_nothing_is_executed() -> None:
    manager, calls = manager_and_calls({"verifier": {"reward_coef": 0.0}})
    assert manager(batch()).sum() == 0
    assert calls == []


def test_a_batch_is_read_by_response() -> None:
    data = batch()
    assert len(data) == 2
    assert data[-1].non_tensor_batch["db_id"] == "y"
    with pytest.raises(IndexError):
        data[2]
    assert [item.non_tensor_batch["index"] for item in data] == [3, 4]  # type: ignore[attr-defined]
