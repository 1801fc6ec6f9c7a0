"""Faults of a log: retries, reordering, forged and wrong claims, garbage, events of later code."""

import json
from collections.abc import Callable
from random import Random

from tests.reference_fold.writers import LoggedEvent

Disturbance = Callable[[list[LoggedEvent], Random], None]


def _edited(logged: LoggedEvent, **attributes: object) -> LoggedEvent:
    event = json.loads(logged.value) | attributes
    return LoggedEvent(logged.subject, json.dumps(event).encode())


def _readable(events: list[LoggedEvent]) -> list[int]:
    """Where an event is that can be edited: `garble` cuts values short."""
    return [index for index, one in enumerate(events) if one.value.endswith(b"}")]


def repeat(events: list[LoggedEvent], random: Random) -> None:
    """A record is written again, some time later."""
    index = random.randrange(len(events))
    events.insert(random.randrange(index, len(events)) + 1, events[index])


def delay(events: list[LoggedEvent], random: Random) -> None:
    """A record arrives after others of its stream."""
    index = random.randrange(len(events))
    one = events.pop(index)
    events.insert(min(len(events), index + random.randrange(1, 40)), one)


def lose(events: list[LoggedEvent], random: Random) -> None:
    """A record never arrives: its stream waits for ever."""
    events.pop(random.randrange(len(events)))


def forge(events: list[LoggedEvent], random: Random) -> None:
    """Another process writes under the same epoch."""
    index = random.choice(_readable(events))
    events.insert(index + 1, _edited(events[index], source="//other/1"))


def claim_wrongly(events: list[LoggedEvent], random: Random) -> None:
    """A process claims the next epoch from a point that is not the stream's last, and writes on."""
    index = random.choice(_readable(events))
    event = json.loads(events[index].value)
    claim = {"source": "//claimant/1", "epoch": event["epoch"] + 1}
    events.insert(
        index + 1,
        _edited(
            events[index],
            **claim,
            sequence=1,
            continues=f"{event['epoch']}/{max(0, event['sequence'] - 1)}",
        ),
    )
    events.insert(index + 2, _edited(events[index], **claim, sequence=2))


def garble(events: list[LoggedEvent], random: Random) -> None:
    """A value cannot be read; the key still names its stream."""
    index = random.randrange(len(events))
    events[index] = LoggedEvent(events[index].subject, events[index].value[: random.randrange(40)])


def come_from_later_code(events: list[LoggedEvent], random: Random) -> None:
    """A type that this code does not know."""
    index = random.choice(_readable(events))
    events[index] = _edited(
        events[index], type="cua.rollout.dreamt", dataschema="urn:cua:cua.rollout.dreamt:1"
    )


def come_from_older_code(events: list[LoggedEvent], random: Random) -> None:
    """A turn in version 1: every image of the prompt so far, and no size of its screenshot."""
    turns = [
        index
        for index, one in enumerate(events)
        if b'"cua.rollout.turn_taken"' in one.value and b'"screenshot_before":null' not in one.value
    ]
    if not turns:
        return
    index = random.choice(turns)
    event = json.loads(events[index].value)
    data = event["data"]
    if not event["dataschema"].endswith(":2"):
        return
    del data["screenshot_width_px"], data["screenshot_height_px"]
    if data["tokens"]:
        earlier = [f"blob:sha256:{turn:064x}" for turn in range(1, data["turn"])]
        data["tokens"]["prompt_images"] = earlier + data["tokens"]["prompt_images"]
    events[index] = _edited(events[index], dataschema=event["dataschema"][:-1] + "1", data=data)


def come_in_another_version(events: list[LoggedEvent], random: Random) -> None:
    """A known type in a version that this code does not know."""
    index = random.choice(_readable(events))
    events[index] = _edited(
        events[index], dataschema=json.loads(events[index].value)["dataschema"][:-1] + "9"
    )


