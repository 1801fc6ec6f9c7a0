"""`cua-train redo`: trains a step again from the log."""

import json
import os
from pathlib import Path

import rich_click as click

from producer.commands.options import (
    FOLDER,
    check_new_output,
    examples,
    given_training_name,
    option,
    with_json,
    with_training_name,
)
from producer.commands.stopping import exit_when_stopped
from producer.console import print_table
from producer.errors import MismatchError
from schemas.installation import read_installation

EPILOG = examples(
    "$ cua-train redo --training-name first --step 12",
    "$ cua-train redo --training-name first --step 12 --output adapter-12",
)


@click.command(name="redo", epilog=EPILOG)
@with_training_name
@option("--step", "The step to train again.", click.IntRange(1, 1_000_000), required=True)
@option(
    "--output",
    "Save the adapter after the step here, in PEFT's layout.",
    FOLDER,
    shown="only compare",
)
@with_json
def command(*, training_name: str, step: int, output: Path | None, as_json: bool) -> int:
    """Train a step again from its recorded rollouts, and compare the result with the record.

    Starts from the newest saved state before the step, or from the fresh policy, and samples
    nothing. On a CPU, loss, gradient and adapter are equal bit for bit: exit code 0, otherwise 4.
    Changes neither the training nor the log.
    """
    name = given_training_name(training_name)
    if output is not None:
        check_new_output(output)
    from producer.training.redo import describe
    from producer.training.redo_command import redo

    with exit_when_stopped() as stop:
        result = redo(read_installation(os.environ), name, step, output, stop)
    if as_json:
        click.echo(json.dumps(result.as_json()))
    else:
        print_table(
            ["step", "loss", "gradient", "seconds", "compared with the record"],
            [
                [
                    str(step.recorded.number),
                    f"{step.update.loss:.6f}",
                    f"{step.update.gradient_norm:.6f}",
                    f"{step.update.seconds:.1f}",
                    describe(step.differences) or "equal",
                ]
                for step in result.steps
            ],
        )
        if result.is_checkpoint_equal is not None:
            word = "equal" if result.is_checkpoint_equal else "other weights"
            click.echo(f"the step's checkpoint: {word}")
    return 0 if result.is_equal else MismatchError.exit_code
