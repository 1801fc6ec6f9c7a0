"""What a manifest carries is read back, an older release's too."""

import json
from pathlib import Path
from typing import Any

import pytest

from producer.resume.resume_state import pending_from_json, pending_to_json
from schemas.catalogue import BY_TYPE
from schemas.wire import decode
from tests.support.paths import GOLDEN_EVENTS

FILES = sorted(GOLDEN_EVENTS.glob("*.json"))


def pending_of(path: Path) -> dict[str, Any]:
    """As the release that wrote this golden event saved it in a manifest."""
    event = json.loads(path.read_text())
    version = int(event["dataschema"].rpartition(":")[2])
    return {"type": event["type"], "version": version, "data": event["data"]}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pending_event_of_every_version_is_read(path: Path) -> None:
    payload = decode(path.read_bytes()).payload
    assert pending_from_json(pending_of(path)) == payload
    assert pending_from_json(pending_to_json(payload)) == payload


def test_a_field_that_is_gone_is_ignored() -> None:
    pending = pending_of(GOLDEN_EVENTS / "cua.step.finished.v1.json")
    pending["data"]["field_of_an_older_release"] = 1
    assert type(pending_from_json(pending)) is BY_TYPE["cua.step.finished", 1]
