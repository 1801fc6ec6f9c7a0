"""A real GRPOTrainer of TRL is recorded like our own trainer: steps, groups, tokens, figures."""

import json
import math
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from transformers import TrainerCallback

from consumers.database.location import database_engine
from consumers.export.export import export
from consumers.log.local import LocalLogReader
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.html import render, tag
from consumers.monitor.pages import Pages
from consumers.monitor.plain_text import excerpt
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.verify import verify
from producer.emit.emitter import now_utc
from producer.errors import UsageError
from producer.record.trl import RecordingCallback, _instruction, _logprobs, png_images
from producer.text_policy.build import TextPolicySize, build_text_policy
from schemas.arrays import decode_float32, decode_int32
from schemas.evaluation import EvaluationCreated, EvaluationFinished
from schemas.group import GroupCreated
from schemas.rollout import RolloutFailed, RolloutFinished
from schemas.step import SamplesChosen, StepCreated, StepFinished
from schemas.training import TrainingCreated, TrainingFailed
from schemas.turn import TurnTaken
from tests.support.paths import ROOT
from tests.support.postgres import one
from tests.support.recorded import folded, installation, of_type, png, problems, statuses
from tests.support.trl_run import PROMPTS, TEN, length_reward, make_trainer

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
SIZE = TextPolicySize(dim=32, layers=1, heads=2, ffn=48)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy") / "tiny"
    build_text_policy(folder, [*PROMPTS, "yes", "no"], 0, SIZE)
    return folder


@pytest.mark.services
def test_ten_steps_of_trl_killed_once_are_in_tables_monitor_verify_and_export(
    policy: Path, tmp_path: Path, migrated_url: str
) -> None:
    """SIGKILL in step 8; TRL and its record continue after the checkpoint of step 5."""
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.trl_run", str(policy), str(out), "8"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    trainer = make_trainer(policy, out, **TEN)
    with RecordingCallback(trainer, training="ten"):
        trainer.train(resume_from_checkpoint=True)

    check_events(trainer, policy)
    assert problems(folded()) == []
    at = installation()

    def reader() -> LocalLogReader:
        return LocalLogReader(at.local_log_path, topic_prefix=at.topic_prefix)

    ProjectionLoop(reader(), migrated_url).run_once()
    assert verify(reader(), migrated_url).equal
    assert one(migrated_url, "SELECT count(*) FROM cua.unapplied_record") == 0
    assert one(migrated_url, "SELECT status, current_step FROM cua.training") == ("completed", 10)
    check_monitor(migrated_url)

    report = export(reader(), at, tmp_path / "dataset")
    assert report.missing_images == 0
    rollouts = pq.read_table(tmp_path / "dataset" / "rollouts").to_pylist()
    trained = [row for row in rollouts if row["used"] and not row["superseded"]]
    assert sorted(row["step"] for row in trained) == sorted([*range(1, 11)] * 8)
    turns = pq.read_table(tmp_path / "dataset" / "turns").to_pylist()
    assert len(turns) == len(rollouts) == report.rollouts
    for turn in turns:
        assert turn["text"] in PROMPTS
        assert turn["prompt_token_ids"] == trainer.processing_class(turn["text"])["input_ids"]


def check_events(trainer: Any, policy: Path) -> None:
    """The log has what TRL used and logged of each of the ten steps."""
    (created,) = of_type(TrainingCreated)
    assert created.recipe.group_size == 4
    assert created.recipe.groups_per_batch == 2
    assert created.recipe.max_tokens == 6
    assert created.recipe.model_name == str(policy)
    steps = {one.step_id: (one.generation, one.step) for one in of_type(StepCreated)}
    finished = {steps[one.step_id]: one for one in of_type(StepFinished)}
    first, again = [(0, step) for step in range(1, 8)], [(1, step) for step in range(6, 11)]
    assert list(finished) == [*first, *again]
    assert statuses()["training"] == ["completed"]
    assert {one.num_rollouts for one in of_type(GroupCreated)} == {4}
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    trained = [finished[place] for place in (*first[:5], *again)]
    assert [one.loss for one in trained] == [entry["loss"] for entry in logged]
    assert [one.policy_gradient_norm for one in trained] == [
        pytest.approx(entry["grad_norm"]) for entry in logged
    ]
    assert [one.reward_mean for one in trained] == [
        pytest.approx(entry["reward"], abs=1e-6) for entry in logged
    ]
    assert [one.metrics["entropy"] for one in trained] == [entry["entropy"] for entry in logged]
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


