"""What emitting costs the caller: CPU per event back to back, time per event at a steady pace.

Run: `python -m tests.bench.emit`.

The caller's CPU is its thread's own (`time.thread_time`); the process's includes the background
commits.
"""

import json
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from producer.emit import Emitter, StreamWriter
from producer.log.stream_history import StreamHistory
from schemas.arrays import encode_float32, encode_int32
from schemas.base import Payload
from schemas.ids import EPOCH_START
from schemas.installation import Installation
from schemas.training import HeartbeatSent
from schemas.turn import Sampling, TokenRecord, TurnTaken
from tests.support.reading import installation_on

PACE_S = 0.001
"""Between two events at the steady pace: 1,000/s."""
BLOB = "blob:sha256:" + "ab" * 32


class Cost(NamedTuple):
    """Of one kind of event, in microseconds."""

    num_bytes: int
    """Of the event."""
    caller_cpu_us: float
    process_cpu_us: float
    """Including background commits, each with a disk sync."""
    paced_p50_us: float
    paced_p99_us: float
    """Wall time of one emit at 1,000/s."""


def turn() -> TurnTaken:
    """A turn with 2,000 prompt tokens and 200 completion tokens with their log-probs."""
    tokens = TokenRecord(
        prompt_tokens=encode_int32(range(2000)),
        prompt_images=(BLOB,),
        completion_tokens=encode_int32(range(200)),
        completion_logprobs=encode_float32([-0.5] * 200),
        sampling=Sampling(temperature=1.0, max_tokens=200),
        stop_reason="stop",
    )
    return TurnTaken(
        turn=1,
        started_at=EPOCH_START,
        ended_at=EPOCH_START,
        policy_version=0,
        screenshot_before=BLOB,
        screenshot_after=BLOB,
        text=None,
        model_response="click(31,52)",
        tokens=tokens,
        actions=(),
        reward=0.0,
        episode_done=False,
        progress_percent=10.0,
    )


def measure(
    kind: str, payload: Payload, num_in_row: int, num_paced: int, *, kafka: str | None = None
) -> Cost:
    """Emit this payload again and again on a stream of this kind, into a log of its own.

    `kafka`: bootstrap servers, up or down.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        installation = installation_on(kafka, home, "bench.")
        emitter = Emitter.open(installation)
        owner = uuid4()
        subject = f"{kind}/{owner}"
        running = StreamHistory(subject, statuses={(kind, owner): "running"})
        stream = emitter.stream(subject, running, training_id=uuid4())
        caller_us, process_us = _in_row(emitter, stream, payload, num_in_row)
        times_us = sorted(_paced(emitter, stream, payload, num_paced))
        emitter.close(timeout_s=0.0 if kafka else 30.0)
        num_bytes = _event_bytes(installation)
    return Cost(
        num_bytes,
        caller_us,
        process_us,
        times_us[len(times_us) // 2],
        times_us[len(times_us) * 99 // 100],
    )


def _in_row(
    emitter: Emitter, stream: StreamWriter, payload: Payload, count: int
) -> tuple[float, float]:
    for _ in range(200):
        stream.emit(payload)
    emitter.flush(60)
    caller, process = time.thread_time(), time.process_time()
    for _ in range(count):
        stream.emit(payload)
    caller = time.thread_time() - caller
    emitter.flush(60)
    return caller / count * 1e6, (time.process_time() - process) / count * 1e6


def _paced(emitter: Emitter, stream: StreamWriter, payload: Payload, count: int) -> list[float]:
    times_us: list[float] = []
    due = time.perf_counter()
    for _ in range(count):
        due += PACE_S
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        stream.emit(payload)
        times_us.append((time.perf_counter() - began) * 1e6)
    emitter.flush(60)
    return times_us


def _event_bytes(installation: Installation) -> int:
    connection = sqlite3.connect(installation.local_log_path)
    try:
        return int(connection.execute("SELECT max(length(value)) FROM records").fetchone()[0])
    finally:
        connection.close()


def run() -> dict[str, Cost]:
    """Every figure."""
    return {
        "event of 400 bytes": measure("training", HeartbeatSent(), 20_000, 3_000),
        "turn, 2,000 + 200 tokens": measure("rollout", turn(), 2_000, 3_000),
        "event of 400 bytes, Kafka down": measure(
            "training", HeartbeatSent(), 20_000, 3_000, kafka="127.0.0.1:1"
        ),
    }


def main() -> None:
    """One line per kind of event on stdout; --json: one object."""
    costs = run()
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({name: cost._asdict() for name, cost in costs.items()}) + "\n")
        return
    head = (
        f"{'emit':<32}{'bytes':>8}{'caller CPU-us':>15}{'process CPU-us':>16}"
        f"{'paced p50 us':>14}{'paced p99 us':>14}"
    )
    lines = [
        f"{name:<32}{cost.num_bytes:>8}{cost.caller_cpu_us:>15.1f}{cost.process_cpu_us:>16.1f}"
        f"{cost.paced_p50_us:>14.1f}{cost.paced_p99_us:>14.1f}"
        for name, cost in costs.items()
    ]
    sys.stdout.write("\n".join([head, *lines]) + "\n")


if __name__ == "__main__":
    main()
