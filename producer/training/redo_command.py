"""One step trained again by hand: reads the log and the run's states, changes neither."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from producer.blobs import open_blobs
from producer.config import read_config, with_later_fields
from producer.emit import Emitter
from producer.errors import NotFoundError, StopRequestedError
from producer.resume.foreign_drops import ForeignDrops
from producer.resume.lineage import recorded_lineage
from producer.resume.open_training import read_recorded_training
from producer.resume.run_folder import find_run_folder
from producer.training.annotations import check_known, unknown_training
from producer.training.loaded import load_policy
from producer.training.redo import (
    RedoneStep,
    redo_steps,
    require_step,
    state_before,
)
from schemas.installation import Installation


@dataclass(frozen=True, slots=True)
class Redone:
    """What came of it."""

    from_step: int
    """Of the state that it began with; 0: the fresh policy."""
    steps: tuple[RedoneStep, ...]
    adapter_sha256: str
    is_checkpoint_equal: bool | None
    """None: the step has no checkpoint."""

    @property
    def is_equal(self) -> bool:
        """Whether every measurement, and the checkpoint if there is one, has the same bits."""
        return self.is_checkpoint_equal is not False and not any(
            step.differences for step in self.steps
        )

    def as_json(self) -> dict[str, JsonValue]:
        """The result for `--json`."""
        return {
            "step": self.steps[-1].recorded.number,
            "from_step": self.from_step,
            "equal": self.is_equal,
            "loss": self.steps[-1].update.loss,
            "policy_gradient_norm": self.steps[-1].update.gradient_norm,
            "adapter_sha256": self.adapter_sha256,
            "checkpoint_equal": self.is_checkpoint_equal,
            "differences": [
                {"step": step.recorded.number, "field": name, "recorded": was, "redone": now}
                for step in self.steps
                for name, (was, now) in step.differences.items()
            ],
        }


def redo(
    installation: Installation,
    training_name: str,
    step: int,
    output: Path | None,
    stop: threading.Event,
) -> Redone:
    """Train the step again; `output`: where the adapter is saved, in PEFT's layout.

    NotFoundError for an unknown training or step, and when something that it was trained on is not
    here any more; StopRequestedError between two steps.
    """
    check_known(installation, training_name)
    run_folder = find_run_folder(installation, training_name)
    with Emitter.open(installation, stop=stop) as emitter:
        fetch_drops = ForeignDrops(installation, os.environ, stop=stop).fetch
        recorded = read_recorded_training(emitter, training_name, run_folder, stop, fetch_drops)
        if not recorded.stream.exists:
            raise unknown_training(installation, training_name)
        lineage = recorded_lineage(event.payload for event in recorded.stream.events)
        steps = lineage.steps
        wanted = require_step(steps, step, training_name)
        before = state_before(recorded.states, steps, step)
        begins_at = 0 if before is None else before.manifest.step
        whole = recorded.read_whole(emitter.log)
    last = recorded.history.last_configuration(recorded.stream)
    config = read_config(with_later_fields(last.config))
    policy = load_policy(config, installation)
    if policy is None:
        message = "the demo policy is not on this machine; copy CUA_HOME/policies here"
        raise NotFoundError(message)
    learner, _ = policy
    if before is not None:
        learner.load_state(before.folder)
    read_blob = open_blobs(installation.blobs_url).get
    redone = []
    again = [steps[number] for number in range(begins_at + 1, step + 1)]
    for redo_step in redo_steps(whole, config, learner, again, read_blob):
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
    is_same = saved[-1] == sha256 if saved else None
    return Redone(begins_at, tuple(redone), sha256, is_same)
