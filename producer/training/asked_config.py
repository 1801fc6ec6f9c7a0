"""The configuration that a command is given, which may be about a training that the log knows.

A setting of a continued training may be right only with the settings it was begun with, and
`--steps-per-skill` without them is a mistake. So what is refused alone is judged again over the
recorded configuration, which only the log knows on every machine.
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
    """The configuration of `given`, by itself or over the recorded one of its training.

    UsageError for what is wrong with a field, with fields together, or with a training that goes
    on; with fields together also while Kafka, which may know of the training, does not answer.
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
    """The newest configuration of a training of `cua-train run`; None: none is known.

    On a machine without a log it makes none.
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
