"""`record.open`: opens a new or existing training in the log, and ends it.

Works as a `with` block, or is held open by another library's hooks.
"""

import atexit
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from producer.emit import Emitter
from producer.emit.emitter import now_utc
from producer.emit.heartbeat import HEARTBEAT_S
from producer.errors import CuaTrainError, LogBrokenError, StopRequestedError, TakenOverError
from producer.record.recording import Recording
from producer.record.settings import RecordedSettings, redacted
from producer.record.training import Training
from producer.record.values import MAX_SEED, OrderError, at_least, count, finite, text
from producer.resume import resume_state
from producer.resume.open_training import AlreadyComplete
from producer.resume.recorded_training import LOG_TIMEOUT_S, recorded_lineage
from producer.resume.resume_state import Manifest
from producer.resume.run_folder import find_run_folder
from producer.resume.training_history import read_own_stream
from producer.training.lifecycle import own_training
from producer.training_name import check_training_name, new_training_name
from schemas import ids
from schemas.installation import read_installation, without_secrets
from schemas.training import TrainingResumed

logger = logging.getLogger(__name__)


@contextmanager
def open_training(
    name: str | None = None,
    *,
    policy: str,
    num_steps: int,
    after_step: int | None = None,
    config: Mapping[str, object] | None = None,
    learning_rate: float = 0.0,
    group_size: int = 1,
    groups_per_step: int = 1,
    max_turns: int = 1,
    max_tokens: int = 0,
    temperature: float = 1.0,
    kl_coef: float = 0.0,
    updates_per_step: int = 1,
    seed: int = 0,
    environment: str = "recorded",
    home: str | Path | None = None,
    takeover: bool = False,
    clock: Callable[[], datetime] = now_utc,
) -> Iterator[Training]:
    """Record a training inside the block, or resume recording the one with this name.

    `name`: name of the training; None: a new one. `policy`: the policy's name, such as its hub id.
    `num_steps`: number of steps the loop will make. `after_step`: step after which a training
    resumes (that of the loop's checkpoint); None: after the newest finished one. Later steps,
    including an interrupted one, are kept and marked superseded. `config`: the loop's own settings;
    values whose names suggest a secret are redacted.

    The other settings have their own columns. `group_size`: rollouts per group, unless given to
    `Step.group`. `max_turns`: limit per rollout. `max_tokens`: limit per completion, 0 for none.
    `temperature`: sampling temperature. `kl_coef`: weight of the KL penalty. `updates_per_step`:
    optimiser updates. `environment`: what the agent works with, as shown in the monitor.

    `home`: the folder for log, tables and screenshots; None: CUA_HOME. With
    KAFKA_BOOTSTRAP_SERVERS the log is in Kafka, as for `cua-train run`. `takeover`: resume even if
    another process still seems to record the training.

    At the end of the block the training is complete, or cancelled if fewer steps were made; after
    an exception it has failed, after Ctrl-C it is cancelled. Raises OrderError for a training that
    is complete, and another CuaTrainError for one of another process or command, or if the log
    cannot be written.
    """
    settings = RecordedSettings(
        policy=_name_of(policy),
        num_steps=count("num_steps", num_steps, 1),
        config=redacted(_mapping(config)),
        learning_rate=at_least("learning_rate", learning_rate, 0),
        group_size=count("group_size", group_size, 1),
        groups_per_step=count("groups_per_step", groups_per_step, 1),
        max_turns=count("max_turns", max_turns, 1),
        max_tokens=count("max_tokens", max_tokens),
        temperature=at_least("temperature", temperature, 0),
        kl_coef=finite("kl_coef", kl_coef),
        updates_per_step=count("updates_per_step", updates_per_step, 1),
        seed=count("seed", seed, maximum=MAX_SEED),
        environment=text("environment", environment),
    )
    after = None if after_step is None else count("after_step", after_step)
    name = new_training_name(policy, clock()) if name is None else check_training_name(name)
    chosen = {} if home is None else {"CUA_HOME": str(home)}
    installation = read_installation({**os.environ, **chosen})
    folder = find_run_folder(installation, name)
    owning = own_training(
        installation,
        name,
        folder,
        settings,
        clock=clock,
        stop=threading.Event(),
        takeover=takeover,
        before_open=partial(_place_state, name=name, folder=folder, after_step=after),
        keeps_unfinished=False,
    )
    with _without_flags(), owning as (_, owned):
        if isinstance(owned, AlreadyComplete):
            message = (
                f"training {name!r} is complete after step {owned.manifest.step}; choose another"
                " name, or a larger num_steps to go on"
            )
            raise OrderError(message)
        recording = Recording(owned, owned.opened.plan.manifest.policy_version)
        logger.info("recording training %r; cua-project up shows it", name)
        interrupted: BaseException | None = None
        try:
            with owned.working(settings, HEARTBEAT_S):
                recorded = Training(recording)
                recorded.begin()
                try:
                    yield recorded
                    recorded.end()
                except (LogBrokenError, TakenOverError, StopRequestedError):
                    raise
                except BaseException as error:
                    recorded.abort(error)
                    if isinstance(error, Exception):
                        raise
                    interrupted = error
                    raise StopRequestedError from error
        except StopRequestedError:
            # Re-raise what cancelled the training (Ctrl-C, SystemExit) after its end.
            if interrupted is not None:
                raise interrupted from None
            raise


