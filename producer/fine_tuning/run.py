"""`fine_tune(...)`: one process's work on a supervised training, from settings to result.

The counterpart of `producer.training.run`, with the same lock, log, claim, heartbeat and resume,
but other steps.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from producer.console import progress_bar
from producer.emit.heartbeat import HEARTBEAT_S
from producer.errors import NotFoundError, UsageError
from producer.fine_tuning.examples import load_examples
from producer.fine_tuning.loop import FineTuningLoop, describe, held_out_summary
from producer.fine_tuning.output import check_output, holds_result, output_folder, write_output
from producer.fine_tuning.settings import FineTuningConfig, Objective, read_fine_tuning
from producer.fine_tuning.trainee import Trainee, open_trainee
from producer.resume import resume_state
from producer.resume.open_training import AlreadyComplete
from producer.resume.resume_state import EvaluationSummary, Manifest
from producer.resume.run_folder import check_not_elsewhere, find_run_folder, training_in
from producer.training.lifecycle import OwnedTraining, own_training
from producer.training.open_policy import require_torch
from producer.training.preflight import check_home, check_services, check_writable
from producer.training.run import utc_now
from producer.training.run_files import METRICS
from producer.training.tracking import require_tracker
from producer.training_name import check_training_name, new_training_name
from schemas import ids
from schemas.advice import did_you_mean
from schemas.base import Progress
from schemas.installation import Installation

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuningSummary:
    """The last line of `cua-train sql sft --json`.

    Figures of held-out examples are None if no examples were held out.
    """

    training_name: str
    training_id: str
    objective: str
    status: str
    """Always `completed`."""
    steps: int
    epochs: int
    examples: int
    """Number of examples trained on."""
    held_out: int
    left_out: int
    """Number of examples longer than `max_length`."""
    train_loss_first: float | None
    """Loss of the first step; None if the file of figures was lost."""
    train_loss_last: float | None
    loss_before: float | None
    loss_after: float | None
    accuracy_before: float | None
    """Accuracy over held-out tokens, steps or pairs."""
    accuracy_after: float | None
    auc_before: float | None
    auc_after: float | None
    seconds: float
    """Duration of this process."""
    generation: int
    log_path: str
    output_dir: str


def fine_tune(
    objective: Objective,
    given: Mapping[str, Any],
    *,
    installation: Installation,
    names: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
    on_open: Callable[[str, Path], None] | None = None,
    takeover: bool = False,
) -> FineTuningSummary:
    """Train to the end, or continue the training of the same name. Blocks.

    `given` holds our fields, and `names` maps them to the user's names. Raises the errors of
    `producer.errors`; refused settings leave nothing behind. Raises StopRequestedError after `stop`
    was set; the training is then cancelled and can be continued.
    """
    begun_s = monotonic()
    stop = stop or threading.Event()
    place = _place(objective, given, dict(names or {}), installation)
    config, folder = place.config, place.folder
    check_home(installation, config.model_name)
    if config.log_path is not None:
        check_writable(folder, "log_path")
        check_not_elsewhere(installation, place.name, folder)
    output = output_folder(config.output_dir, folder)
    check_output(output, place.name, (folder, installation.home))
    require_tracker(config)
    require_torch(config.model_name)
    trainee = open_trainee(config, load_examples(config))
    config = trainee.config
    check_services(installation, stop)
    owning = own_training(
        installation,
        place.name,
        folder,
        config,
        clock=utc_now,
        stop=stop,
        takeover=takeover,
        on_open=on_open,
    )
    with owning as (_, owned):
        if isinstance(owned, AlreadyComplete):
            logger.info("training %r is already complete", place.name)
            _restore_output(trainee, place, output, owned.manifest)
        else:
            with owned.working(config, HEARTBEAT_S):
                _train(owned, trainee, output)
        manifest = owned.manifest
    return _summary(manifest, trainee, folder, output, monotonic() - begun_s)


@dataclass(frozen=True, slots=True)
class _Place:
    """A training's name, folder and settings."""

    name: str
    folder: Path
    config: FineTuningConfig


