"""A data set of the Hugging Face hub as a folder: downloaded once, into the hub's own cache."""

import re
from pathlib import Path
from typing import Final

from producer.errors import UnreachableError, UsageError
from schemas.distribution import install_command

HUB_NAME: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")
PATTERNS: Final = ("*db_bench*/*", "*db_bench*/**", "entry_dict.json")
"""Files of DB Bench among those of other systems in LifelongAgentBench."""


def is_hub_name(name: str) -> bool:
    """Whether it is written OWNER/NAME."""
    return HUB_NAME.fullmatch(name) is not None


def downloaded(name: str) -> Path:
    """The folder of the data set's files. UnreachableError; UsageError without the hub's client."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        command = install_command("train")
        message = f"{name}: data sets of the hub need huggingface_hub; run {command}"
        raise UsageError(message) from error
    try:
        return Path(
            snapshot_download(repo_id=name, repo_type="dataset", allow_patterns=list(PATTERNS))
        )
    except Exception as error:  # the client raises errors of its HTTP library, too
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        message = f"{name}: the hub's data set cannot be downloaded: {reason}"
        raise UnreachableError(message) from error
