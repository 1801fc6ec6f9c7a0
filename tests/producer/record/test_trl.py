"""A real GRPOTrainer of TRL is recorded like our own trainer: steps, groups, tokens, figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from consumers.log.local import LocalLogReader
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.verify import verify
from producer.errors import UsageError
from producer.record.trl import RecordingCallback
from producer.text_policy.build import TextPolicySize, build_text_policy
from schemas.arrays import decode_float32, decode_int32
from schemas.evaluation import EvaluationCreated, EvaluationFinished
from schemas.group import GroupCreated
from schemas.rollout import RolloutFailed, RolloutFinished
from schemas.step import SamplesChosen, StepCreated, StepFinished
from schemas.training import TrainingCreated, TrainingFailed
from schemas.turn import TurnTaken
from tests.support.postgres import one
from tests.support.recorded import folded, installation, of_type, problems, statuses

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
PROMPTS = ["say yes please", "say no thanks"]
SIZE = TextPolicySize(dim=32, layers=1, heads=2, ffn=48)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy") / "tiny"
    build_text_policy(folder, [*PROMPTS, "yes", "no"], 0, SIZE)
    return folder


def length_reward(completions: Sequence[str], **_: Any) -> list[float]:
    return [min(1.0, len(text) / 20) for text in completions]


def make_trainer(policy: Path, out: Path, **given: Any) -> Any:
    torch.set_num_threads(1)
    settings = {
        "max_steps": 4,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "num_generations": 4,
        "max_completion_length": 6,
        "logging_steps": 1,
        "learning_rate": 1e-3,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 1,
        **{name: value for name, value in given.items() if name != "reward"},
    }
    reward = given.get("reward", length_reward)
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(policy),
        processing_class=AutoTokenizer.from_pretrained(policy),
        reward_funcs=[reward],
        args=GRPOConfig(output_dir=str(out), **settings),
        train_dataset=Dataset.from_dict({"prompt": PROMPTS * 8}),
        eval_dataset=Dataset.from_dict({"prompt": PROMPTS}),
    )


@pytest.mark.services
def test_steps_of_trl_are_in_the_tables_and_verify(
    policy: Path, tmp_path: Path, migrated_url: str
) -> None:
    trainer = make_trainer(policy, tmp_path / "out")
    with RecordingCallback(trainer, training="toy"):
        trainer.train()

    (created,) = of_type(TrainingCreated)
    assert created.recipe.group_size == 4
    assert created.recipe.groups_per_batch == 2
    assert created.recipe.max_tokens == 6
    assert created.recipe.model_name == str(policy)
    assert statuses() == {
        "training": ["completed"],
        "step": ["completed"] * 4,
        "group": ["completed"] * 8,
        "rollout": ["completed"] * 32,
    }
    assert {one.num_rollouts for one in of_type(GroupCreated)} == {4}
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    finished = of_type(StepFinished)
    assert [one.loss for one in finished] == [entry["loss"] for entry in logged]
    assert [one.policy_gradient_norm for one in finished] == [
        pytest.approx(entry["grad_norm"]) for entry in logged
    ]
    assert [one.reward_mean for one in finished] == [
        pytest.approx(entry["reward"], abs=1e-6) for entry in logged
    ]
    assert [one.metrics["entropy"] for one in finished] == [entry["entropy"] for entry in logged]
    # The log shows the rate after the step, the record the one that it was made with.
    assert of_type(StepCreated)[0].learning_rate == pytest.approx(1e-3)
    tokenizer = trainer.processing_class
    for turn in of_type(TurnTaken):
        assert turn.text in PROMPTS
        assert turn.tokens is not None
        assert decode_int32(turn.tokens.prompt_tokens) == tokenizer(turn.text)["input_ids"]
        sampled = decode_int32(turn.tokens.completion_tokens)
        assert tokenizer.decode(sampled, skip_special_tokens=True) == turn.model_response
        assert 1 <= len(sampled) <= 6
        assert len(decode_float32(turn.tokens.completion_logprobs)) == len(sampled)
        is_ended = sampled[-1] == tokenizer.eos_token_id
        assert turn.tokens.stop_reason == ("stop" if is_ended else "length")
    for chosen in of_type(SamplesChosen):
        mean = sum(sample.reward for sample in chosen.samples) / 4
        for sample in chosen.samples:
            assert sample.advantage is not None
            # TRL's scale_rewards divides by the deviation.
            assert sample.advantage * (sample.reward - mean) >= -1e-6

    at = installation()

    def reader() -> LocalLogReader:
        return LocalLogReader(at.local_log_path, topic_prefix=at.topic_prefix)

    ProjectionLoop(reader(), migrated_url).run_once()
    assert verify(reader(), migrated_url).equal
    assert one(migrated_url, "SELECT count(*) FROM cua.unapplied_record") == 0
    assert one(migrated_url, "SELECT status, current_step FROM cua.training") == ("completed", 4)


def test_log_probs_are_recorded_where_trl_has_them_and_nan_where_it_has_none(
    policy: Path, tmp_path: Path
) -> None:
    # Two generations for three accumulated batches: TRL keeps the log-probs of the sampling policy.
    trainer = make_trainer(
        policy, tmp_path, max_steps=2, gradient_accumulation_steps=3, steps_per_generation=2
    )
    with RecordingCallback(trainer, training="known"):
        trainer.train()

    for turn in of_type(TurnTaken):
        assert turn.tokens is not None
        assert all(value <= 0 for value in decode_float32(turn.tokens.completion_logprobs))


def test_evaluations_of_trl_are_recorded_with_their_completions(
    policy: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(
        policy, tmp_path, max_steps=2, eval_strategy="steps", eval_steps=1, eval_on_start=True
    )
    with RecordingCallback(trainer, training="evaluated", success=lambda reward: reward > 0.3):
        trainer.train()

    kinds = [(one.kind, one.step) for one in of_type(EvaluationCreated)]
    assert kinds == [("baseline", 0), ("scheduled", 1), ("scheduled", 2)]
    assert {one.completed_tasks for one in of_type(EvaluationFinished)} == {8}
    assert statuses()["step"] == ["completed"] * 2
    assert problems(folded()) == []


def test_a_run_of_trl_that_resumes_from_its_checkpoint_continues_its_record(
    policy: Path, tmp_path: Path
) -> None:
    saving = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    trainer = make_trainer(policy, tmp_path, **saving)
    calls = 0

    def breaks(completions: Sequence[str], **_: Any) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == 4:
            message = "the judge is away"
            raise ConnectionError(message)
        return length_reward(completions)

    trainer.reward_funcs[0] = breaks
    with pytest.raises(ConnectionError), RecordingCallback(trainer, training="resumed"):
        trainer.train()
    (failed,) = of_type(TrainingFailed)
    assert failed.error_message == "ConnectionError: the judge is away"
    assert statuses()["step"] == ["completed", "completed", "completed", "failed"]

    trainer = make_trainer(policy, tmp_path, **saving)
    with RecordingCallback(trainer, training="resumed"):
        trainer.train(resume_from_checkpoint=True)

    steps = [(one.generation, one.step) for one in of_type(StepCreated)]
    assert steps == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 3), (1, 4)]
    assert statuses()["training"] == ["completed"]
    assert problems(folded()) == []


def test_a_completion_that_no_function_scores_has_failed(policy: Path, tmp_path: Path) -> None:
    def some(completions: Sequence[str], **_: Any) -> list[float | None]:
        return [None if place == 0 else 0.5 for place in range(len(completions))]

    trainer = make_trainer(policy, tmp_path, max_steps=1, reward=some)
    with RecordingCallback(trainer, training="some"):
        trainer.train()

    assert [one.error_type for one in of_type(RolloutFailed)] == ["reward"]
    assert len(of_type(RolloutFinished)) == 7
    assert problems(folded()) == []


def test_a_trainer_that_is_not_trls_is_refused() -> None:
    with pytest.raises(UsageError, match="recording needs TRL's GRPOTrainer"):
        RecordingCallback(object())