def _place(
    objective: Objective,
    given: Mapping[str, Any],
    names: dict[str, str],
    installation: Installation,
) -> _Place:
    """Find the training that the settings refer to, together with its original settings."""
    log_path = given.get("log_path")
    log_path = None if log_path is None else Path(log_path).expanduser().absolute()
    known = None if log_path is None else training_in(log_path)
    asked = given.get("training_name") or known
    try:
        name = None if asked is None else check_training_name(str(asked))
    except ValueError as error:
        message = f"training_name: {error}"
        raise UsageError(message) from None
    if name is None:
        model_name = str(given.get("model_name", "training"))
        name = new_training_name(model_name, utc_now())
    folder = find_run_folder(installation, name, log_path)
    try:
        recorded = resume_state.read_run_config(folder)
    except FileNotFoundError:
        recorded = None
    if recorded is None and asked is not None and "model_name" not in given:
        runs = installation.runs_dir
        begun = [path.name for path in runs.iterdir()] if runs.is_dir() else []
        message = f"there is no training {name!r} here.{did_you_mean(name, begun)}"
        raise NotFoundError(message, ways=("to begin it, give model_name and data_path",))
    if recorded is not None and (other := recorded.get("objective")) != objective:
        message = f"training {name!r} is {_BEGUN_AS.get(str(other), 'of `cua-train run`')}"
        ways = ("continue it with that", "choose another --training-name")
        raise UsageError(message, ways=ways)
    changed = dict(given)
    if log_path is not None:
        changed["log_path"] = log_path
    config = read_fine_tuning(objective, changed, recorded, names)
    return _Place(name, folder, config.model_copy(update={"training_name": name}))


_BEGUN_AS = {
    "sft": "of `cua-train sql sft`",
    "process_reward": "of `cua-train sql reward-model --kind process`",
    "pairwise_reward": "of `cua-train sql reward-model --kind pairwise`",
}


def _restore_output(trainee: Trainee, place: _Place, output: Path, manifest: Manifest) -> None:
    """Write a missing result again from the last state."""
    if holds_result(output, place.name):
        return
    states = resume_state.find_states(place.folder)
    state = next(state for state in states if state.manifest.step == manifest.step)
    trainee.fit.load_state(state.folder)
    write_output(output, place.name, trainee.export)


def _train(owned: OwnedTraining[FineTuningConfig], trainee: Trainee, output: Path) -> None:
    def evaluate() -> list[EvaluationSummary]:
        if (figures := trainee.evaluate()) is None:
            return []
        logger.info("before the first step: %s", describe(figures))
        return [held_out_summary(0, figures)]

    owned.load(trainee.fit)
    owned.begin(trainee.fit, evaluate)
    with progress_bar(owned.name, owned.config.num_steps) as bar:
        bar.advance(owned.manifest.step)
        FineTuningLoop(owned, trainee, bar).run()
    owned.lock.check()
    write_output(output, owned.name, trainee.export)
    owned.complete(Progress(percent=100.0))


def _summary(
    manifest: Manifest, trainee: Trainee, folder: Path, output: Path, seconds: float
) -> FineTuningSummary:
    by_step = {evaluation.step: evaluation for evaluation in reversed(manifest.evaluations)}
    before, after = by_step.get(0), by_step.get(manifest.step)
    losses = _train_losses(folder)
    return FineTuningSummary(
        training_name=manifest.training_name,
        training_id=str(ids.training_id(manifest.training_name)),
        objective=trainee.config.objective,
        status="completed",
        steps=manifest.step,
        epochs=trainee.config.epochs,
        examples=trainee.num_examples,
        held_out=trainee.num_held_out,
        left_out=trainee.num_left_out,
        train_loss_first=losses[0] if losses else None,
        train_loss_last=losses[-1] if losses else None,
        loss_before=_metric(before, "loss"),
        loss_after=_metric(after, "loss"),
        accuracy_before=_metric(before, "accuracy"),
        accuracy_after=_metric(after, "accuracy"),
        auc_before=_metric(before, "auc"),
        auc_after=_metric(after, "auc"),
        seconds=round(seconds, 3),
        generation=manifest.generation,
        log_path=str(folder),
        output_dir=str(output),
    )


def _metric(summary: EvaluationSummary | None, name: str) -> float | None:
    return None if summary is None else summary.metrics.get(f"test/{name}")


def _train_losses(folder: Path) -> list[float]:
    """The loss of every step, from the file of figures."""
    try:
        lines: list[dict[str, Any]] = [
            json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()
        ]
    except (OSError, ValueError):
        return []
    return [line["optim/loss"] for line in lines if line.get("optim/loss") is not None]
