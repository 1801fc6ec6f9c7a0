"""Resume states on disk: one folder per finished step, its manifest written last.

    <run>/state/generation-0/step-000012/   the learner's files, then manifest.json
    <run>/checkpoints/generation-0/step-000010/   the adapter in PEFT's layout, kept

A state without a manifest does not count. A manifest may be ahead of the log: it contains the
events that its step still has to emit.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue, TypeAdapter

from producer.durable import sync_folder, write_durably
from producer.log.writer import TopicPartition
from schemas.base import Payload
from schemas.catalogue import BY_TYPE
from schemas.clustered_errors import TaskCount
from schemas.evaluation import Split
from schemas.upcasting import upcast

FORMAT = 1
NUM_KEPT = 2
"""The newest state, and the previous one in case the newest is damaged."""
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class EvaluationSummary:
    """The part of an evaluation's result that later steps need."""

    label: str
    """`baseline`, `eval-20`, `eval-20-sampled`."""
    step: int
    success: float
    standard_error: float
    episodes: int
    by_task: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    """Other metrics, under tinker-cookbook's names."""
    by_skill: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Skill -> (scored sessions whose entry needs it, solved ones); empty without skills."""
    temperature: float | None = None
    """0 is greedy. None: no episodes were sampled."""
    split: Split | None = None
    """See `EvaluationCreated`."""
    num_tasks: int | None = None
    """Number of distinct tasks. None in the same cases as `temperature`."""
    task_source: str | None = None
    """Short name of the tasks. None in the same cases as `temperature`."""
    evaluation_id: str | None = None
    """Row id. None in the same cases as `temperature`."""
    counts: dict[str, TaskCount] = field(default_factory=dict)
    """Counts by task. Empty in the cases in which `temperature` is None."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of a training after a step (step 0: before the first)."""

    training_name: str
    generation: int
    step: int
    policy_version: int
    log_id: str
    log_start: dict[str, int]
    """`topic/partition` -> an offset at or before the training's first record."""
    since: dict[str, int]
    """`topic/partition` -> an offset at or before any record of a later step's rollouts."""
    evaluations: tuple[EvaluationSummary, ...] = ()
    pending: tuple[dict[str, JsonValue], ...] = ()
    """The step's events that are emitted after the state: {"type", "version", "data"}."""
    moving_baseline: float = 0.0
    """Moving average of the rewards of all steps so far; 0 unless it is the baseline."""
    claim_epoch: int = 0
    """Epoch of the training's stream under which it was saved; 0 before any state."""
    claim_source: str = ""
    """The writer of that epoch."""
    format: int = FORMAT


_MANIFEST = TypeAdapter(Manifest)


class SavedState(NamedTuple):
    """A complete state."""

    manifest: Manifest
    folder: Path


def bounds_to_json(bounds: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Offsets in the form used by manifests."""
    return {f"{at.topic}/{at.partition}": offset for at, offset in bounds.items()}


def bounds_from_json(bounds: Mapping[str, int]) -> dict[TopicPartition, int]:
    """The inverse of `bounds_to_json`."""
    split = ((name.rpartition("/"), offset) for name, offset in bounds.items())
    return {
        TopicPartition(topic, int(partition)): offset for (topic, _, partition), offset in split
    }


def pending_to_json(payload: Payload) -> dict[str, JsonValue]:
    """An event in the form used by manifests."""
    data = payload.model_dump(mode="json")
    return {"type": payload.TYPE, "version": payload.VERSION, "data": data}


def pending_from_json(pending: Mapping[str, Any]) -> Payload:
    """The inverse of `pending_to_json`; also reads older versions of an event."""
    version, data = upcast(pending["type"], int(pending["version"]), pending["data"])
    return BY_TYPE[pending["type"], version].model_validate(data, extra="ignore")


def begin_state(run: Path, generation: int, step: int) -> Path:
    """Create an empty folder for a state, removing the remains of an interrupted one."""
    folder = _folder(run, generation, step)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def commit_state(folder: Path, manifest: Manifest) -> None:
    """Write the manifest durably, which makes the state count."""
    write_durably(folder / MANIFEST, json.dumps(asdict(manifest), indent=1))
    sync_folder(folder.parent)


def update_manifest(run: Path, manifest: Manifest) -> None:
    """Replace the manifest of a committed state, durably."""
    folder = _folder(run, manifest.generation, manifest.step)
    write_durably(folder / MANIFEST, json.dumps(asdict(manifest), indent=1))


def drop_old_states(run: Path, generation: int, step: int) -> None:
    """Keep the `NUM_KEPT` newest states of this generation up to `step`.

    Removes every other folder up to `step`, including incomplete states of killed processes.
    """
    in_order = {
        (len(path.name), path.name): path
        for path in (run / "state" / f"generation-{generation}").glob("step-*")
    }
    name = _folder(run, generation, step).name
    last = (len(name), name)
    whole = [at for at, path in in_order.items() if (path / MANIFEST).exists()]
    kept = sorted(at for at in whole if at <= last)[-NUM_KEPT:]
    for at, folder in in_order.items():
        if kept and at < last and at not in kept:
            (folder / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)


def find_states(run: Path) -> list[SavedState]:
    """Every complete state, newest first. Damaged manifests are skipped."""
    found = []
    for path in (run / "state").glob(f"generation-*/step-*/{MANIFEST}"):
        try:
            manifest = _MANIFEST.validate_json(path.read_bytes())
        except ValueError:  # not JSON, or not a manifest
            continue
        if manifest.format == FORMAT:
            found.append(SavedState(manifest, path.parent))
    newest_first = sorted(found, key=lambda item: (item.manifest.generation, item.manifest.step))
    return newest_first[::-1]


def _folder(run: Path, generation: int, step: int) -> Path:
    return run / "state" / f"generation-{generation}" / f"step-{step:06d}"


def checkpoint_folder(run: Path, generation: int, step: int) -> Path:
    """Folder in which a run keeps the checkpoint of a step."""
    return run / "checkpoints" / f"generation-{generation}" / f"step-{step:06d}"


def write_config(run: Path, config: dict[str, JsonValue]) -> None:
    """Store the whole configuration next to the states, for evaluating them."""
    write_durably(run / "config.json", json.dumps(config, indent=1))


def read_run_config(run: Path) -> dict[str, JsonValue]:
    """The configuration stored by `write_config`.

    Raises FileNotFoundError if the run never began, ValueError or TypeError if it is invalid.
    """
    text = (run / "config.json").read_text(encoding="utf-8")
    try:
        return dict(json.loads(text))
    except RecursionError:
        message = "config.json is nested too deep"
        raise ValueError(message) from None