@contextmanager
def _without_flags() -> Iterator[None]:
    """Keep flags of our commands out of the advice in errors."""
    try:
        yield
    except CuaTrainError as error:
        error.for_command(())
        raise


def _mapping(config: object) -> Mapping[str, object]:
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        message = f"config must be a mapping of names to values, not a {type(config).__name__}"
        raise TypeError(message)
    return config


def _name_of(policy: object) -> str:
    found = text("policy", policy)
    if not found.strip():
        message = "policy is empty; give the policy's name, such as its hub id"
        raise ValueError(message)
    return without_secrets(found)


def _place_state(emitter: Emitter, name: str, folder: Path, after_step: int | None) -> None:
    """Make the newest state in `folder` that of `after_step` (None: the newest finished step).

    The other trainer keeps the weights and may resume from a checkpoint older than the newest step.
    States here hold no weights, so one can be made from the log alone.

    For a step that was not recorded, uses the newest one before it; a new training begins with its
    first step. The caller holds the folder's lock. Raises OrderError for a step before the newest
    generation.
    """
    states = resume_state.find_states(folder)
    if states and after_step in {None, states[0].manifest.step}:
        return
    log = emitter.log
    log_id = log.log_id(LOG_TIMEOUT_S)
    log.wait_shipped(LOG_TIMEOUT_S)
    training_id = ids.training_id(name)
    own = read_own_stream(log, training_id, {}).own
    payloads = [event.payload for event in own.events]
    steps = recorded_lineage(payloads).steps
    wanted = max(steps, default=0) if after_step is None else after_step
    step = max((number for number in steps if number <= wanted), default=0)
    if step != wanted:
        logger.warning(
            "training %r has no step %d in the log; it goes on after step %d", name, wanted, step
        )
    resumed = [payload for payload in payloads if isinstance(payload, TrainingResumed)]
    generation = resumed[-1].generation if resumed else 0
    began_at = next((one.current_step for one in resumed if one.generation == generation), 0)
    if generation and step < began_at:
        message = (
            f"training {name!r} cannot go on after step {step}: its newest generation began after"
            f" step {began_at}; record the loop under another name"
        )
        raise OrderError(message)
    for state in states:
        if state.manifest.generation == generation and state.manifest.step > step:
            shutil.rmtree(state.folder, ignore_errors=True)
    if step:
        finished = steps[step].finished
        envelope = next(event.envelope for event in own.events if event.payload is finished)
        state_folder = resume_state.begin_state(folder, generation, step)
        manifest = Manifest(
            training_name=name,
            generation=generation,
            step=step,
            policy_version=finished.policy_version,
            log_id=log_id,
            log_start={},
            since={},
            claim_epoch=envelope.epoch,
            claim_source=envelope.source,
        )
        resume_state.commit_state(state_folder, manifest)


class HeldOpen:
    """Holds one training open for hooks that open and close it.

    It is ended when its process ends, but not when a forked process ends.
    """

    def __init__(self, on_exit: Callable[[], None] | None = None) -> None:
        """`on_exit` is called if the process ends without an error; None cancels the training."""
        self._on_exit = on_exit
        self._block: AbstractContextManager[Training] | None = None
        self._pid = 0
        self.training: Training | None = None
        """None if no training is open."""

    def open(self, start: Callable[[], AbstractContextManager[Training]]) -> Training:
        """Open a training. Raises as `record.open`."""
        block = start()
        self.training = block.__enter__()
        self._block, self._pid = block, os.getpid()
        atexit.register(self._process_ends)
        return self.training

    def close(self, error: BaseException | None = None) -> None:
        """End the training, as failed if an error is given. Idempotent."""
        block, self._block, self.training = self._block, None, None
        if block is None:
            return
        atexit.unregister(self._process_ends)
        try:
            block.__exit__(None if error is None else type(error), error, None)
        except BaseException as raised:
            # Whoever raised the original error handles it.
            if raised is not error:
                raise

    def _process_ends(self) -> None:
        if self._block is None or os.getpid() != self._pid:
            return
        # The interpreter sets this after printing an unhandled error.
        unhandled = getattr(sys, "last_value", None)
        if isinstance(unhandled, BaseException):
            self.close(unhandled)
        elif self._on_exit is not None:
            self._on_exit()
        else:
            self.close(SystemExit("the process ended before the training did"))
