"""Copies the adapter of a training's last step into a folder of its own."""

import shutil
from pathlib import Path

from producer.fine_tuning.output import output_folder, write_output
from producer.resume.resume_state import checkpoint_folder
from producer.training.checkpoints import file_sha256, weights_file
from producer.training.summary import Summary


def write_adapter(summary: Summary, folder: Path | None) -> Path:
    """The folder that it is in now: `folder`, or `model` in the training's own."""
    run_folder = Path(summary.log_path)
    output = output_folder(folder, run_folder)
    saved = checkpoint_folder(run_folder, summary.generation, summary.steps)

    def export(making: Path) -> str:
        shutil.copytree(saved, making)
        return file_sha256(weights_file(making))

    write_output(output, summary.training_name, export)
    return output
