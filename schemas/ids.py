"""Ids that need no coordination: entity ids from natural keys, event ids from time.

An entity's id is the UUIDv5 of its natural key, so a retry, a resumed process and a rebuild arrive
at the same id. The tables' unique keys are the same columns.
"""

import hashlib
import json
import os
import re
import secrets
import socket
from datetime import UTC, datetime
from uuid import UUID, uuid5

NAMESPACE = UUID("6f1d7f0a-6b0c-5d0e-9d57-3c1f0a2e4b61")
"""Never changed: every id of every installation is derived from it."""

EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


def natural_id(kind: str, *key: object) -> UUID:
    """UUIDv5 of an entity's kind and natural key.

    Parts are encoded as a JSON array, so that ("a/b", "c") and ("a", "b/c") differ.
    """
    return uuid5(
        NAMESPACE,
        json.dumps([kind, *(str(part) for part in key)], separators=(",", ":"), ensure_ascii=False),
    )


def content_hash(content: object) -> str:
    """Hex sha256 of a JSON value in canonical form (sorted keys, no spaces)."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def training_id(run_name: str) -> UUID:
    """The training with this --training-name."""
    return natural_id("training", run_name)


def step_id(training: UUID, generation: int, step: int) -> UUID:
    """Step number `step` (from 1) of one generation of a training."""
    return natural_id("step", training, generation, step)


def baseline_id(training: UUID, generation: int, temperature: float | None = None) -> UUID:
    """The evaluation at this temperature before the first step of a generation.

    None: one that does not record its temperature (written by an older release).
    """
    return natural_id("baseline", training, generation, *_temperature_key(temperature))


def eval_id(training: UUID, generation: int, step: int, temperature: float | None = None) -> UUID:
    """The scheduled evaluation at this temperature after step `step`; None as for a baseline."""
    return natural_id("eval", training, generation, step, *_temperature_key(temperature))


def point_id(training: UUID, generation: int, step: int, temperature: float | None = None) -> UUID:
    """The baseline for step 0, else the scheduled evaluation after the step."""
    if not step:
        return baseline_id(training, generation, temperature)
    return eval_id(training, generation, step, temperature)


def _temperature_key(temperature: float | None) -> tuple[float, ...]:
    return () if temperature is None else (float(temperature),)


def manual_eval_id(nonce: UUID) -> UUID:
    """An evaluation started by hand; its nonce is drawn once at its start."""
    return natural_id("eval-manual", nonce)


def group_id(source: UUID, group_num: int) -> UUID:
    """Group `group_num` (from 0) of a step, an eval or a baseline."""
    return natural_id("group", source, group_num)


def rollout_name(
    run_name: str,
    generation: int,
    source: str,
    group_num: int,
    env_index: int,
    attempt: int,
    epoch: int = 1,
) -> str:
    """The readable id of a rollout: `demo/g0/step-3/group-2/env-1/attempt-0`.

    `epoch`: of the claim under which it is run. A process that continues the training names it, so
    that a process that it replaced never writes a rollout of the same name.
    """
    name = f"{run_name}/g{generation}/{source}/group-{group_num}/env-{env_index}/attempt-{attempt}"
    return name if epoch == 1 else f"{name}/epoch-{epoch}"


def rollout_id(name: str) -> UUID:
    """The rollout with this name."""
    return natural_id("rollout", name)


def environment_id(rollout: UUID, number: int = 0) -> UUID:
    """Environment `number` (from 0) of a rollout."""
    return natural_id("environment", rollout, number)


def task_row_id(task_id: str, definition_hash: str) -> UUID:
    """A task's definition: the same `task_id` with another definition is another row."""
    return natural_id("task", task_id, definition_hash)


def entry_row_id(task_row: UUID, content_hash: str) -> UUID:
    """An entry of a data set, as one task uses it."""
    return natural_id("entry", task_row, content_hash)


def skill_success_id(training: UUID, evaluation: UUID, skill: str) -> UUID:
    """Success on one skill in one evaluation, as its training states it."""
    return natural_id("skill_success", training, evaluation, skill)


def completion_score_id(rollout: UUID, scorer: str) -> UUID:
    """What a scorer makes of a completion as a whole."""
    return natural_id("completion_score", rollout, scorer)


def step_score_id(rollout: UUID, scorer: str, index: int) -> UUID:
    """What a scorer makes of one step of a completion."""
    return natural_id("step_score", rollout, scorer, index)


def validator_row_id(content: object) -> UUID:
    """A validator, by its whole content."""
    return natural_id("validator", content_hash(content))


def uuid7(now: datetime) -> UUID:
    """A time-ordered UUID (RFC 9562 version 7): 48 bits of milliseconds, 74 random bits."""
    milliseconds = int((now - EPOCH_START).total_seconds() * 1000)
    value = (
        (milliseconds << 80)
        | (0x7 << 76)
        | (secrets.randbits(12) << 64)
        | (0b10 << 62)
        | secrets.randbits(62)
    )
    return UUID(int=value)


def uuid7_text(now: datetime) -> str:
    """`str(uuid7(now))` at a third of the cost; used by the emitter for every event."""
    milliseconds = int((now - EPOCH_START).total_seconds() * 1000)
    random = os.urandom(10)
    text = random.hex()
    stamp = f"{milliseconds:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7{text[:3]}-{'89ab'[random[9] & 3]}{text[3:6]}-{text[6:18]}"


def new_source(now: datetime) -> str:
    """A new name, of letters, digits and `/._-` only: it needs no escaping in JSON.

    Host and pid are for people; containers share them, so time and 32 random bits make it unique.
    """
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "host"
    return f"//{host}/{os.getpid()}/{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
