"""`cua-train evaluate`: one evaluation by hand, its facts in the log like everything else."""

import json
from pathlib import Path
from typing import Any

import click

from producer.commands.flags import given_fields
from producer.commands.run import stop_on_signals
from producer.errors import UsageError


@click.command(name="evaluate")
@click.option("--training-name", help="Evaluate this training's newest state.")
@click.option(
    "--model-name", help="Evaluate this policy instead: a folder, a hub id, demo or oracle."
)
@click.option(
    "--eval-tasks", metavar="JSON", help="Task sources. [default: the training's, or the preset's]"
)
@click.option(
    "--episodes",
    "eval_episodes",
    type=click.IntRange(1),
    help="Episodes in all. [default: the training's or preset's]",
)
@click.option("--seed", type=click.IntRange(0), help="Of layouts and initial states.")
@click.option(
    "--ablate", type=click.Choice(["none", "blank-screenshots"]), help="A control experiment."
)
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="JSON or TOML file of fields."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    *, as_json: bool, config_file: Path | None, training_name: str | None, **flags: Any
) -> int:  # the fields' flags
    """Run episodes on unseen seeds without training, and say how many succeed."""
    if training_name is not None and flags["model_name"] is not None:
        message = "expected --training-name or --model-name, found both"
        raise UsageError(message)
    given = given_fields(flags, config_file)
    from producer.errors import StopRequestedError
    from producer.training.manual_evaluation import config_of_policy, evaluate

    config_of_policy(given)
    try:
        summary = evaluate(given, training_name=training_name, stop=stop_on_signals())
    except StopRequestedError:
        return 130
    if as_json:
        click.echo(
            json.dumps(
                {
                    "success": summary.success,
                    "standard_error": summary.standard_error,
                    "episodes": summary.episodes,
                    "by_task": summary.by_task,
                }
            )
        )
        return 0
    click.echo(
        f"success {summary.success:.3f} ± {summary.standard_error:.3f} over {summary.episodes}"
        " episodes"
    )
    for task, success in sorted(summary.by_task.items()):
        click.echo(f"  {task:40} {success:.3f}")
    return 0
