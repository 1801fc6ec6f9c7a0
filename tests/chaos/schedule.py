"""Which disturbance strikes when: drawn from a seed, pure.

A disturbance strikes when so many events are acknowledged, not after so many seconds: a busy
machine meets the same schedule.
"""

from collections.abc import Sequence
from enum import StrEnum
from random import Random
from typing import NamedTuple


class Kind(StrEnum):
    """What happens to the installation."""

    KILL_EMITTER = "kill -9 an emitter"
    KILL_SHIPPER = "kill -9 the shipper"
    KILL_PROJECTOR = "kill -9 the projector"
    KILL_POSTMASTER = "kill -9 PostgreSQL"
    KILL_BACKEND = "kill -9 a backend"
    KILL_KAFKA = "kill -9 Kafka"
    POWER_LOSS = "kill -9 everything, torn WAL"
    STOP_EMITTER = "stop an emitter"
    STOP_SHIPPER = "stop the shipper"
    STOP_PROJECTOR = "stop the projector"
    STOP_BACKEND = "stop a backend"
    STOP_KAFKA = "stop Kafka"
    TAKE_OVER = "take a training over"
    OUTAGE = "the log is away"
    FULL_DISK = "the disk is full"
    TORN_RECORDS = "a stranger's torn records"


KILLS = (
    Kind.KILL_EMITTER,
    Kind.KILL_PROJECTOR,
    Kind.KILL_POSTMASTER,
    Kind.KILL_BACKEND,
    Kind.POWER_LOSS,
    Kind.KILL_SHIPPER,
    Kind.KILL_KAFKA,
)
STOPS = (
    Kind.STOP_EMITTER,
    Kind.STOP_PROJECTOR,
    Kind.STOP_BACKEND,
    Kind.STOP_SHIPPER,
    Kind.STOP_KAFKA,
)
KAFKA_ONLY = {Kind.KILL_SHIPPER, Kind.KILL_KAFKA, Kind.STOP_SHIPPER, Kind.STOP_KAFKA, Kind.OUTAGE}
WEIGHTS = {Kind.KILL_EMITTER: 4, Kind.KILL_SHIPPER: 3, Kind.KILL_PROJECTOR: 3}
"""Of the kinds that are quickly over; the others weigh 1."""
SECONDS: dict[Kind, tuple[float, float]] = {
    Kind.STOP_EMITTER: (0.5, 3.0),
    Kind.STOP_SHIPPER: (0.5, 3.0),
    Kind.STOP_PROJECTOR: (0.5, 3.0),
    Kind.STOP_BACKEND: (0.5, 3.0),
    Kind.STOP_KAFKA: (0.5, 3.0),
    Kind.TAKE_OVER: (0.2, 2.0),
    Kind.OUTAGE: (2.0, 6.0),
    Kind.FULL_DISK: (1.0, 2.0),
}
"""How long each lasts, from and to; what is not named is over at once."""
LEASE_EXPIRED_S = 12.0
"""The first stop of a projector outlasts its lease (10 s): another one must take over."""
FIRST, LAST = 0.02, 0.95
"""Shares of the events between which disturbances strike."""


class Disturbance(NamedTuple):
    """One of the schedule."""

    at_event: int
    """Strikes once so many events are acknowledged."""
    kind: Kind
    victim: int
    """Modulo the number of those that it can hit."""
    seconds: float


def draw(seed: int, *, kills: int, events: int, has_kafka: bool) -> list[Disturbance]:
    """The schedule of a run, in order.

    Beside the kills half as many stops and take-overs, and for every twenty kills an outage of the
    log (with Kafka), a full disk and two times torn records; each at least once.
    """
    random = Random(f"{seed}/{has_kafka}")
    rare = max(1, kills // 20)
    kinds = [
        *_choose(random, KILLS, kills, has_kafka=has_kafka),
        *_choose(random, STOPS, max(1, kills // 2), has_kafka=has_kafka),
        *[Kind.TAKE_OVER] * max(1, kills // 2),
        *[Kind.OUTAGE] * (rare if has_kafka else 0),
        *[Kind.FULL_DISK] * rare,
        *[Kind.TORN_RECORDS] * (2 * rare),
    ]
    random.shuffle(kinds)
    times = sorted(
        random.randrange(int(events * FIRST), max(int(events * LAST), 1) + 1) for _ in kinds
    )
    drawn = [
        Disturbance(at, kind, random.randrange(1 << 30), _seconds(random, kind))
        for at, kind in zip(times, kinds, strict=True)
    ]
    return _with_an_expired_lease(drawn)


def _choose(random: Random, kinds: Sequence[Kind], number: int, *, has_kafka: bool) -> list[Kind]:
    """Every kind once as far as they go, then by weight."""
    possible = [kind for kind in kinds if has_kafka or kind not in KAFKA_ONLY]
    chosen = possible[:number]
    weights = [WEIGHTS.get(kind, 1) for kind in possible]
    return chosen + random.choices(possible, weights, k=number - len(chosen))


def _seconds(random: Random, kind: Kind) -> float:
    low, high = SECONDS.get(kind, (0.0, 0.0))
    return round(random.uniform(low, high), 1)


def _with_an_expired_lease(drawn: list[Disturbance]) -> list[Disturbance]:
    for index, one in enumerate(drawn):
        if one.kind is Kind.STOP_PROJECTOR:
            drawn[index] = one._replace(seconds=LEASE_EXPIRED_S)
            break
    return drawn