def contradict(events: list[LoggedEvent], random: Random) -> None:
    """A fact in the place of another: mostly a transition that the entity's machine refuses."""
    readable = _readable(events)
    index, other = random.choice(readable), random.choice(readable)
    event = json.loads(events[other].value)
    events[index] = _edited(
        events[index], type=event["type"], dataschema=event["dataschema"], data=event["data"]
    )


def speak_for_others(events: list[LoggedEvent], random: Random) -> None:
    """A writer says in its own stream what is another stream's to say, sooner or later than it."""
    readable = _readable(events)
    subjects = sorted({events[at].subject for at in readable})
    said = [
        item
        for item in (events[at] for at in readable)
        if item.subject.partition("/")[0] in {"training", "evaluation"}
        and json.loads(item.value)["type"] in FACTS_ABOUT_ENTITIES
    ]
    if not said:
        return
    fact = json.loads(random.choice(said).value)
    kinds = {fact["subject"].partition("/")[0], "training", "evaluation"}
    others = [
        name for name in subjects if name.partition("/")[0] in kinds and name != fact["subject"]
    ]
    if not others:
        return
    stranger = random.choice(others)
    index = random.choice([at for at in readable if events[at].subject == stranger])
    said_there = {name: fact[name] for name in ("type", "dataschema", "data")}
    events[index] = _edited(events[index], **said_there)


FACTS_ABOUT_ENTITIES = {
    f"cua.step.{name}"
    for name in (
        *("created", "collection_started", "rollouts_started", "training_started", "progressed"),
        *("finished", "failed", "samples_chosen"),
    )
} | {
    f"cua.group.{name}"
    for name in ("created", "started", "progressed", "finished", "dropped", "failed")
}
FACTS_ABOUT_ENTITIES |= {
    "cua.training.step_superseded",
    "cua.evaluation.superseded",
    "cua.checkpoint.saved",
}
"""Types of events that name a step or a group, which only its own stream may."""


def restate(events: list[LoggedEvent], random: Random) -> None:
    """Another content under the id of a task or a validator."""
    stated = [index for index in _readable(events) if b".stated" in events[index].value]
    if not stated:
        return
    index = random.choice(stated)
    event = json.loads(events[index].value)
    if "validation_method" in event["data"]:
        event["data"][random.choice(["validation_query", "validation_method"])] = "other"
    elif event["data"].get("definition"):
        names = ["description", "expected_result", "category", "prerequisites", "validation_type"]
        name = random.choice(names)
        event["data"][name] = ["other"] if name == "prerequisites" else "other"
        if random.random() < 0.5:
            event["data"]["definition"][name] = event["data"][name]
    else:
        return
    events[index] = _edited(events[index], data=event["data"])


def state_again(events: list[LoggedEvent], random: Random) -> None:
    """A stream's last word is a fact that it has stated before, under the next number."""
    one = events[random.choice(_readable(events))]
    last = max(
        (event["epoch"], event["sequence"], event["source"])
        for event in (
            json.loads(events[at].value)
            for at in _readable(events)
            if events[at].subject == one.subject
        )
    )
    epoch, sequence, source = last
    fact = json.loads(one.value)
    fact.pop("continues", None)
    said = fact | {"epoch": epoch, "sequence": sequence + 1, "source": source}
    events.append(LoggedEvent(one.subject, json.dumps(said).encode()))


def claim_another_training(events: list[LoggedEvent], random: Random) -> None:
    """An event says that it belongs to another training."""
    index = random.choice(_readable(events))
    if events[index].subject.startswith("training/"):
        other = "00000000-0000-0000-0000-000000000001"
        events[index] = _edited(events[index], trainingid=other)


DISTURBANCES: tuple[Disturbance, ...] = (
    repeat,
    delay,
    lose,
    forge,
    claim_wrongly,
    garble,
    come_from_later_code,
    come_from_older_code,
    come_in_another_version,
    contradict,
    speak_for_others,
    restate,
    claim_another_training,
    state_again,
)
