"""Checks what a run needs of its machine before anything is created: folders, stores, Kafka.

A refused command leaves no trace: no folder, no file, no event.
"""

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from producer.algorithms.advantages import ADVANTAGES
from producer.blobs import RemoteBlobs
from producer.config import DEMO_POLICY, RunConfig
from producer.config.tinker import is_tinker
from producer.config.training import IGNORED_FIELDS
from producer.errors import CuaTrainError, UsageError
from producer.log.kafka_contact import wait_for_kafka
from schemas.installation import Installation
from schemas.path_errors import OUT_OF_SPACE, unusable_folder

logger = logging.getLogger(__name__)
PROBE_BYTES = 1 << 16


def check_writable(folder: Path, name: str) -> None:
    """Check that a file can be written in the folder, or in its nearest existing parent.

    Leaves nothing behind. `name` is what the user set (`CUA_HOME`, `--log-path`). Raises UsageError
    if the folder is unusable, CuaTrainError if its disk is full.
    """
    try:
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
        with TemporaryFile(dir=nearest, prefix=".probe-", buffering=0) as file:
            file.write(b"\0" * PROBE_BYTES)
    except OSError as error:
        if error.errno in OUT_OF_SPACE:
            message = f"{name}: the disk of {folder} is full; free some space, or choose another"
            raise CuaTrainError(message) from None
        message = (
            f"{name}: {folder} cannot be used: {unusable_folder(folder, error)}; choose another"
        )
        raise UsageError(message) from None


LOG_TIMEOUT_S = 60.0


def check_folders(installation: Installation, config: RunConfig) -> None:
    """Check every folder that a run writes to, and that workers can be reached.

    Raises UsageError, or CuaTrainError if a disk is full.
    """
    if config.rollouts_by == "workers" and installation.kafka_bootstrap_servers is None:
        message = "rollouts_by: workers get their rollouts from Kafka; set KAFKA_BOOTSTRAP_SERVERS"
        raise UsageError(message)
    check_home(installation, config.model_name)
    if config.log_dir is not None:
        check_writable(config.log_dir, "--log-dir")
    if (run_folder := config.run_folder) is not None:
        for folder in (run_folder, run_folder / "state", run_folder / "checkpoints"):
            check_writable(folder, "--log-path")


def check_home(installation: Installation, model_name: str) -> None:
    """Check the folders needed to play episodes. Raises UsageError, CuaTrainError."""
    check_writable(installation.home, "CUA_HOME")
    folders = [installation.local_log_path.parent, installation.runs_dir, installation.open_dir]
    if model_name == DEMO_POLICY:
        folders.append(installation.policies_dir)
    if (blobs := installation.blobs_folder) is None:
        folders.append(installation.home / "blobs")
    else:
        check_writable(blobs, "CUA_BLOBS")
    for folder in folders:
        check_writable(folder, "CUA_HOME")


def unused_keys(config: RunConfig, environ: Mapping[str, str]) -> str | None:
    """One line about services' keys in `environ` that this run does not use; None if all are."""
    ways = {
        "GBOX_API_KEY": ("simulated phone", "--environment gbox", config.environment != "android"),
        "TINKER_API_KEY": ("policy in this process", "--provider tinker", is_tinker(config)),
    }
    unused = {name: way for name, way in ways.items() if environ.get(name) and not way[-1]}
    if not unused:
        return None
    uses = " and the ".join(what for what, _, _ in unused.values())
    flags = ", ".join(flag for _, flag, _ in unused.values())
    verb = "are" if len(unused) > 1 else "is"
    return f"{' and '.join(unused)} {verb} set and not used: this run has the {uses} ({flags})"


def log_unread_fields(config: RunConfig) -> None:
    """Warn of fields, given now or recorded at the beginning, that have no effect."""
    for name in sorted(IGNORED_FIELDS):
        if name not in config.explicit and not getattr(config, name):
            continue
        logger.warning(
            "%s is ignored: an update begins when all rollouts of its step are collected", name
        )


def log_idle_control(config: RunConfig) -> None:
    """Warn of a control under which rewards teach nothing."""
    compares = ADVANTAGES[config.advantage].compares_group or config.baseline == "group"
    if config.control == "ignored_rewards" and compares:
        logger.warning(
            "control ignored_rewards: all rewards are equal, so %s gives every rollout the"
            " advantage 0 and nothing is learnt from them; rejection trains on every rollout",
            config.advantage,
        )


def log_unused_keys(config: RunConfig, environ: Mapping[str, str]) -> None:
    """Log once which services' keys this run does not use."""
    if line := unused_keys(config, environ):
        logger.info("%s", line)


def is_unused(installation: Installation) -> bool:
    """Whether the home has no log yet, so that opening one would create it."""
    return not installation.local_log_path.exists()


def check_services(installation: Installation, stop: threading.Event | None = None) -> None:
    """Check that the blob store and the log are reachable if they are not local folders.

    Raises UnreachableError after waiting for Kafka, StopRequestedError once `stop` is set.
    """
    if installation.blobs_folder is None:
        RemoteBlobs(installation.blobs_url).check_writable()
    if installation.kafka_bootstrap_servers is not None:
        wait_for_kafka(installation, LOG_TIMEOUT_S, stop)
