"""Events survive encoding; what cannot be decoded is refused with a reason."""

import contextlib
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.arrays import decode_float32, decode_int32, encode_float32, encode_int32
from schemas.base import Payload, Progress
from schemas.event import StreamPoint
from schemas.step import StepFinished
from schemas.training import HeartbeatSent, TrainingFailed
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    decode,
    encode,
    read_envelope,
    read_payload,
)
from tests.support.paths import GOLDEN_EVENTS

NOW = datetime(2026, 11, 21, 3, 14, 15, 926535, tzinfo=UTC)
EVENT_ID = UUID("01a1fc33-4830-7d5d-ae4e-285be08117e3")
STEP = UUID("6f1d7f0a-6b0c-5d0e-9d57-3c1f0a2e4b61")
SUBJECT = "training/6f1d7f0a-6b0c-5d0e-9d57-3c1f0a2e4b61"


def written(payload: Payload, continues: StreamPoint | None = None) -> bytes:
    return encode(
        payload,
        id=EVENT_ID,
        source="//h/1/x",
        time=NOW,
        subject=SUBJECT,
        epoch=2,
        sequence=3,
        training_id=STEP,
        continues=continues,
    )


def step_finished(loss: float) -> StepFinished:
    return StepFinished(
        step_id=STEP,
        training_ended_at=NOW,
        loss=loss,
        kl_divergence=0.0,
        policy_gradient_norm=0.0,
        reward_mean=0.0,
        reward_std=0.0,
        num_trajectories=1,
        num_tokens=1,
        policy_version=1,
        progress=Progress(percent=1.0),
        metrics={},
    )


def test_the_envelope_is_cloudevents_with_our_extensions() -> None:
    assert json.loads(written(HeartbeatSent(), StreamPoint(1, 17))) == {
        "specversion": "1.0",
        "id": "01a1fc33-4830-7d5d-ae4e-285be08117e3",
        "source": "//h/1/x",
        "type": "cua.training.heartbeat_sent",
        "time": "2026-11-21T03:14:15.926535Z",
        "subject": SUBJECT,
        "datacontenttype": "application/json",
        "dataschema": "urn:cua:cua.training.heartbeat_sent:1",
        "trainingid": str(STEP),
        "continues": "1/17",
        "epoch": 2,
        "sequence": 3,
        "data": {},
    }


@pytest.mark.parametrize("loss", [math.inf, -math.inf, 1e-300, 0.1 + 0.2])
def test_infinities_and_every_digit_survive(loss: float) -> None:
    payload = decode(written(step_finished(loss))).payload
    assert isinstance(payload, StepFinished)
    assert payload.loss == loss


def test_nan_survives() -> None:
    payload = decode(written(step_finished(math.nan))).payload
    assert isinstance(payload, StepFinished)
    assert math.isnan(payload.loss)


@given(st.text())
def test_any_text_survives(text: str) -> None:
    payload = decode(written(TrainingFailed(error_message=text, ended_at=NOW))).payload
    assert isinstance(payload, TrainingFailed)
    assert payload.error_message == text


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_token_ids_survive(tokens: list[int]) -> None:
    assert decode_int32(encode_int32(tokens)) == tokens


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_logprobs_survive_as_float32(logprobs: list[float]) -> None:
    assert decode_float32(encode_float32(logprobs)) == logprobs


def test_nan_and_infinities_survive_as_logprobs() -> None:
    found = decode_float32(encode_float32([math.nan, -math.inf, math.inf]))
    assert math.isnan(found[0])
    assert found[1:] == [-math.inf, math.inf]


def test_token_ids_are_little_endian_int32() -> None:
    assert encode_int32([1, 256]) == "AQAAAAABAAA="


def test_a_writer_may_not_say_more_than_the_schema() -> None:
    with pytest.raises(ValidationError):
        TrainingFailed(error_message="x", ended_at=NOW, more=1)  # type: ignore[call-arg]  # the point


def test_a_reader_ignores_what_a_newer_writer_adds() -> None:
    raw = json.loads(written(HeartbeatSent()))
    raw["data"]["added_later"] = 1
    raw["extension"] = "x"
    assert decode(json.dumps(raw).encode()).payload == HeartbeatSent()


def test_an_unknown_type_is_told_from_a_broken_payload() -> None:
    raw = json.loads(written(TrainingFailed(error_message="x", ended_at=NOW)))
    unknown = read_envelope(
        json.dumps({**raw, "dataschema": "urn:cua:cua.training.failed:9"}).encode()
    )
    with pytest.raises(UnknownSchemaError, match="version 9"):
        read_payload(unknown)
    broken = read_envelope(json.dumps({**raw, "data": {}}).encode())
    with pytest.raises(InvalidPayloadError, match="error_message"):
        read_payload(broken)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"epoch": 0}, "from 1"),
        ({"epoch": True}, "from 1"),
        ({"epoch": 2**31}, "from 1"),
        ({"sequence": 2**31}, "from 1"),
        ({"sequence": "3"}, "from 1"),
        ({"time": "2026-11-21T03:14:15"}, "zone"),
        ({"time": "yesterday"}, "invalid attribute"),
        ({"time": "0001-01-01T00:00:00+23:59"}, "invalid attribute"),
        ({"id": "x"}, "invalid attribute"),
        ({"data": []}, "object"),
        ({"dataschema": None}, "invalid attribute"),
        ({"continues": "x"}, "invalid attribute"),
        ({"subject": 1}, "invalid attribute"),
    ],
)
def test_a_wrong_envelope_is_unreadable_and_says_why(
    change: dict[str, object], reason: str
) -> None:
    raw = {**json.loads(written(HeartbeatSent())), **change}
    with pytest.raises(UnreadableError, match=reason):
        read_envelope(json.dumps(raw).encode())


@given(st.binary())
def test_no_bytes_raise_anything_but_unreadable(value: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_envelope(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
)


@given(name=st.sampled_from(sorted(json.loads(written(HeartbeatSent())))), value=JSON)
def test_no_value_of_an_attribute_raises_anything_but_unreadable(name: str, value: object) -> None:
    raw = {**json.loads(written(HeartbeatSent())), name: value}
    with contextlib.suppress(UnreadableError):
        assert read_envelope(json.dumps(raw).encode()).subject == raw["subject"]


def test_a_time_without_utc_is_refused_where_it_is_made() -> None:
    with pytest.raises(ValidationError, match="UTC"):
        TrainingFailed(error_message="x", ended_at=NOW.replace(tzinfo=None))


def list_places(node: object) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every list inside."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):  # type: ignore[arg-type]  # a list else
        part = node[key]  # type: ignore[index]  # a dict or a list
        if isinstance(part, list):
            yield node, key
        if isinstance(part, dict | list):
            yield from list_places(part)


def test_the_first_wrong_item_ends_the_reading_of_a_list() -> None:
    """An error object per item of a record of 16 MB would take gigabytes."""
    refused = set()
    for path in GOLDEN_EVENTS.glob("*.json"):
        event = json.loads(path.read_bytes())
        for container, key in list_places(event["data"]):
            kept, container[key] = container[key], [{"@": 1}] * 1_000
            try:
                decode(json.dumps(event).encode())
            except InvalidPayloadError as error:
                refused.add((event["type"], key))
                problems = str(error).rpartition("(")[2]
                assert int(problems.split()[0]) < 10, (path.name, key, problems)
            container[key] = kept

    assert ("cua.step.samples_chosen", "samples") in refused
    assert len(refused) > 12
