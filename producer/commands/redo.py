"""`cua-train redo`: a step trained again from the log."""

import json
import logging
import os
from pathlib import Path

import rich_click as click

from producer.commands.options import check_new_folder, examples, given_training_name
from producer.commands.stopping import stop_on_signals
from producer.console import print_table
from producer.errors import MismatchError, StopRequestedError
from schemas.installation import read_installation

logger = logging.getLogger(__name__)

EPILOG = examples(
    "$ cua-train redo --training-name first --step 12",
    "$ cua-train redo --training-name first --step 12 --output adapter-12",
)


@click.command(name="redo", epilog=EPILOG)
@click.option(
    "--training-name", metavar="NAME", required=True, panel="Training", help="The training."
)
@click.option(
    "--step",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    required=True,
    panel="Training",
    help="The step to train again.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    panel="Output",
    help="Save the adapter after the step here (PEFT layout). [default: it is only compared]",
)
@click.option("--json", "as_json", is_flag=True, panel="Output", help="Print the result as JSON.")
def command(*, training_name: str, step: int, output: Path | None, as_json: bool) -> int:
    """Train a step again from its recorded rollouts, and compare it with what was recorded.

    Begins with the newest state before the step, or with the fresh policy, and samples nothing. On
    a processor loss, gradient and adapter are those of the first time, bit for bit: exit 0; else 4.
    The training and the log stay as they are.
    """
    name = given_training_name(training_name)
    if output is not None:
        check_new_folder(output)
    from producer.training.redo import describe
    from producer.training.redo_command import redo

    try:
        result = redo(read_installation(os.environ), name, step, output, stop_on_signals())
    except StopRequestedError:
        logger.info("stopped")
        return 130
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
