"""The cost of `emit` on the caller's thread.

Back to back in CPU time, and paced in wall time as a trainer would call it.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import uuid4

from producer.emit import Emitter
from producer.log.stream_history import StreamHistory
from schemas.arrays import encode_float32, encode_int32
from schemas.base import Payload, Progress
from schemas.installation import read_installation
from schemas.streams import StreamPosition
from schemas.training import TrainingProgressed
from schemas.turn import Sampling, TokenRecord, TurnTaken
from tests.bench.meter import percentile
from tests.reference_fold.histories import history
from tests.reference_fold.writers import Shape

PROMPT_TOKENS, COMPLETION_TOKENS = 2_000, 200


class EmitCost(NamedTuple):
    """Of one kind of event."""

    what: str
    bytes_each: int
    cpu_us: float
    """On the caller's thread, back to back."""
    p50_us: float
    p99_us: float
    """Wall time, paced."""
    per_second: int
    """The pace."""


def _progress_events() -> Iterator[Payload]:
    for number in count():
        progress = Progress(
            percent=number % 100,
            avg_turn_time_s=0.25,
            estimated_total_time_s=1234.5,
            estimated_remaining_time_s=617.25 + number,
        )
        yield TrainingProgressed(
            current_phase="rollout",
            current_step=number,
            progress=progress,
            status_message="step in rollouts",
        )


def _turns() -> Iterator[Payload]:
    random = Random(0)
    prompt = encode_int32(random.randrange(150_000) for _ in range(PROMPT_TOKENS))
    completion = encode_int32(random.randrange(150_000) for _ in range(COMPLETION_TOKENS))
    logprobs = encode_float32(-random.random() for _ in range(COMPLETION_TOKENS))
    at, screenshot = datetime.now(UTC), "blob:sha256:" + "5" * 64
    for number in count(1):
        tokens = TokenRecord(
            prompt_tokens=prompt,
            prompt_images=(screenshot,),
            completion_tokens=completion,
            completion_logprobs=logprobs,
            sampling=Sampling(temperature=1.0, max_tokens=COMPLETION_TOKENS),
            stop_reason="stop",
        )
        yield TurnTaken(
            turn=number,
            started_at=at,
            ended_at=at,
            policy_version=3,
            screenshot_before=screenshot,
            screenshot_after=screenshot,
            text=None,
            model_response="x" * 600,
            tokens=tokens,
            actions=(),
            reward=0.0,
            episode_done=False,
            progress_percent=50.0,
        )


def _measure(
    emitter: Emitter,
    what: str,
    kind: str,
    payloads: Iterator[Payload],
    number: int,
    per_second: int,
) -> EmitCost:
    owner = uuid4()
    subject = f"{kind}/{owner}"
    # A resumed stream, so that the event measured is legal at once.
    position = StreamPosition(epoch=1, sequence=1, source="//bench")
    running = StreamHistory(subject, position, {(kind, owner): "running"})
    stream = emitter.stream(subject, running)
    ready = [next(payloads) for _ in range(number)]
    began = time.thread_time()
    for payload in ready:
        stream.emit(payload)
    cpu_us = (time.thread_time() - began) / number * 1e6
    emitter.flush(60)
    waits: list[float] = []
    due = time.perf_counter()
    for payload in (next(payloads) for _ in range(min(number, per_second * 3))):
        due += 1 / per_second
        time.sleep(max(0.0, due - time.perf_counter()))
        called = time.perf_counter()
        stream.emit(payload)
        waits.append((time.perf_counter() - called) * 1e6)
    emitter.flush(60)
    size = len(ready[0].model_dump_json()) + 330  # the envelope
    return EmitCost(what, size, cpu_us, percentile(waits, 0.5), percentile(waits, 0.99), per_second)


def measure_emit(home: Path) -> list[EmitCost]:
    """Into a local log on disk (fsync at every group commit)."""
    with Emitter.open(read_installation({"CUA_HOME": str(home)})) as emitter:
        _measure(emitter, "warm-up", "training", _progress_events(), 2_000, 2_000)
        return [
            _measure(emitter, "a progress event", "training", _progress_events(), 20_000, 1_000),
            _measure(
                emitter,
                f"a turn with {PROMPT_TOKENS:,} + {COMPLETION_TOKENS} tokens",
                "rollout",
                _turns(),
                1_000,
                200,
            ),
        ]


def recorded(events: int) -> list[tuple[str, bytes]]:
    """(stream, value) of trainings as the default run writes them, until there are `events`.

    Always the same for a number.
    """
    shape = Shape(
        steps=4,
        groups=16,
        group_size=8,
        turns=5,
        response_chars=40,
        prompt_tokens=60,
        completion_tokens=6,
        has_trouble=False,
    )
    said: list[tuple[str, bytes]] = []
    for seed in count():
        said += [(event.subject, event.value) for event in history(f"bench-{seed}", seed, shape)]
        if len(said) >= events:
            return said
    raise AssertionError  # count() does not end
