"""What must hold of a log after any number of kills, checked from `cua-project tail --json` alone.

Imports nothing of ours.

Returns violations as sentences; an empty list is the proof.
"""

from collections import Counter, defaultdict
from typing import Any

ENDS = {
    "rollout": {"finished": "completed", "failed": "failed", "cancelled": "cancelled"},
    "environment": {"terminated": "terminated", "failed": "error"},
    "evaluation": {"finished": "completed", "failed": "failed", "cancelled": "cancelled"},
    "step": {"finished": "completed", "failed": "failed"},
    "group": {"finished": "completed", "failed": "failed"},
}


def accepted(events: list[dict[str, Any]]) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Each stream's events in order of the log, and every break of the order within a stream.

    A record that the log has twice (sent again after an answer got lost) is the same event and
    counts once.
    """
    streams: dict[str, list[dict[str, Any]]] = defaultdict(list)
    seen: set[str] = set()
    for event in sorted(
        events, key=lambda event: (event["topic"], event["partition"], event["offset"])
    ):
        if event["id"] not in seen:
            seen.add(event["id"])
            streams[event["subject"]].append(event)
    wrong = []
    for subject, records in streams.items():
        epoch, sequence, source = 0, 0, ""
        for record in records:
            if (
                record["epoch"] == epoch
                and record["sequence"] == sequence + 1
                and record["source"] == source
            ):
                sequence += 1
            elif record["epoch"] == epoch + 1 and record["sequence"] == 1:
                expected = f"{epoch}/{sequence}" if epoch else None
                if record.get("continues") != expected:
                    wrong.append(
                        f"{subject}: epoch {epoch + 1} continues {record.get('continues')},"
                        f" expected {expected}"
                    )
                epoch, sequence, source = epoch + 1, 1, record["source"]
            else:
                wrong.append(
                    f"{subject}: {record['epoch']}/{record['sequence']} of {record['source']} after"
                    f" {epoch}/{sequence} of {source}"
                )
    return streams, wrong


def violations(
    events: list[dict[str, Any]], *, num_steps: int, groups: int, group_size: int
) -> list[str]:
    """Differences from what an undisturbed run leaves, cancelled attempts excepted."""
    streams, wrong = accepted(events)
    for subject, records in streams.items():
        kind = subject.partition("/")[0]
        if kind in {"rollout", "environment", "evaluation"}:
            own = [
                record["type"].split(".")[2]
                for record in records
                if record["type"].split(".")[1] == kind
            ]
            ends = [name for name in own if name in ENDS[kind]]
            if len(ends) != 1 or own[-1] not in {*ENDS[kind], "superseded"}:
                wrong.append(
                    f"{subject}: expected one end, the last fact; found {ends}, last {own[-1]}"
                )
    wrong += _steps(streams, num_steps)
    wrong += _places(streams, groups, group_size)
    return wrong


def _steps(streams: dict[str, list[dict[str, Any]]], num_steps: int) -> list[str]:
    wrong = []
    for subject, records in streams.items():
        if not subject.startswith("training/") or records[0]["data"].get("kind") != "rl":
            continue
        types = [record["type"] for record in records]
        if types[-1] != "cua.training.completed" and "cua.training.completed" not in types[-2:]:
            wrong.append(f"{subject}: ends with {types[-1]}")
        created = {
            record["data"]["step_id"]: record["data"]["step"]
            for record in records
            if record["type"] == "cua.step.created"
        }
        finished = Counter(
            record["data"]["step_id"] for record in records if record["type"] == "cua.step.finished"
        )
        if sorted(created[step] for step in finished) != list(range(1, num_steps + 1)) or set(
            finished.values()
        ) - {1}:
            wrong.append(
                f"{subject}: steps finished:"
                f" {sorted((created[step], times) for step, times in finished.items())}"
            )
        for kind in ("group", "step"):
            made = [
                record["data"][f"{kind}_id"]
                for record in records
                if record["type"] == f"cua.{kind}.created"
            ]
            ended = [
                record["data"][f"{kind}_id"]
                for record in records
                if record["type"] in {f"cua.{kind}.finished", f"cua.{kind}.failed"}
            ]
            if sorted(made) != sorted(set(made)) or sorted(made) != sorted(ended):
                wrong.append(f"{subject}: {len(made)} {kind}s made, {len(ended)} ended")
        samples = Counter(
            (record["data"]["step_id"], sample["rollout_id"])
            for record in records
            if record["type"] == "cua.step.samples_chosen"
            for sample in record["data"]["samples"]
        )
        if set(samples.values()) - {1}:
            wrong.append(f"{subject}: a sample was chosen twice")
    return wrong


def _places(streams: dict[str, list[dict[str, Any]]], groups: int, group_size: int) -> list[str]:
    """Every place of a step's groups has one finished rollout; its attempts count from 0."""
    finished: dict[tuple[str, int, int], int] = Counter()
    attempts: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    sources = set()
    for subject, records in streams.items():
        if not subject.startswith("rollout/"):
            continue
        created = records[0]["data"]
        place = (created["source_id"], created["group_num"], created["env_index"])
        attempts[place].append(created["attempt"])
        if created["source_type"] == "step":
            sources.add(created["source_id"])
        finished[place] += any(record["type"] == "cua.rollout.finished" for record in records)
    wrong = [
        f"{place}: {times} finished rollouts" for place, times in finished.items() if times != 1
    ]
    wrong += [
        f"{place}: attempts {sorted(numbers)}"
        for place, numbers in attempts.items()
        if sorted(numbers) != list(range(len(numbers)))
    ]
    for source in sources:
        places = [place for place in finished if place[0] == source]
        if len(places) != groups * group_size:
            wrong.append(f"step {source}: {len(places)} places, expected {groups * group_size}")
    return wrong
