"""A stream that waits for a record which the log does not have is said by whoever could know."""

import os

import pytest

from consumers.status.gaps import WaitingStreams
from schemas.installation import read_installation
from tests.reference_fold.histories import Shape
from tests.support.command import Call, call
from tests.support.logs import logged_events, write_local_log

__all__ = ["call"]

SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)


@pytest.mark.services
def test_run_verify_and_status_name_a_stream_that_waits(call: Call) -> None:
    events = logged_events("a", shape=SMALL)
    stream = next(event.subject for event in events if event.subject.startswith("rollout/"))
    second = [index for index, event in enumerate(events) if event.subject == stream][1]
    path = read_installation(os.environ).local_log_path
    write_local_log(path, events[:second] + events[second + 1 :])
    waits = f"{stream} waits for records that the log does not have"

    assert waits in call("run", "--once").err
    assert call("run", "--once", "--json").json["waiting"] == 1

    verified = call("verify")
    assert (verified.code, waits in verified.out) == (0, True)
    assert call("verify", "--json").json["waiting"] == 1

    rebuilt = call("rebuild")
    assert (rebuilt.code, waits in rebuilt.out) == (0, True)

    checked = call("status", "--check", "--max-lag", "0s")
    assert checked.code == 6
    assert f"waiting: {waits}, the oldest appended " in checked.out + checked.err
    assert "waiting: " not in "".join(call("status", "--check", "--max-lag", "1h")[1:])


@pytest.mark.services
def test_nothing_is_said_without_a_gap(call: Call) -> None:
    write_local_log(read_installation(os.environ).local_log_path, logged_events("a", shape=SMALL))
    assert call("run", "--once", "--json").json["waiting"] == 0
    assert call("verify", "--json").json["waiting"] == 0
    assert "wait" not in call("verify").out


def test_five_are_named_and_the_rest_counted() -> None:
    named = [f"rollout/{number}" for number in range(5)]
    text = WaitingStreams(1007, named, ["cua.rollouts"], None).describe()
    assert text == (
        "rollout/0, rollout/1, rollout/2, rollout/3, rollout/4 and 1,002 more wait for records that"
        " the log does not have"
    )
