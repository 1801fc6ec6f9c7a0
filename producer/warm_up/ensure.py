"""Makes a built-in policy, or finds the one that was made before.

Its folder's name contains a hash of its recipe, so another recipe makes another policy.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from producer.agents.built_policy import BuiltPolicy, OnProgress, OnStep, OnWait
from producer.errors import CuaTrainError
from producer.policy.torch_policy.state import sync_files
from schemas.lock_holders import file_lock_holder, is_held_by_stopped

POLL_S: Final = 0.5


def ensure_built(
    built: BuiltPolicy,
    policies_dir: Path,
    on_progress: OnProgress = lambda *_: None,
    on_wait: OnWait = lambda _holder: None,
) -> Path:
    """The folder of the policy in `policies_dir`, made if it does not exist. See `ensure_made`."""
    num_steps = len(built.plan().steps)
    return ensure_made(policies_dir / built.name, num_steps, built.make, on_progress, on_wait)


def ensure_made(
    folder: Path,
    num_steps: int,
    make: Callable[[Path, OnStep], None],
    on_progress: OnProgress = lambda *_: None,
    on_wait: OnWait = lambda _holder: None,
) -> Path:
    """Return `folder`, which `make` fills in `num_steps` optimiser steps if it does not exist.

    The folder appears complete or not at all. One process makes it while others that need it wait.
    An exception from `on_progress` aborts the making, one from `on_wait` the waiting. Raises
    CuaTrainError if the process that makes it is stopped.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)

    def on_step(done: int, loss: float | None) -> None:
        on_progress(folder.name, done, num_steps, loss)

    with _lock(folder.parent / f".{folder.name}.lock", on_wait):
        if folder.is_dir():
            return folder
        making = folder.parent / f".making-{folder.name}"
        shutil.rmtree(making, ignore_errors=True)  # left by a process that was killed
        making.mkdir()
        try:
            make(making, on_step)
            sync_files(making)
            making.rename(folder)
            sync_files(folder.parent)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return folder


@contextmanager
def _lock(lock_file: Path, on_wait: OnWait) -> Iterator[None]:
    """Hold the lock; while another process does, call `on_wait` with its name twice a second."""
    lock = FileLock(lock_file)
    while True:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            holder = file_lock_holder(lock_file)
        else:
            break
        if is_held_by_stopped(lock_file):
            message = f"the default policy is being made by {holder}"
            raise CuaTrainError(message)
        on_wait(holder)
        time.sleep(POLL_S)
    try:
        yield
    finally:
        lock.release()
