"""`cua-train evaluate`: an evaluation on request; its events go to the log."""

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.flags import field_flag
from producer.commands.given_fields import given_fields
from producer.commands.options import examples, given_training_name
from producer.commands.recipe_command import RecipeCommand
from producer.commands.shell import cua_project_command
from producer.commands.stopping import stop_on_signals
from producer.console import print_table
from producer.errors import NotFoundError, StopRequestedError, UsageError, did_you_mean
from schemas.installation import Installation, read_installation

if TYPE_CHECKING:
    from producer.resume.resume_state import EvaluationSummary

logger = logging.getLogger(__name__)

EPILOG = examples(
    "$ cua-train evaluate --training-name first --episodes 200",
    "$ cua-train evaluate --model-name demo --ablate blank-screenshots",
    "$ cua-train evaluate --base-url http://localhost:8000/v1 --model-name my-policy",
)
OF_TRAINING = "the training's, or demo's"


@click.command(name="evaluate", cls=RecipeCommand, epilog=EPILOG)
@field_flag("training_name", panel="Policy", default="none", text="Evaluate its newest state.")
@field_flag(
    "model_name",
    panel="Policy",
    text="Evaluate this policy instead: a folder, a Hugging Face id, `demo` or `oracle`.",
)
@field_flag(
    "base_url",
    panel="Policy",
    default="none",
    text="Sample the policy --model-name from this OpenAI-compatible server; the key is that of"
    " OPENAI_API_KEY.",
)
@field_flag("renderer_name", panel="Policy", default=OF_TRAINING)
@field_flag(
    "eval_temperature",
    panel="Episodes",
    flag="--temperature",
    default="0, greedy",
    text="Sampling temperature; 0 is greedy.",
)
@field_flag("max_turns", panel="Episodes", default=OF_TRAINING)
@field_flag("max_tokens", panel="Episodes", default=OF_TRAINING)
@field_flag("max_recent_turns", panel="Episodes", default=OF_TRAINING)
@field_flag("max_task_time_seconds", panel="Episodes", default=OF_TRAINING)
@field_flag("max_turn_time_seconds", panel="Episodes", default=OF_TRAINING)
@field_flag("max_concurrent_rollouts", panel="Episodes", default=OF_TRAINING)
@field_flag("validate_every_turn", panel="Episodes", default=OF_TRAINING)
@field_flag("reward", panel="Episodes", default=OF_TRAINING)
@field_flag("turn_cost", panel="Episodes", default=OF_TRAINING)
@field_flag("parse_error_cost", panel="Episodes", default=OF_TRAINING)
@field_flag("eval_tasks", panel="Episodes", default=OF_TRAINING)
@field_flag("judge", panel="Episodes", default=OF_TRAINING)
@field_flag("judge_model", panel="Episodes", default=OF_TRAINING)
@field_flag("eval_episodes", panel="Episodes", flag="--episodes", default=OF_TRAINING)
@field_flag("seed", panel="Episodes", default=OF_TRAINING)
@field_flag("ablate", panel="Episodes", default=OF_TRAINING)
@field_flag("device", panel="Computation", default=OF_TRAINING)
@field_flag("kv_cache_bytes", panel="Computation", default=OF_TRAINING)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    panel="Output",
    help="JSON, TOML or YAML file of fields, as for `cua-train run`; flags win.",
)
@click.option("--json", "as_json", is_flag=True, panel="Output", help="Print the result as JSON.")
def command(
    *, as_json: bool, config_file: Path | None, training_name: str | None, **flags: Any
) -> int:
    """Measure the success rate of a policy, without training it."""
    given = {"eval_temperature": 0.0, **given_fields(flags, config_file)}
    training_name = training_name or given.pop("training_name", None)
    if training_name is not None and "model_name" in given:
        message = "give either --training-name or --model-name, not both"
        raise UsageError(message)
    if training_name is not None and "base_url" in given:
        message = "base_url: a training has its own policy; use --model-name instead of its name"
        raise UsageError(message)
    from producer.training.writable import check_writable

    installation = read_installation(os.environ)
    check_writable(installation.home, "CUA_HOME")
    if training_name is not None:
        training_name = _existing(training_name, installation)
    from producer.training.manual_evaluation import evaluate
    from producer.training.success_text import success_text

    try:
        summary = evaluate(
            given, training_name=training_name, installation=installation, stop=stop_on_signals()
        )
    except StopRequestedError:
        logger.info("stopped")
        return 130
    if as_json:
        click.echo(json.dumps(_as_json(summary)))
        return 0
    click.echo(success_text(summary))
    click.echo(f"tasks: {summary.task_source}")
    click.echo(f"page:  {page_url(summary)}  # with: {cua_project_command('up')}")
    print_table(
        ["task", "success"], [[task, rate] for task, rate in sorted(summary.by_task.items())]
    )
    return 0


def _as_json(summary: "EvaluationSummary") -> dict[str, Any]:
    return {
        "success": round(summary.success, 6),
        "standard_error": round(summary.standard_error, 6),
        "episodes": summary.episodes,
        "temperature": summary.temperature,
        "num_tasks": summary.num_tasks,
        "split": summary.split,
        "task_source": summary.task_source,
        "by_task": {task: round(rate, 6) for task, rate in summary.by_task.items()},
        "evaluation_id": summary.evaluation_id,
        "url": page_url(summary),
    }


def page_url(summary: "EvaluationSummary") -> str:
    """The evaluation's page, where `cua-project up` or `monitor` serves it at its default port."""
    return f"http://127.0.0.1:8321/eval/{summary.evaluation_id}"


def _existing(training_name: str, installation: Installation) -> str:
    """The name in its normal form. UsageError when it is no name, NotFoundError when unknown."""
    name = given_training_name(training_name)
    runs = installation.runs_dir
    # A link to a --log-path that is missing now is reported as such later.
    if not (runs / name).is_dir() and not (runs / name).is_symlink():
        known = [path.name for path in runs.iterdir()] if runs.is_dir() else []
        hint = did_you_mean(name, known) or " Evaluate it on the host that trains it"
        message = f"there is no training {name!r} in {runs}.{hint}"
        raise NotFoundError(message)
    return name
