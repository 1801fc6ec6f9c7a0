"""`cua-train evaluate`: evaluates a policy and records the result."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.flags import RecipeCommand, field_flags, with_config_file
from producer.commands.given_fields import given_fields
from producer.commands.options import examples, given_training_name, with_json
from producer.commands.shell import cua_project_command
from producer.commands.stopping import exit_when_stopped
from producer.console import print_table
from producer.errors import UsageError
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.resume.resume_state import EvaluationSummary

EPILOG = examples(
    "$ cua-train evaluate --training-name first --episodes 200",
    "$ cua-train evaluate --model-name demo --ablate blank-screenshots",
    "$ cua-train evaluate --base-url http://localhost:8000/v1 --model-name my-policy",
)
FIELDS = (
    *(
        "training_name",
        "model_name",
        "provider",
        "base_url",
        "renderer_name",
        "max_tokens",
        "ablate",
    ),
    *("environment", "dbbench_database", "eval_tasks", "judge", "judge_model", "seed"),
    *("eval_episodes", "eval_temperature"),
    *("max_turns", "max_recent_turns", "max_task_time_seconds", "max_turn_time_seconds"),
    *("max_concurrent_rollouts", "validate_every_turn"),
    *("reward", "turn_cost", "parse_error_cost"),
    *("device", "dtype", "kv_cache_bytes"),
)


@click.command(name="evaluate", cls=RecipeCommand, epilog=EPILOG)
@field_flags(
    FIELDS,
    default="the training's, or demo's",
    training_name={
        "panel": "Policy",
        "default": "none",
        "text": "Evaluate the newest state of this training.",
    },
    model_name={
        "default": None,
        "text": "Evaluate this policy: a folder, a Hugging Face id, `demo` or `oracle`.",
    },
    base_url={
        "default": "none",
        "text": "Sample --model-name on this OpenAI-compatible server; the key is read from"
        " OPENAI_API_KEY.",
    },
    eval_episodes={"flag": "--episodes"},
    eval_temperature={
        "flag": "--temperature",
        "default": "0, greedy",
        "text": "Sampling temperature; 0 is greedy.",
    },
)
@with_config_file
@with_json
def command(
    *, as_json: bool, config_file: Path | None, training_name: str | None, **flags: Any
) -> None:
    """Measure the success rate of a policy, without training it."""
    given = {"eval_temperature": 0.0, **given_fields(flags, config_file)}
    training_name = training_name or given.pop("training_name", None)
    if training_name is not None and "model_name" in given:
        message = "give either --training-name or --model-name, not both"
        raise UsageError(message)
    if training_name is not None and "base_url" in given:
        message = "base_url: a training has its own policy; give --model-name, not --training-name"
        raise UsageError(message)
    if training_name is not None and flags.get("environment") is not None:
        message = "environment: a training is evaluated in its own environment; omit it"
        raise UsageError(message)
    from producer.commands.existing import existing_training
    from producer.training.preflight import check_writable

    installation = read_installation(os.environ)
    check_writable(installation.home, "CUA_HOME")
    if training_name is not None:
        training_name = existing_training(
            installation,
            given_training_name(training_name),
            otherwise=" Evaluate it on the host that trained it",
        )
    from producer.training.manual_evaluation import evaluate
    from producer.training.summary import success_text

    with exit_when_stopped() as stop:
        summary = evaluate(given, training_name=training_name, installation=installation, stop=stop)
    if as_json:
        click.echo(json.dumps(_as_json(summary)))
        return
    click.echo(success_text(summary))
    if passes := _passes(summary):
        click.echo(", ".join(f"pass@{k} {rate:.3f}" for k, rate in passes.items()))
    click.echo(f"tasks: {summary.task_source}")
    click.echo(f"page:  {page_url(summary)}  # with: {cua_project_command('up')}")
    print_table(
        ["task", "success"], [[task, rate] for task, rate in sorted(summary.by_task.items())]
    )


def _passes(summary: "EvaluationSummary") -> dict[int, float]:
    from producer.training.metrics import passes_of_tasks

    return passes_of_tasks(summary.counts, summary.temperature)


def _as_json(summary: "EvaluationSummary") -> dict[str, Any]:
    return {
        "success": round(summary.success, 6),
        "standard_error": round(summary.standard_error, 6),
        "episodes": summary.episodes,
        "temperature": summary.temperature,
        "num_tasks": summary.num_tasks,
        "split": summary.split,
        "task_source": summary.task_source,
        "pass_at_k": {str(k): round(rate, 6) for k, rate in _passes(summary).items()},
        "by_task": {task: round(rate, 6) for task, rate in summary.by_task.items()},
        "evaluation_id": summary.evaluation_id,
        "url": page_url(summary),
    }


def page_url(summary: "EvaluationSummary") -> str:
    """The evaluation's page in the monitor, at the default port."""
    return f"http://127.0.0.1:8321/eval/{summary.evaluation_id}"
