"""A recipe's output folder with a time stamp in its name, `outputs/{TIMESTAMP}`.

A command repeated after its process was killed continues in the folder that it created; each new
training gets its own folder.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from producer.config import read_fields
from producer.errors import UsageError
from producer.resume.resume_state import find_states, read_run_config
from producer.resume.run_folder import known_folder
from schemas.installation import Installation

STAMP: Final = "{TIMESTAMP}"
STAMPED: Final = r"\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d"
OF_THE_PROCESS: Final = frozenset({"log_path", "training_name", "behavior_if_log_dir_exists"})
GOING_ON: Final = frozenset({None, "ask", "resume"})
"""Values of `behavior_if_log_dir_exists` that resume; others mean a new folder."""


def with_stamped_folder(
    given: Mapping[str, Any], installation: Installation, now: datetime
) -> dict[str, Any]:
    """Fill the stamp in `log_path`: the resumed training's, or else the current time.

    A given name resumes the training of that name. Otherwise the newest training with these
    settings that has not reached its last step is resumed, unless `behavior_if_log_dir_exists` asks
    for something other than resuming.
    """
    fields = dict(given)
    pattern = str(fields.get("log_path") or "")
    if STAMP not in pattern:
        return fields
    if (name := fields.get("training_name")) is not None:
        known = known_folder(installation, str(name))
        if find_states(known):
            return {**fields, "log_path": known}
    stamp = now.strftime("%Y-%m-%d-%H-%M-%S")
    new = Path(pattern.replace(STAMP, stamp))
    if fields.get("behavior_if_log_dir_exists") not in GOING_ON:
        return {**fields, "log_path": new}
    return {**fields, "log_path": _continued(pattern, fields) or new}


def _continued(pattern: str, fields: Mapping[str, Any]) -> Path | None:
    own = Path(pattern).expanduser().absolute()
    place = next(at for at, part in enumerate(own.parts) if STAMP in part)
    parent, rest = Path(*own.parts[:place]), own.parts[place + 1 :]
    form = re.compile(re.escape(own.parts[place]).replace(re.escape(STAMP), STAMPED))
    try:
        names = sorted((item.name for item in parent.iterdir()), reverse=True)
    except OSError:  # it is made with the first training
        return None
    folders = (parent.joinpath(name, *rest) for name in names if form.fullmatch(name))
    return next((folder for folder in folders if _goes_on(folder, fields)), None)


def _goes_on(folder: Path, fields: Mapping[str, Any]) -> bool:
    states = find_states(folder)
    if not states:
        return False
    if (name := fields.get("training_name")) is not None:
        return states[0].manifest.training_name == str(name)
    try:
        recorded = read_run_config(folder)
        asked = read_fields({k: v for k, v in fields.items() if k not in OF_THE_PROCESS})
    except (UsageError, OSError, ValueError):
        return False
    is_same = all(recorded.get(name) == value for name, value in asked.items())
    return is_same and states[0].manifest.step < int(str(recorded.get("num_steps", 0)))
