"""Writes the result of a training into its output folder."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from producer.durable import sync_file, sync_folder, write_durably
from producer.errors import UsageError
from producer.resume.resume_state import checkpoint_folder
from producer.resume.run_folder import find_run_folder, training_in
from producer.training.checkpoints import file_sha256, weights_file
from producer.training.preflight import check_writable
from producer.training.summary import Summary
from schemas.installation import Installation

MARK: Final = "training.json"
MAKING: Final = ".making"
"""Temporary folder inside the result's folder, and so on the same disk."""


def output_folder(output_dir: Path | None, run_folder: Path) -> Path:
    """The folder for the result."""
    return run_folder / "model" if output_dir is None else output_dir


def check_output(folder: Path, training_name: str, kept: Iterable[Path]) -> None:
    """Raise UsageError unless the folder is new, empty, or holds this training's result.

    `kept` are the folders of the training and of its log. They may be inside it, as in RewardSQL's
    published file; the result's files do not touch them.
    """
    inside = {other.resolve() for other in kept}
    if folder.resolve() in inside:
        message = f"output_dir: {folder} is the training's own folder or CUA_HOME; choose another"
        raise UsageError(message)
    if folder.exists() and not folder.is_dir():
        message = f"output_dir: {folder} is a file; choose another"
        raise UsageError(message)
    if folder.is_dir() and not all(_is_own(path, inside) for path in folder.iterdir()):
        owner = _read_mark(folder).get("training_name")
        if owner is None:
            message = f"output_dir: {folder} is not empty; choose another, or empty it first"
            raise UsageError(message)
        if owner != training_name:
            message = f"output_dir: {folder} holds the result of training {owner!r}"
            ways = (
                "move the folder elsewhere",
                "choose another --output-dir",
                f"continue that training with --training-name {owner}",
            )
            raise UsageError(message, ways=ways)
    check_writable(folder, "output_dir")


def check_planned_output(
    folder: Path, name: str | None, installation: Installation, log_path: Path | None
) -> None:
    """Check as `check_output` does, before the training opens. `name` is None if none was given."""
    name = name or (None if log_path is None else training_in(log_path))
    kept = [installation.home]
    if name is not None:
        kept.append(find_run_folder(installation, name, log_path))
    elif log_path is not None:
        kept.append(log_path)
    check_output(folder, name or "", kept)


def _is_own(path: Path, inside: set[Path]) -> bool:
    """Whether the path contains a folder of the training, or is left from a crashed first write."""
    if path.name in {MAKING, f"{MARK}.tmp"}:
        return True
    return any(other.is_relative_to(path.resolve()) for other in inside)


def holds_result(folder: Path, training_name: str) -> bool:
    """Whether this training's result was written there completely."""
    mark = _read_mark(folder)
    return mark.get("training_name") == training_name and bool(mark.get("weights_sha256"))


def _read_mark(folder: Path) -> dict[str, Any]:
    """The mark recorded by the last `write_output`; empty if there is none."""
    try:
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return mark if isinstance(mark, dict) else {}


def write_output(folder: Path, training_name: str, export: Callable[[Path], str]) -> None:
    """Replace the previous result with the files that `export` writes into a new folder.

    Nothing is deleted, and other files stay. After a crash the mark has no digest.
    """
    making = folder / MAKING
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(making, ignore_errors=True)
    digest = export(making)
    _write_mark(folder, training_name, None)
    for path in sorted(making.rglob("*")):
        if path.is_file():
            written = folder / path.relative_to(making)
            written.parent.mkdir(parents=True, exist_ok=True)
            sync_file(path)
            path.replace(written)
            sync_folder(written.parent)
    shutil.rmtree(making)
    sync_folder(folder.parent)
    _write_mark(folder, training_name, digest)


def _write_mark(folder: Path, training_name: str, digest: str | None) -> None:
    mark = {"training_name": training_name, "weights_sha256": digest}
    write_durably(folder / MARK, json.dumps(mark, indent=2) + "\n")


def write_adapter(summary: Summary, folder: Path | None) -> Path:
    """Copy the last step's adapter to `folder`, by default to `model` in the training's folder."""
    run_folder = Path(summary.log_path)
    output = output_folder(folder, run_folder)
    saved = checkpoint_folder(run_folder, summary.generation, summary.steps)

    def export(making: Path) -> str:
        shutil.copytree(saved, making)
        return file_sha256(weights_file(making))

    write_output(output, summary.training_name, export)
    return output
