"""The folder with a training's states and checkpoints: CUA_HOME/runs/NAME, or its --log-path.

A folder elsewhere is linked from runs/NAME, so that the training's name is enough to find it. If
runs/NAME is itself a folder, of an older generation, its file `moved-to` names the newer one.
"""

from pathlib import Path

from producer.durable import write_durably
from producer.errors import NotFoundError, UsageError
from producer.resume.resume_state import find_states, read_run_config
from schemas.installation import Installation

MOVED_TO = "moved-to"
MAX_NAMED = 5
BEFORE_ANY_STATE = frozenset({"lock", "writers", "lost+found"})
"""Files created before the training's name leads to its folder, and one of every disk."""


def find_run_folder(installation: Installation, name: str, log_path: Path | None = None) -> Path:
    """The training's folder, which need not exist yet.

    Raises UsageError if it holds another training, or if it is not this training's and not empty;
    NotFoundError if runs/NAME links to a missing folder.
    """
    known = known_folder(installation, name)
    folder = log_path or known
    if log_path is None and known != _named(installation, name) and not known.is_dir():
        message = f"the folder of training {name!r}, {known}, does not exist"
        raise NotFoundError(
            message,
            ways=("mount or restore it", "name the folder that replaces it with --log-path"),
        )
    owner = training_in(folder) or name
    if owner != name:
        message = f"{folder} holds training {owner!r}, not {name!r}"
        ways = (
            "move it elsewhere",
            "choose another --log-path",
            "choose another --training-name",
        )
        raise UsageError(message, ways=ways)
    if found := _foreign(installation, name, folder):
        message = (
            f"{folder} is not empty and not the folder of training {name!r}: it has"
            f" {', '.join(found[:MAX_NAMED])}; nothing was written"
        )
        raise UsageError(message, ways=("choose a new folder", "empty it first"))
    return folder


def _foreign(installation: Installation, name: str, folder: Path) -> list[str]:
    """Names of the contents of a folder that is not this training's; empty if it is.

    It is this training's if it has a state, if the training's name leads to it, or if its
    config.json names it: a process that was killed early leaves no state.
    """
    if find_states(folder) or folder.resolve() == known_folder(installation, name).resolve():
        return []
    try:
        found = sorted(path.name for path in folder.iterdir() if path.name not in BEFORE_ANY_STATE)
    except OSError:  # it is new, or what writes to it reports why it cannot
        return []
    if not found:
        return []
    try:
        owner = read_run_config(folder).get("training_name")
    except (OSError, ValueError, TypeError):
        owner = None
    return [] if owner == name else found


def training_in(folder: Path) -> str | None:
    """The name of the training whose states are in `folder`; None without states."""
    states = find_states(folder)
    return states[0].manifest.training_name if states else None


def check_not_elsewhere(installation: Installation, name: str, folder: Path) -> None:
    """Raises UsageError if `folder` lacks a state of the training and its known folder has one.

    Training in `folder` would start again and supersede the contents of the known folder.
    """
    known = known_folder(installation, name)
    if folder != known and find_states(known) and not find_states(folder):
        message = f"log_path: training {name!r} is in {known}"
        raise UsageError(message, ways=("omit --log-path", f"move that folder to {folder} first"))


def link_run_folder(installation: Installation, name: str, folder: Path) -> None:
    """Link the name to `folder`. If runs/NAME is a real folder, it keeps its contents."""
    named = _named(installation, name)
    if folder == named:
        (named / MOVED_TO).unlink(missing_ok=True)
        return
    if folder == known_folder(installation, name):
        return
    if named.is_symlink():
        named.unlink()
    elif named.exists():
        write_durably(named / MOVED_TO, str(folder))
        return
    named.parent.mkdir(parents=True, exist_ok=True)
    named.symlink_to(folder, target_is_directory=True)


def _named(installation: Installation, name: str) -> Path:
    return installation.runs_dir / name


def known_folder(installation: Installation, name: str) -> Path:
    """The folder that the training's name leads to, which need not exist."""
    named = _named(installation, name)
    if named.is_symlink():
        return named.readlink()
    try:
        return Path((named / MOVED_TO).read_text(encoding="utf-8"))
    except OSError:  # there is none
        return named
