"""Every event ever written can be replayed; one file per type and version in tests/data/events.

A further file of a type and version has a word more: `TYPE.vVERSION.without_screen.json`.
"""

import json
from pathlib import Path

import pytest

from schemas.catalogue import BY_TYPE, PAYLOADS, entity_of, stream_kind
from schemas.status import MACHINES
from schemas.wire import decode, encode
from tests.support.paths import GOLDEN_EVENTS

FOLDER = GOLDEN_EVENTS
FILES = sorted(FOLDER.glob("*.json"))


def test_every_type_and_version_has_a_golden_file() -> None:
    assert {path.name for path in FILES} >= {
        f"{type_}.v{version}.json" for type_, version in BY_TYPE
    }


def test_no_two_payloads_share_a_type_and_version() -> None:
    assert len(BY_TYPE) == len(PAYLOADS)


OLD = {"cua.rollout.turn_taken.v1": {"screenshot_width_px": None, "screenshot_height_px": None}}
"""Golden events of old versions -> what their data has besides when it is written again."""


ADDED: dict[str, dict[str, object]] = {
    "cua.evaluation.created.v1": {
        "temperature": None,
        "split": None,
        "num_tasks": None,
        "task_source": None,
    },
    "cua.evaluation.finished.v1": {"standard_error": None},
}
"""Golden events written before their version got an optional field -> those fields."""


def is_current(path: Path) -> bool:
    type_, _, version = path.stem.rpartition(".v")
    return (type_, int(version.partition(".")[0])) in BY_TYPE


def test_every_golden_event_is_of_the_current_version_or_listed_as_old() -> None:
    assert {path.stem for path in FILES if not is_current(path)} == OLD.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_golden_event_reads_back_and_is_written_as_it_was_in_the_current_version(
    path: Path,
) -> None:
    written = json.loads(path.read_text())
    if not is_current(path):
        written["data"] |= OLD[path.stem]
        written["dataschema"] = written["dataschema"].removesuffix(":1") + ":2"
    written["data"] |= ADDED.get(path.stem, {})
    envelope, payload = decode(path.read_bytes())
    again = encode(
        payload,
        id=envelope.id,
        source=envelope.source,
        time=envelope.time,
        subject=envelope.subject,
        epoch=envelope.epoch,
        sequence=envelope.sequence,
        training_id=envelope.training_id,
        continues=envelope.continues,
    )
    assert json.loads(again) == written


def test_a_fact_that_changes_a_status_names_an_entity_and_a_state_that_exist() -> None:
    for path in FILES:
        envelope, payload = decode(path.read_bytes())
        stream_kind(envelope.subject)
        entity = entity_of(envelope.subject, payload)
        if payload.STATUS is not None:
            assert entity is not None, path.stem
            assert payload.STATUS in MACHINES[entity[0]].states, path.stem
        if payload.CREATES:
            assert entity is not None, path.stem
            assert MACHINES[entity[0]].initial == payload.STATUS, path.stem
