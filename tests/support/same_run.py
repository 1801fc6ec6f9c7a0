"""Compares two trainings bit for bit: `python -m tests.support.same_run HOME NAME HOME NAME`.

Compared are, under the names of their places: every turn's tokens, log-probs, screens and actions,
what sessions and completions came to and the scores of their steps, every sample's use, the figures
of steps, evaluations and skills, and the files of resume states, checkpoints and results. Times,
ids and attempts are not. A rollout that a kill cut off does not count; the one that took its place
does.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schemas.installation import read_installation
from tests.support.reading import read_all

Place = tuple[str, ...]
Bits = dict[Place, str]
"""What is compared -> a hash of it."""

_JUDGED = {
    "cua.session.ended": ("session_status", "outcome", "answer", "table_hash", "num_replayed"),
    "cua.completion.executed": ("sql", "outcome", "outcome_reward", "process_reward", "num_rows"),
    "cua.completion.steps_scored": ("scorer", "steps", "product"),
}
_FIGURES = {
    "cua.step.finished": ("loss", "kl_divergence", "policy_gradient_norm", "reward_mean"),
    "cua.evaluation.finished": ("success_rate", "avg_reward", "avg_turns"),
}


def bits_of(home: Path, name: str, topic_prefix: str = "") -> Bits:
    """Of the training `name`, from its log (with Kafka: what the home has of it) and its folder."""
    installation = read_installation({"CUA_HOME": str(home), "CUA_TOPIC_PREFIX": topic_prefix})
    events = [json.loads(record.value) for record in read_all(installation)]
    return {
        **{place: _hash(content) for place, content in _recorded(events, name)},
        **{place: _hash(content) for place, content in _files(home / "runs" / name)},
    }


def differences(first: Bits, second: Bits) -> list[str]:
    """Places that one of them lacks or whose bits differ."""
    return [
        "/".join(place)
        for place in sorted(first.keys() | second.keys())
        if first.get(place) != second.get(place)
    ]


def _recorded(events: list[dict[str, Any]], name: str) -> Iterator[tuple[Place, object]]:
    created = {
        event["subject"]: event["data"]
        for event in events
        if event["type"] == "cua.rollout.created"
        and event["data"]["rollout_id"].startswith(f"{name}/")
    }
    # training / generation / step or evaluation / group / place / attempt [/ epoch]
    rollouts = {key: tuple(data["rollout_id"].split("/")[1:5]) for key, data in created.items()}
    labels = {data["source_id"]: rollouts[key][1] for key, data in created.items()}
    own = {
        event["subject"]
        for event in events
        if event["type"] == "cua.training.created" and event["data"]["run_name"] == name
    }
    for event in events:
        if event["type"] == "cua.step.created" and event["subject"] in own:
            # A supervised training's steps have no rollouts.
            labels.setdefault(event["data"]["step_id"], f"step-{event['data']['step']}")
    ended = {event["subject"] for event in events if event["type"] == "cua.rollout.finished"}
    place_of = {subject.split("/")[1]: rollouts[subject] for subject in ended & rollouts.keys()}
    for event in events:
        owner = event["subject"].split("/")[1]
        if owner in place_of:
            yield from _of_rollout(event, place_of[owner])
        elif event["subject"] in own or event["data"].get("step_id", owner) in labels:
            yield from _of_trainer(event, labels, place_of)


def _of_rollout(event: dict[str, Any], place: Place) -> Iterator[tuple[Place, object]]:
    data, kind = event["data"], event["type"]
    if kind == "cua.rollout.turn_taken":
        compared = ("screenshot_before", "screenshot_after", "tokens", "actions", "text")
        yield ("turn", *place, f"{data['turn']:03d}"), [data[each] for each in compared]
    if kind == "cua.rollout.finished":
        yield ("reward", *place), [data["reward"], data["num_turns"]]
    if kind in _JUDGED:
        yield (kind, *place), [data[each] for each in _JUDGED[kind]]


def _of_trainer(
    event: dict[str, Any], labels: dict[str, str], place_of: dict[str, Place]
) -> Iterator[tuple[Place, object]]:
    data, kind = event["data"], event["type"]
    if kind == "cua.training.skills_measured":
        yield (kind, str(data["step"])), [data["stage"], data["skills"]]
    if kind == "cua.step.samples_chosen":
        for sample in data["samples"]:
            if sample["rollout_id"] in place_of:
                used = [sample[each] for each in ("advantage", "used", "drop_reason")]
                yield ("sample", *place_of[sample["rollout_id"]]), used
    label = labels.get(data.get("step_id", event["subject"].split("/")[1]))
    if kind in _FIGURES and label is not None:
        yield (kind, label), [data[each] for each in _FIGURES[kind]]


def _files(folder: Path) -> Iterator[tuple[Place, object]]:
    patterns = ("state/*/*/*.safetensors", "checkpoints/**/*.safetensors", "model/*.safetensors")
    kept = [path for pattern in patterns for path in folder.glob(pattern)]
    for path in kept:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        yield ("file", *path.relative_to(folder).parts), digest
    for path in folder.glob("state/*/*/*optimizer*.pt"):
        yield ("file", *path.relative_to(folder).parts), _tensors(path)


def _tensors(path: Path) -> str:
    """A hash of a file of torch.save, whose archive has other bytes than its tensors."""
    import torch

    digest = hashlib.sha256()
    saved = torch.load(path, weights_only=True)
    for optimizer in saved.get("optimizers") or [saved["optimizer"]]:
        for number, values in sorted(optimizer["state"].items()):
            for key, value in sorted(values.items()):
                digest.update(f"{number}/{key}".encode() + value.numpy().tobytes())
    return digest.hexdigest()


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def main() -> int:
    """Print how many were compared and which differ; exit 4 when any does."""
    first, second = (
        bits_of(Path(home), name, os.environ.get("CUA_TOPIC_PREFIX", ""))
        for home, name in zip(sys.argv[1::2], sys.argv[2::2], strict=True)
    )
    different = differences(first, second)
    kinds = {kind: sum(place[0] == kind for place in first) for kind, *_ in first}
    sys.stdout.write(json.dumps({"compared": kinds, "different": len(different)}) + "\n")
    for place in different[:20]:
        sys.stdout.write(f"{place}\n")
    return 4 if different or not first else 0


if __name__ == "__main__":
    raise SystemExit(main())
