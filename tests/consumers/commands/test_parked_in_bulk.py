"""Parked records are tried again and given up in bulk, by training, kind, reason and type."""

import os

import pytest

from schemas.installation import read_installation
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.command import Call, call
from tests.support.logs import logged_events, write_local_log
from tests.support.postgres import execute

__all__ = ["call"]

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=2, turns=1, has_trouble=False)


def garbled(name: str) -> list[LoggedEvent]:
    """Each rollout's first two turns are of a type that no code knows."""
    return [
        LoggedEvent(
            logged_event.subject,
            logged_event.value.replace(b"rollout.turn_taken", b"rollout.turn_dreamt"),
        )
        for logged_event in logged_events(name, shape=SMALL)
    ]


@pytest.fixture
def parked(call: Call) -> Call:
    """Streams of two trainings are parked."""
    log = read_installation(os.environ).local_log_path
    write_local_log(log, [*garbled("a"), *garbled("b")])
    report = call("run", "--once", "--json").json
    assert report["parked"] == len(unapplied(call)) > 0
    assert call("run", "--once", "--json").json["parked"] == 0
    return call


def unapplied(call: Call, *flags: str) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = call(
        "parked", "list", "--state", "parked", "--all", "--json", *flags
    ).json
    return listed


def test_a_filter_means_the_same_records_in_a_list_a_dry_run_and_a_drop(parked: Call) -> None:
    everything, of_a = unapplied(parked), unapplied(parked, "--training", "a")
    culprits = [item for item in everything if item["kind"] == "unknown_schema"]
    assert 0 < len(of_a) < len(everything)
    assert unapplied(parked, "--kind", "unknown_schema") == culprits
    assert unapplied(parked, "--type", "rollout.turn_dream?") == unapplied(
        parked, "--type", "*.turn_dreamt"
    )
    nobody = parked("parked", "list", "--training", "nobody", "--json")
    assert (nobody.code, nobody.out) == (3, "")
    assert "there is no training 'nobody'" in nobody.err

    dry = ("parked", "drop", "--training", "a", "--dry-run", "--json")
    of_a_culprits = [item for item in of_a if item["kind"] != "behind"]
    expected = {
        "dry_run": True,
        "records": len(of_a_culprits),
        "streams": len({of_a_culprit["stream"] for of_a_culprit in of_a_culprits}),
    }
    assert parked(*dry).json == expected
    assert unapplied(parked) == everything

    dropped = parked("parked", "drop", "--training", "a", "--yes", "--json").json
    assert (dropped["decisions"], dropped["streams"]) == (len(of_a_culprits), expected["streams"])
    parked("run", "--once")
    while unapplied(parked, "--training", "a"):
        # A stream's next record is parked for the same reason.
        assert parked("parked", "drop", "--training", "a", "--yes", "--json").json["decisions"]
        parked("run", "--once")
    assert unapplied(parked, "--training", "a") == []
    nothing = parked("parked", "drop", "--training", "a", "--yes").out
    assert nothing == "no parked record matches; nothing was given up\n"
    assert unapplied(parked, "--training", "b") == [item for item in everything if item not in of_a]
    assert parked("verify", "--json").json["equal"]


def test_the_rest_of_every_stream_is_given_up_in_bulk(parked: Call) -> None:
    streams = {item["stream"] for item in unapplied(parked)}
    dropped = parked("parked", "drop", "--kind", "unknown_schema", "--rest", "-y", "--json").json
    assert (dropped["decisions"], dropped["streams"]) == (len(streams), len(streams))
    parked("run", "--once")
    refused = parked("parked", "list", "--state", "refused", "--json").json
    assert {item["stream"] for item in refused} == streams
    assert parked("verify", "--json").json["equal"]


def test_the_rests_of_one_trainings_streams_are_taken_back_in_bulk(parked: Call) -> None:
    before = unapplied(parked)
    of_a = unapplied(parked, "--training", "a")
    undo = ("parked", "drop", "--training", "a", "--undo")
    assert parked(*undo, "--yes").out == "no dropped stream matches; nothing was taken back\n"
    parked("parked", "drop", "--kind", "unknown_schema", "--rest", "-y")
    parked("run", "--once")
    assert unapplied(parked) == []
    streams = len({item["stream"] for item in of_a})
    counted = parked(*undo, "--dry-run", "--json").json
    assert counted == {"dry_run": True, "records": streams, "streams": streams}

    taken_back = parked(*undo, "--yes", "--json").json
    parked("run", "--once")

    assert (taken_back["decisions"], taken_back["streams"]) == (streams, streams)
    assert unapplied(parked) == of_a
    assert parked("verify", "--json").json["equal"]
    parked("parked", "drop", "--type", "rollout.turn_dreamt", "--undo", "--yes")
    parked("run", "--once")
    assert unapplied(parked) == before


def test_streams_are_tried_again_by_training(parked: Call) -> None:
    of_a = unapplied(parked, "--training", "a")
    dry = parked("parked", "retry", "--training", "a", "--dry-run", "--json").json
    assert dry["records"] == len(of_a)
    execute(
        os.environ["DATABASE_URL"],
        "UPDATE cua.unapplied_record SET type = 'cua.rollout.turn_taken', value ="
        " convert_to(replace(convert_from(value, 'UTF8'), 'turn_dreamt', 'turn_taken'), 'UTF8')",
    )
    tried = parked("parked", "retry", "--training", "a", "--json").json
    streams = len({item["stream"] for item in of_a})
    assert tried == {"streams": streams, "events": len(of_a), "still_parked": 0}
    assert unapplied(parked, "--training", "a") == []
    assert unapplied(parked, "--training", "b") != []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("drop",), "say which records"),
        (("drop", "cua.rollouts/0@1", "--kind", "invalid"), "not both"),
        (("drop", "--kind", "invalid", "--gap"), "--gap is for one STREAM"),
        (("drop", "--kind", "invalid"), "give --yes or --dry-run"),
        (("drop", "--training", "a", "--undo"), "give --yes or --dry-run"),
        (("drop", "--kind", "invalid", "--undo", "--yes"), "omit --kind"),
        (("drop", "cua.rollouts/0@1", "--dry-run"), "--dry-run counts what a filter matches"),
        (("drop", "cua.rollouts/0@1", "--rest", "--dry-run"), "leave --dry-run out"),
        (("drop", "rollout/x", "--gap", "--dry-run"), "leave --dry-run out"),
        (("drop", "rollout/x", "--undo", "--dry-run"), "leave --dry-run out"),
        (("retry", "rollout/x", "--kind", "invalid"), "not both"),
        (("retry", "--kind", "unredable"), "--kind 'unredable' does not exist; use one of unread"),
    ],
)
def test_what_is_not_clear_is_a_usage_error(
    call: Call, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = call("parked", *arguments)
    assert (code, out) == (2, "")
    assert said in err
