"""What a manifest carries is read back, an older release's too."""

import json
from pathlib import Path
from typing import Any

import pytest

from producer.resume.resume_state import (
    MANIFEST,
    begin_state,
    drop_old_states,
    pending_from_json,
    pending_to_json,
)
from schemas.catalogue import BY_TYPE
from schemas.wire import decode
from tests.support.paths import GOLDEN_EVENTS


def pending_of(path: Path) -> dict[str, Any]:
    """As the release that wrote this golden event saved it in a manifest."""
    event = json.loads(path.read_text())
    version = int(event["dataschema"].rpartition(":")[2])
    return {"type": event["type"], "version": version, "data": event["data"]}


def test_a_pending_event_of_every_version_is_read() -> None:
    for path in GOLDEN_EVENTS.glob("*.json"):
        payload = decode(path.read_bytes()).payload
        assert pending_from_json(pending_of(path)) == payload
        assert pending_from_json(pending_to_json(payload)) == payload


def test_a_field_that_is_gone_is_ignored() -> None:
    pending = pending_of(GOLDEN_EVENTS / "cua.step.finished.v1.json")
    pending["data"]["field_of_an_older_release"] = 1
    assert type(pending_from_json(pending)) is BY_TYPE["cua.step.finished", 1]


@pytest.mark.parametrize(
    ("whole", "torn", "step", "left"),
    [
        ((0, 1, 2, 3), (), 3, [2, 3]),
        # A kill among the deletions: 2 is gone, 0 and 1 were to follow.
        ((0, 1, 3, 4), (), 4, [3, 4]),
        # A state that a kill cut off is none of the two, and goes with the next one.
        ((1, 3, 5), (2, 4), 5, [3, 5]),
        ((3,), (), 3, [3]),
        # Supervised trainings do not save every step.
        ((0, 40, 95), (), 95, [40, 95]),
        # Of what is later than the step in question none goes or counts.
        ((1, 2, 3, 9), (), 3, [2, 3, 9]),
        ((999_998, 999_999, 1_000_000), (), 1_000_000, [999_999, 1_000_000]),
    ],
)
def test_the_two_newest_states_are_kept_whatever_a_kill_left_behind(
    tmp_path: Path, whole: tuple[int, ...], torn: tuple[int, ...], step: int, left: list[int]
) -> None:
    for number in (*whole, *torn):
        folder = begin_state(tmp_path, 0, number)
        (folder / "adapter.safetensors").write_text("weights")
        if number in whole:
            (folder / MANIFEST).write_text("{}")
    begin_state(tmp_path, 1, 0)
    drop_old_states(tmp_path, 0, step)
    found = (tmp_path / "state" / "generation-0").iterdir()
    assert sorted(int(item.name.removeprefix("step-")) for item in found) == left
    assert [path.name for path in (tmp_path / "state" / "generation-1").iterdir()] == [
        "step-000000"
    ]
