"""verl's metrics become steps: by its own `Tracking`, whose backends are called so."""

import importlib
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from producer import record
from producer.record.verl import RecordingLogger
from schemas.step import StepCreated, StepFinished
from schemas.training import TrainingCancelled, TrainingFailed
from tests.oracles import verl_core
from tests.support.paths import ROOT
from tests.support.recorded import folded, of_type, problems, statuses

METRICS = {
    "actor/pg_loss": 0.25,
    "actor/ppo_kl": 0.001,
    "actor/grad_norm": 1.5,
    "actor/lr": 1e-6,
    "critic/score/mean": 0.5,
    "perf/throughput": 900.0,
    "loss": 3.0,
    "training/epoch": 0,
}


@pytest.fixture
def tracking() -> Iterator[Any]:
    """Verl's `Tracking` without a backend of its own."""
    verl_core.load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = importlib.import_module("verl.utils.tracking").Tracking("project", "mine", [], None)
    yield found
    found.finish()


def test_what_verls_tracking_logs_is_recorded_step_by_step(tracking: Any) -> None:
    logger = tracking.logger["cua"] = RecordingLogger(
        "org/policy", num_steps=2, training="mine", config={"trainer": {"api_key": "s3cret"}}
    )
    tracking.log(data={"val-core/gsm8k/acc": 0.1}, step=0)
    tracking.log(data=METRICS, step=1)
    tracking.log(data=METRICS, step=2)
    tracking.log(data={"val-core/gsm8k/acc": 0.2}, step=2)
    logger.finish()
    logger.finish()

    first, second = of_type(StepFinished)
    assert (first.loss, first.kl_divergence, first.policy_gradient_norm) == (0.25, 0.001, 1.5)
    assert (first.reward_mean, first.num_trajectories) == (0.5, 0)
    assert first.metrics["before/val-core/gsm8k/acc"] == 0.1
    assert first.metrics["perf/throughput"] == 900.0
    assert first.metrics["loss"] == 3.0
    assert second.metrics["val-core/gsm8k/acc"] == 0.2
    assert [one.learning_rate for one in of_type(StepCreated)] == [1e-6, 1e-6]
    assert statuses() == {"training": ["completed"], "step": ["completed", "completed"]}
    assert problems(folded()) == []


def test_what_is_no_metric_is_left_out_and_stops_no_training_of_verl() -> None:
    odd = {"name": "x", "list": [1], "none": None, "flag": True, "huge": 10**400, "optim/lr": 5.0}
    with RecordingLogger("org/policy", num_steps=1, training="mine") as logger:
        logger.log(data=odd, step=0)
        logger.log(data={**METRICS, **odd, "actor/ppo_kl": "none", "actor/lr": -1.0}, step=1)

    (finished,) = of_type(StepFinished)
    assert finished.metrics.keys() & {*odd, *(f"before/{name}" for name in odd)} == {
        "optim/lr",
        "before/optim/lr",
    }
    assert finished.metrics["optim/lr"] == 0, "the training's: a rate is not negative"
    assert (finished.loss, finished.kl_divergence) == (0.25, None)


def test_a_run_of_verl_that_goes_on_from_its_checkpoint_continues_its_record() -> None:
    with RecordingLogger("org/policy", num_steps=4, training="mine") as logger:
        for step in (1, 2, 3):
            logger.log(data=METRICS, step=step)
    with RecordingLogger("org/policy", num_steps=4, training="mine") as logger:
        for step in (3, 4):
            logger.log(data=METRICS, step=step)

    steps = [(one.generation, one.step) for one in of_type(StepCreated)]
    assert steps == [(0, 1), (0, 2), (0, 3), (1, 3), (1, 4)]
    assert statuses()["training"] == ["completed"]


def test_a_step_that_goes_back_is_refused_in_a_sentence() -> None:
    with RecordingLogger("org/policy", num_steps=4, training="mine") as logger:
        logger.log(data=METRICS, step=2)
        for step in (0, 1):
            with pytest.raises(record.OrderError, match=f"step {step} after step 2: numbers of"):
                logger.log(data=METRICS, step=step)

    assert statuses()["step"] == ["completed"]


@pytest.mark.parametrize(
    ("last_line", "training", "step"),
    [("pass", "completed", "completed"), ("raise ValueError('no memory')", "failed", "failed")],
)
def test_a_process_that_ends_without_finish_ends_its_training(
    last_line: str, training: str, step: str
) -> None:
    program = (
        "from producer.record.verl import RecordingLogger\n"
        "logger = RecordingLogger('org/policy', num_steps=1, training='mine')\n"
        f"logger.log(data={METRICS!r}, step=1)\n{last_line}\n"
    )
    subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False, timeout=120
    )
    assert statuses() == {"training": [training], "step": [step]}
    assert [one.error_message for one in of_type(TrainingFailed)] == (
        ["ValueError: no memory"] if training == "failed" else []
    )


def test_an_error_of_verl_fails_the_training() -> None:
    with (  # noqa: PT012  # the whole loop
        pytest.raises(ZeroDivisionError),
        RecordingLogger("org/policy", num_steps=4, training="mine") as logger,
    ):
        logger.log(data=METRICS, step=1)
        raise ZeroDivisionError

    assert statuses() == {"training": ["failed"], "step": ["failed"]}
    assert of_type(TrainingCancelled) == []
