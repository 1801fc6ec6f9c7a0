"""Makes a built-in policy, or finds the one that was made before.

Its folder's name hashes its recipe, so another recipe makes another policy.
"""

import logging
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from producer.agents.built_policy import OnProgress, OnStep, OnWait
from producer.policy.torch_policy.state import sync_files
from producer.warm_up.making_progress import MakingProgress
from producer.warm_up.making_turn import making_turn

logger = logging.getLogger(__name__)


def ensure_made(
    folder: Path,
    num_steps: int,
    make: Callable[[Path, OnStep], None],
    on_progress: OnProgress,
    on_wait: OnWait,
) -> Path:
    """`folder`, which `make` fills if it does not exist, in `num_steps` optimiser steps.

    The folder appears complete or not at all. Another process that needs it meanwhile waits, unless
    the one that makes it shows no progress (it is stopped): then it makes a copy of its own. An
    exception from `on_progress` aborts the making, one from `on_wait` the waiting.
    """
    if folder.is_dir():
        return folder
    policies_dir = folder.parent
    policies_dir.mkdir(parents=True, exist_ok=True)
    shared = MakingProgress(policies_dir / f".{folder.name}.progress")

    def wait(holder: str) -> None:
        if (seen := shared.read()) is not None:
            on_wait(holder, *seen)

    lock_file = policies_dir / f".{folder.name}.lock"
    with making_turn(lock_file, folder.is_dir, on_wait=wait) as turn:
        if folder.is_dir():
            return folder
        # A stopped process's folder is left to it: it may go on.
        if turn.is_alone:
            for abandoned in policies_dir.glob(f".making-{folder.name}-*"):
                logger.debug("removing %s, left by a process that was killed", abandoned)
                shutil.rmtree(abandoned, ignore_errors=True)
        kind = "making" if turn.is_alone else "copying"
        making = Path(tempfile.mkdtemp(dir=policies_dir, prefix=f".{kind}-{folder.name}-"))

        def on_step(done: int, loss: float | None) -> None:
            turn.beat()
            if turn.is_alone:
                shared.write(done, num_steps, loss)
            on_progress(folder.name, done, num_steps, loss)

        try:
            make(making, on_step)
            making.chmod(0o755)
            sync_files(making)
            _give_name(making, folder)
            sync_files(policies_dir)
        finally:
            shutil.rmtree(making, ignore_errors=True)
            if turn.is_alone:
                shared.clear()
    return folder


def _give_name(making: Path, folder: Path) -> None:
    try:
        making.rename(folder)
    except OSError:
        # Two made it, each thinking that the other had stopped: they made the same.
        if not folder.is_dir():
            raise
