"""The configuration passed to a command, possibly for a training that exists in the log.

When a training is resumed, a setting may be valid only together with recorded ones; for example,
`--steps-per-skill` alone is an error. A configuration that is invalid on its own is therefore
validated again on top of the recorded one, which only the log has on every machine.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import JsonValue

from producer.config import RunConfig, read_config, read_continued, read_fields
from producer.errors import UnreachableError, UsageError
from producer.log.event_log import EventLog
from producer.resume.run_folder import training_in
from producer.resume.training_history import read_own_stream
from producer.training.preflight import is_unused
from schemas import ids
from schemas.installation import Installation
from schemas.training import TrainingCreated


def read_asked(given: dict[str, Any], installation: Installation) -> RunConfig:
    """The configuration of `given`, by itself or on top of its training's recorded one.

    Raises UsageError for invalid fields, invalid combinations, or fields that a resumed training
    does not allow; also for an invalid combination while Kafka, which may know the training, does
    not answer.
    """
    try:
        return read_config(given)
    except UsageError:
        fields = read_fields(given)
        name = fields.get("training_name")
        if name is None and fields.get("log_path") is not None:
            name = training_in(Path(str(fields["log_path"])))
        recorded = None if name is None else recorded_config(installation, str(name))
        if recorded is None:
            raise
    overwrite = fields.get("behavior_if_log_dir_exists") == "overwrite"
    return read_continued(given, recorded, overwrite=overwrite)


def recorded_config(installation: Installation, name: str) -> dict[str, JsonValue] | None:
    """The newest configuration of a training of `cua-train run`; None if none is known.

    Does not create a log on a machine that has none.
    """
    if not is_unused(installation):
        return _recorded_in_log(installation, name)
    if installation.kafka_bootstrap_servers is None:
        return None
    with TemporaryDirectory() as home:
        return _recorded_in_log(replace(installation, home=Path(home)), name)


def _recorded_in_log(installation: Installation, name: str) -> dict[str, JsonValue] | None:
    log = EventLog.open(installation)
    try:
        history = read_own_stream(log, ids.training_id(name), {})
    except UnreachableError:
        return None
    finally:
        log.close(0.0)
    if not history.own.exists:
        return None
    created = history.own.events[0].payload
    if isinstance(created, TrainingCreated) and created.kind != "rl":
        return None
    return history.newest_configuration.config
