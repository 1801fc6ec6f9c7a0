"""A log of many small trainings of which most streams have one mutated record."""

import json
from random import Random
from typing import NamedTuple
from uuid import UUID

from schemas.catalogue import TOPICS
from tests.reference_fold.histories import Shape, history
from tests.support.mutations import mutate
from tests.support.paths import GOLDEN_EVENTS

SMALL = Shape(steps=1, groups=1, group_size=1, turns=2)


class FuzzedRecord(NamedTuple):
    """A record as it is appended."""

    key: str | None
    value: bytes
    topic_name: str


class FuzzedLog(NamedTuple):
    """Records in the order of appending."""

    records: list[FuzzedRecord]
    untouched: dict[str, str]
    """Streams without a mutated record -> their last point (`2/17`)."""
    num_cases: int
    cases: dict[int, str]
    """Index of a mutated record -> how it was changed."""


def fuzzed_log(seed: int, num_cases: int) -> FuzzedLog:
    """Mutated records of generated trainings and of every golden event, mixed with whole ones."""
    random = Random(seed)
    queues: list[list[FuzzedRecord]] = []
    changed: dict[int, str] = {}
    """id() of a mutated record, kept alive by its queue."""
    untouched: dict[str, str] = {}
    number = 0
    while len(changed) < num_cases:
        streams: dict[str, list[bytes]] = {}
        for one in history(f"fuzz-{seed}-{number}", seed + number, SMALL):
            streams.setdefault(one.subject, []).append(one.value)
        for subject, values in streams.items():
            topic_name = TOPICS[subject.partition("/")[0]]
            queue = [FuzzedRecord(subject, value, topic_name) for value in values]
            if random.random() < 0.15:
                last = json.loads(values[-1])
                untouched[subject] = f"{last['epoch']}/{last['sequence']}"
            else:
                index = random.randrange(len(values))
                mutated = mutate(subject, values[index], random)
                queue[index] = FuzzedRecord(mutated.key, mutated.value, topic_name)
                changed[id(queue[index])] = mutated.what
            queues.append(queue)
        for path in GOLDEN_EVENTS.glob("*.json") if number % 4 == 0 else ():
            event = json.loads(path.read_bytes())
            kind = event["subject"].partition("/")[0]
            subject = f"{kind}/{UUID(int=random.getrandbits(128), version=4)}"
            mutated = mutate(subject, json.dumps(event | {"subject": subject}).encode(), random)
            record = FuzzedRecord(mutated.key, mutated.value, TOPICS[kind])
            changed[id(record)] = mutated.what
            queues.append([record])
        number += 1
    records: list[FuzzedRecord] = []
    for queue in queues:
        queue.reverse()
    while queues:
        index = random.randrange(min(len(queues), 8))
        records.append(queues[index].pop())
        if not queues[index]:
            queues.pop(index)
    cases = {at: changed[id(one)] for at, one in enumerate(records) if id(one) in changed}
    return FuzzedLog(records, untouched, len(changed), cases)
