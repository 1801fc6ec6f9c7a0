"""Resume states on disk: one folder per finished step, its manifest written last, so that a state is whole or not there.

    <run>/state/step-000012/{adapter, optimiser, ... as the learner writes them} manifest.json
    <run>/checkpoints/step-000010/   the adapter in PEFT's layout, kept

A manifest may be ahead of the log: it carries the events that its step still has to emit.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import JsonValue

from producer.log.writer import TopicPartition

FORMAT = 1
NUM_KEPT = 2
"""States kept: the newest, and the one before in case the newest is damaged."""


@dataclass(frozen=True, slots=True)
class EvaluationSummary:
    """What an evaluation came to, as far as later steps need it."""

    label: str
    """`baseline`, `eval-20`."""
    step: int
    success: float
    standard_error: float
    episodes: int
    by_task: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where a training stands after a step (step 0: before the first)."""

    training_name: str
    generation: int
    step: int
    policy_version: int
    log_id: str
    log_start: dict[str, int]
    """`topic/partition` -> offset before the training's first record."""
    since: dict[str, int]
    """`topic/partition` -> offset before which no rollout of a later step lies."""
    evaluations: tuple[EvaluationSummary, ...]
    pending: tuple[dict[str, JsonValue], ...]
    """The step's events that follow the state: {"type", "version", "data"}."""
    trained_seconds: float
    """Wall-clock of all processes so far."""
    format: int = FORMAT


def bounds_to_json(bounds: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Offsets as a manifest has them."""
    return {f"{place.topic}/{place.partition}": offset for place, offset in bounds.items()}


def bounds_from_json(bounds: Mapping[str, int]) -> dict[TopicPartition, int]:
    """The inverse."""
    split = ((name.rpartition("/"), offset) for name, offset in bounds.items())
    return {
        TopicPartition(topic, int(partition)): offset for (topic, _, partition), offset in split
    }


def _folder(run: Path, generation: int, step: int) -> Path:
    return run / "state" / f"generation-{generation}" / f"step-{step:06d}"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def begin_state(run: Path, generation: int, step: int) -> Path:
    """An empty folder for a state; remains of an unfinished one are removed."""
    folder = _folder(run, generation, step)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def commit_state(folder: Path, manifest: Manifest) -> None:
    """Make the state valid: its manifest appears, synced, under its name."""
    temporary = folder / "manifest.json.tmp"
    with temporary.open("w") as file:
        json.dump(asdict(manifest), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / "manifest.json")
    _sync_folder(folder)
    _sync_folder(folder.parent)


def drop_old_states(run: Path, generation: int, step: int) -> None:
    """Keep the newest states of this generation, and nothing older."""
    for number in range(step - NUM_KEPT, -1, -1):
        folder = _folder(run, generation, number)
        if not folder.exists():
            return
        (folder / "manifest.json").unlink(missing_ok=True)
        shutil.rmtree(folder)


def find_states(run: Path) -> list[tuple[Manifest, Path]]:
    """Every whole state, newest first.

    What cannot be read is passed over (it was being written).
    """
    found = []
    for path in (run / "state").glob("generation-*/step-*/manifest.json"):
        try:
            raw = json.loads(path.read_text())
            summaries = tuple(EvaluationSummary(**summary) for summary in raw.pop("evaluations"))
            manifest = Manifest(
                **{**raw, "evaluations": summaries, "pending": tuple(raw["pending"])}
            )
        except (ValueError, TypeError, KeyError):
            continue
        if manifest.format == FORMAT:
            found.append((manifest, path.parent))
    return sorted(found, key=lambda item: (item[0].generation, item[0].step), reverse=True)


def write_config(run: Path, config: dict[str, JsonValue]) -> None:
    """Keep the run's whole configuration beside its states, for whoever evaluates them."""
    temporary = run / "config.json.tmp"
    temporary.write_text(json.dumps(config, indent=1))
    temporary.rename(run / "config.json")


def read_config_of(run: Path) -> dict[str, JsonValue]:
    """The run's configuration; FileNotFoundError when it never began here."""
    config = json.loads((run / "config.json").read_text())
    return dict(config)
