"""Trains steps again from the log, starting at an older state: recorded tokens and advantages.

On a CPU the result is bit-identical to the original, so that a recorded loss can be checked. The
command `cua-train redo` reads the log and the run's states and changes neither.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from producer.algorithms.names import ControlName
from producer.blobs import open_blobs
from producer.config import RunConfig, read_config, recorded_fields
from producer.emit import Emitter
from producer.errors import MismatchError, NotFoundError, StopRequestedError, UsageError
from producer.policy.remote_checkpoint import SCHEME, RemoteCheckpoint, write_remote
from producer.resume import resume_state
from producer.resume.recorded_results import RecordedResult
from producer.resume.recorded_training import RecordedStep, RecordedTraining, read_recorded_training
from producer.resume.resume_state import EvaluationSummary, Manifest, SavedState
from producer.resume.run_folder import find_run_folder
from producer.resume.training_history import TrainingHistory
from producer.training.evaluation import evaluation_summary
from producer.training.kept_trainings import check_known, unknown_training
from producer.training.loaded import load_policy
from producer.training.recorded_updates import RedoneStep, redo_steps
from producer.training.step import next_baseline
from schemas.installation import Installation

logger = logging.getLogger(__name__)


def state_before(
    states: Sequence[SavedState], steps: Mapping[int, RecordedStep], step: int
) -> SavedState | None:
    """The newest of `states` from which `step` follows; None: it follows only from the start."""
    for state in states:
        number, generation = state.manifest.step, state.manifest.generation
        begun_by = steps[number].generation if number in steps else None
        if number < step and number and begun_by == generation:
            return state
    return None


def describe(differences: Mapping[str, tuple[float | None, float]]) -> str:
    """Format as `loss 1.0 -> 1.5; ...`."""
    return "; ".join(f"{name} {was!r} -> {now!r}" for name, (was, now) in differences.items())


def require_step(steps: Mapping[int, RecordedStep], number: int, name: str) -> RecordedStep:
    """The step. Raises NotFoundError, or MismatchError for a training that records no samples."""
    if number not in steps:
        known = f"it has finished steps 1 to {max(steps)}" if steps else "it has finished no step"
        message = f"training {name!r} has no finished step {number}; {known}"
        raise NotFoundError(message)
    if not steps[number].samples:
        message = f"step {number} of training {name!r} is no step of reinforcement learning"
        raise MismatchError(message)
    return steps[number]


def restore_remote_state(recorded: RecordedTraining, base_model: str, run_folder: Path) -> bool:
    """Write the state after the log's newest checkpoint to the run's folder.

    Returns False and writes nothing if no checkpoint in the log is newer than the folder's states.
    Later steps are trained again, in a new generation.
    """
    lineage = recorded.lineage
    newest_here = recorded.states[0].manifest.step if recorded.states else 0
    found = [
        saved
        for saved in lineage.checkpoints
        if saved.path.startswith(SCHEME)
        and saved.step > newest_here
        and saved.step in lineage.steps
    ]
    if not found:
        return False
    saved = max(found, key=lambda one: one.step)
    step = lineage.steps[saved.step]
    folder = resume_state.begin_state(run_folder, step.generation, step.number)
    write_remote(folder, RemoteCheckpoint(saved.path, saved.policy_version, base_model))
    manifest = _manifest_after(recorded, step, saved.policy_version)
    resume_state.commit_state(folder, manifest)
    logger.info("the state after step %d is lost here; %s has it", step.number, saved.path)
    return True


def _manifest_after(recorded: RecordedTraining, step: RecordedStep, version: int) -> Manifest:
    """Manifest of the state after `step`, at policy `version`."""
    events = recorded.stream.events
    envelope = next(event.envelope for event in events if event.payload is step.finished)
    return Manifest(
        training_name=recorded.run_name,
        generation=step.generation,
        step=step.number,
        policy_version=version,
        log_id=recorded.log_id,
        log_start={},
        since={},
        evaluations=_evaluations(recorded.history, step),
        moving_baseline=next_baseline(step.finished),
        claim_epoch=envelope.epoch,
        claim_source=envelope.source,
    )


def _evaluations(history: TrainingHistory, step: RecordedStep) -> tuple[EvaluationSummary, ...]:
    """Finished evaluations up to the step, oldest first."""
    found = []
    for item in history.scheduled(step.generation):
        finished = history.evaluation_finished(item.id)
        if finished is not None and (item.created.step or 0) <= step.number:
            result = RecordedResult(item.id, item.created, finished)
            found.append(evaluation_summary(item.label, result))
    return tuple(sorted(found, key=lambda item: item.step))


@dataclass(frozen=True, slots=True)
class Redone:
    """The result of training a step again."""

    from_step: int
    """Step of the state it started from; 0 for the fresh policy."""
    steps: tuple[RedoneStep, ...]
    adapter_sha256: str
    is_checkpoint_equal: bool | None
    """None if the step has no checkpoint or was trained with a control."""
    control: ControlName = "none"
    """Control used for the last step; with any except `none`, that step is not compared."""

    @property
    def is_equal(self) -> bool | None:
        """Whether all measurements, and the checkpoint if there is one, are bit-identical.

        None if the last step was trained with a control and all earlier steps were identical.
        """
        if self.is_checkpoint_equal is False or any(step.differences for step in self._compared):
            return False
        return True if self.control == "none" else None

    @property
    def _compared(self) -> tuple[RedoneStep, ...]:
        """The steps that were trained as recorded."""
        return self.steps if self.control == "none" else self.steps[:-1]

    def as_json(self) -> dict[str, JsonValue]:
        """The result for `--json`."""
        return {
            "step": self.steps[-1].recorded.number,
            "from_step": self.from_step,
            "equal": self.is_equal,
            "control": self.control,
            "loss": self.steps[-1].update.loss,
            "policy_gradient_norm": self.steps[-1].update.gradient_norm,
            "adapter_sha256": self.adapter_sha256,
            "checkpoint_equal": self.is_checkpoint_equal,
            "differences": [
                {"step": step.recorded.number, "field": name, "recorded": was, "redone": now}
                for step in self._compared
                for name, (was, now) in step.differences.items()
            ],
        }


def redo(
    installation: Installation,
    training_name: str,
    step: int,
    output: Path | None,
    stop: threading.Event,
    control: ControlName = "none",
) -> Redone:
    """Train the step again; saves the adapter to `output`, if given, in PEFT's layout.

    `control` trains with the rewards of that control. Raises UsageError if the training's
    advantages do not support it, NotFoundError for an unknown training or step or if something that
    it was trained on is gone, and StopRequestedError between two steps.
    """
    check_known(installation, training_name)
    run_folder = find_run_folder(installation, training_name)
    with Emitter.open(installation, stop=stop) as emitter:
        recorded = read_recorded_training(emitter, training_name, run_folder, stop)
        if not recorded.stream.exists:
            raise unknown_training(installation, training_name)
        lineage = recorded.lineage
        steps = lineage.steps
        wanted = require_step(steps, step, training_name)
        before = state_before(recorded.states, steps, step)
        begins_at = 0 if before is None else before.manifest.step
        whole = recorded.read_whole(emitter.log)
    settings = recorded.history.newest_configuration.config
    config = read_config(recorded_fields(settings))
    if config.provider == "tinker":
        message = f"training {training_name!r} is trained by Tinker, whose bits do not repeat"
        raise UsageError(
            message, ways=("begin another training from a checkpoint with --load-checkpoint-path",)
        )
    controlled = None if control == "none" else _with_control(config, control)
    policy = load_policy(config.sampled_here(), installation)
    if policy is None:
        message = "the demo policy is not on this machine; copy CUA_HOME/policies here"
        raise NotFoundError(message)
    learner, _ = policy
    if before is not None:
        learner.load_state(before.folder)
    read_blob = open_blobs(installation).get
    redone = []
    again = [steps[number] for number in range(begins_at + 1, step + 1)]
    for redo_step in redo_steps(whole, config, learner, again, read_blob, controlled):
        redone.append(redo_step)
        if stop.is_set():
            raise StopRequestedError
    with TemporaryDirectory() as temporary:
        folder = output or Path(temporary) / "adapter"
        folder.mkdir(parents=True, exist_ok=True)
        sha256 = learner.save_checkpoint(folder)
    saved = [
        checkpoint.adapter_sha256
        for checkpoint in lineage.checkpoints
        if (checkpoint.generation, checkpoint.step) == (wanted.generation, wanted.number)
    ]
    is_same = saved[-1] == sha256 if saved and control == "none" else None
    return Redone(begins_at, tuple(redone), sha256, is_same, control)


def _with_control(config: RunConfig, control: ControlName) -> RunConfig:
    if config.control != "none":
        message = (
            f"training {config.training_name!r} uses the control {config.control} already;"
            " choose a training without a control"
        )
        raise UsageError(message)
    return read_config({**config.recorded(), "control": control})
