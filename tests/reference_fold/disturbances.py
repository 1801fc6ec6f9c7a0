"""What nobody wanted in a log.

Retries, records out of order, forged and wrong claims, garbage, news from later code.
"""

import json
from collections.abc import Callable
from random import Random

from tests.reference_fold.telling import Said

Disturbance = Callable[[list[Said], Random], None]


def _edited(said: Said, **attributes: object) -> Said:
    event = json.loads(said.value) | attributes
    return Said(said.subject, json.dumps(event).encode())


def repeat(said: list[Said], random: Random) -> None:
    """A record is written again, some time later."""
    index = random.randrange(len(said))
    said.insert(random.randrange(index, len(said)) + 1, said[index])


def delay(said: list[Said], random: Random) -> None:
    """A record arrives after others of its stream."""
    index = random.randrange(len(said))
    one = said.pop(index)
    said.insert(min(len(said), index + random.randrange(1, 40)), one)


def lose(said: list[Said], random: Random) -> None:
    """A record never arrives: its stream waits for ever."""
    said.pop(random.randrange(len(said)))


def forge(said: list[Said], random: Random) -> None:
    """Another process writes under the same epoch."""
    index = random.randrange(len(said))
    said.insert(index + 1, _edited(said[index], source="//other/1"))


def claim_wrongly(said: list[Said], random: Random) -> None:
    """A process claims the next epoch from a point that is not the stream's last, and writes on."""
    index = random.randrange(len(said))
    event = json.loads(said[index].value)
    claim = {"source": "//claimant/1", "epoch": event["epoch"] + 1}
    said.insert(
        index + 1,
        _edited(
            said[index],
            **claim,
            sequence=1,
            continues=f"{event['epoch']}/{max(0, event['sequence'] - 1)}",
        ),
    )
    said.insert(index + 2, _edited(said[index], **claim, sequence=2))


def garble(said: list[Said], random: Random) -> None:
    """A value cannot be read; the key still names its stream."""
    index = random.randrange(len(said))
    said[index] = Said(said[index].subject, said[index].value[: random.randrange(40)])


def come_from_later_code(said: list[Said], random: Random) -> None:
    """A type that this code does not know."""
    index = random.randrange(len(said))
    said[index] = _edited(
        said[index], type="cua.rollout.dreamt", dataschema="urn:cua:cua.rollout.dreamt:1"
    )


def come_from_older_code(said: list[Said], random: Random) -> None:
    """A turn in version 1: every image of the prompt so far, and no size of the screenshot."""
    turns = [index for index, one in enumerate(said) if b'"cua.rollout.turn_taken"' in one.value]
    if not turns:
        return
    index = random.choice(turns)
    event = json.loads(said[index].value)
    data = event["data"]
    if not event["dataschema"].endswith(":2"):
        return
    del data["screenshot_width_px"], data["screenshot_height_px"]
    if data["tokens"]:
        earlier = [f"blob:sha256:{turn:064x}" for turn in range(1, data["turn"])]
        data["tokens"]["prompt_images"] = earlier + data["tokens"]["prompt_images"]
    said[index] = _edited(said[index], dataschema=event["dataschema"][:-1] + "1", data=data)


def come_in_another_version(said: list[Said], random: Random) -> None:
    """A known type in a version that this code does not know."""
    index = random.randrange(len(said))
    said[index] = _edited(
        said[index], dataschema=json.loads(said[index].value)["dataschema"][:-1] + "9"
    )


def contradict(said: list[Said], random: Random) -> None:
    """A fact in the place of another: mostly a transition that the entity's machine refuses."""
    index, other = random.randrange(len(said)), random.randrange(len(said))
    event = json.loads(said[other].value)
    said[index] = _edited(
        said[index], type=event["type"], dataschema=event["dataschema"], data=event["data"]
    )


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
)
