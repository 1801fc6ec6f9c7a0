"""Writes the folder of a training's result, all or nothing."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from producer.durable import sync_folder, write_durably
from producer.errors import UsageError
from producer.resume.resume_state import checkpoint_folder
from producer.training.checkpoints import file_sha256, weights_file
from producer.training.preflight import check_writable
from producer.training.summary import Summary

MARK: Final = "training.json"


def output_folder(output_dir: Path | None, run_folder: Path) -> Path:
    """Folder of the result."""
    return run_folder / "model" if output_dir is None else output_dir


def check_output(folder: Path, training_name: str, kept: Iterable[Path]) -> None:
    """UsageError unless the folder is new, empty, or holds this training's result.

    `kept`: folders of the training and of its log. The result replaces its folder, so none of them
    may be that folder or in it.
    """
    for other in kept:
        if other.resolve().is_relative_to(folder.resolve()):
            message = (
                f"output_dir: {folder} would hold {other}, and the result replaces all of it;"
                " choose another folder"
            )
            raise UsageError(message)
    if folder.exists() and not folder.is_dir():
        message = f"output_dir: {folder} is a file; choose another"
        raise UsageError(message)
    if folder.is_dir() and any(folder.iterdir()):
        owner = owner_of(folder)
        if owner is None:
            message = f"output_dir: {folder} is not empty; choose another, or empty it first"
            raise UsageError(message)
        if owner != training_name:
            message = f"output_dir: {folder} holds the result of training {owner!r}"
            ways = (
                "move it elsewhere",
                "choose another --output-dir",
                f"continue that one with --training-name {owner}",
            )
            raise UsageError(message, ways=ways)
    check_writable(folder, "output_dir")


def owner_of(folder: Path) -> str | None:
    """Name of the training with its result in this folder, or None."""
    try:
        return str(json.loads((folder / MARK).read_text(encoding="utf-8"))["training_name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_output(folder: Path, training_name: str, export: Callable[[Path], str]) -> None:
    """Replace the folder by what `export` writes into a temporary one."""
    making = folder.with_name(f".making-{folder.name}")
    shutil.rmtree(making, ignore_errors=True)
    making.parent.mkdir(parents=True, exist_ok=True)
    digest = export(making)
    mark = {"training_name": training_name, "weights_sha256": digest}
    write_durably(making / MARK, json.dumps(mark, indent=2) + "\n")
    if folder.exists():
        shutil.rmtree(folder)
    making.rename(folder)
    sync_folder(folder.parent)


def write_adapter(summary: Summary, folder: Path | None) -> Path:
    """Copy the adapter of the last step to `folder`, or to `model` in the training's folder."""
    run_folder = Path(summary.log_path)
    output = output_folder(folder, run_folder)
    saved = checkpoint_folder(run_folder, summary.generation, summary.steps)

    def export(making: Path) -> str:
        shutil.copytree(saved, making)
        return file_sha256(weights_file(making))

    write_output(output, summary.training_name, export)
    return output