def check_monitor(url: str) -> None:
    """Its JSON and its pages show the ten steps and a rollout of the last one."""
    engine = database_engine(url)
    pages = Pages(lambda: engine, ScreenshotStore(installation()), now_utc)

    def facts(path: str) -> Any:
        answer = pages.answer(f"/api/{path}")
        assert answer.code == 200, answer.content
        return json.loads(answer.content)

    def page(path: str) -> str:
        answer = pages.answer(path)
        assert answer.code == 200, answer.content
        return answer.content.decode()

    training = facts("trainings/ten")
    assert (training["status"], training["current_step"]) == ("completed", 10)
    shown = [(step["step"], step["generation"]) for step in training["steps"]]
    assert shown == [*((step, 0) for step in range(1, 6)), *((step, 1) for step in range(6, 11))]
    assert "ten" in page(f"/training/{training['id']}")
    step = facts(f"steps/{training['steps'][-1]['id']}")
    assert [len(group["rollouts"]) for group in step["groups"]] == [4, 4]
    rollout = facts(f"rollouts/{step['groups'][0]['rollouts'][0]['id']}")
    assert rollout["task"]["description"] in PROMPTS
    (turn,) = rollout["turns"]
    text = page(f"/rollout/{rollout['id']}")
    assert render(tag("pre", excerpt(turn["model_response"]))) in text
    assert "no action was found" not in text, "a policy of TRL only answers"
    engine.dispose()


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


def test_a_run_of_trl_that_failed_continues_its_record_from_its_checkpoint(
    policy: Path, tmp_path: Path
) -> None:
    saving = {"save_strategy": "steps", "save_steps": 1, "max_steps": 2}
    calls = 0

    def breaks(completions: Sequence[str], **_: Any) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == 2:
            message = "the judge is away"
            raise ConnectionError(message)
        return length_reward(completions)

    trainer = make_trainer(policy, tmp_path, reward=breaks, **saving)
    with pytest.raises(ConnectionError), RecordingCallback(trainer, training="resumed"):
        trainer.train()
    (failed,) = of_type(TrainingFailed)
    assert failed.error_message == "ConnectionError: the judge is away"
    assert statuses()["step"] == ["completed", "failed"]

    trainer = make_trainer(policy, tmp_path, **saving)
    with RecordingCallback(trainer, training="resumed"):
        trainer.train(resume_from_checkpoint=True)

    steps = [(one.generation, one.step) for one in of_type(StepCreated)]
    assert steps == [(0, 1), (0, 2), (1, 2)]
    assert statuses()["training"] == ["completed"]
    assert problems(folded()) == []


def test_a_prompt_with_a_nul_stops_no_training_of_trl() -> None:
    conversation = [{"role": "user", "content": "say \0 yes"}]
    assert _instruction("say \0 yes") == _instruction(conversation) == "say \ufffd yes"
    assert _instruction("\x1f ") == "(an empty prompt)"


def test_what_is_no_log_prob_is_recorded_as_not_known_and_stops_no_training_of_trl() -> None:
    found = torch.tensor([-0.5, 0.0, 2.0**-14, 0.5, math.nan, -math.inf])
    assert _logprobs(found) == [-0.5, 0.0, 2.0**-14, None, None, None]


def test_what_is_no_metric_is_left_out_and_stops_no_training_of_trl(
    policy: Path, tmp_path: Path
) -> None:
    class Odd(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002
            logs |= {"grad_norm": "nan", "names": ["x"], "optim/lr": 5.0, "mine": 0.25}

    trainer = make_trainer(policy, tmp_path, max_steps=1)
    trainer.add_callback(Odd())
    with RecordingCallback(trainer, training="odd"):
        trainer.train()

    (finished,) = of_type(StepFinished)
    assert (finished.policy_gradient_norm, finished.metrics["mine"]) == (None, 0.25)
    assert "names" not in finished.metrics
    assert finished.metrics["optim/lr"] == pytest.approx(1e-3)


def test_a_completion_that_no_function_scores_has_failed(policy: Path, tmp_path: Path) -> None:
    def some(completions: Sequence[str], **_: Any) -> list[float | None]:
        return [None if place == 0 else 0.5 for place in range(len(completions))]

    trainer = make_trainer(policy, tmp_path, max_steps=1, reward=some)
    with RecordingCallback(trainer, training="some"):
        trainer.train()

    assert [one.error_type for one in of_type(RolloutFailed)] == ["reward"]
    assert len(of_type(RolloutFinished)) == 7
    assert problems(folded()) == []


def test_the_screenshot_of_a_prompt_is_encoded_once_for_all_its_completions() -> None:
    def picture(colour: int) -> Image.Image:
        return Image.new("RGB", (4, 3), (colour, 0, 0))

    # A dataset decodes a picture for each row.
    rows: list[dict[str, Any]] = [
        {"image": picture(1)},
        {"image": picture(1)},
        {"images": [picture(2), picture(1)]},
        {},
    ]
    first, second, third, fourth = png_images(rows)

    assert second is first == (png(1),)
    assert third == (png(2), png(1))
    assert fourth == ()


def test_a_trainer_that_is_not_trls_is_refused() -> None:
    with pytest.raises(UsageError, match="recording needs TRL's GRPOTrainer"):
        RecordingCallback(object())
