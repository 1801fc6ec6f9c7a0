"""`cua-project show`: a training's facts in a terminal."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import sanitize

if TYPE_CHECKING:
    from consumers.monitor.api.training import SuccessGain, TrainingFacts


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one object: what the monitor answers at /api/trainings/NAME.",
)
def command(*, name: str, as_json: bool) -> None:
    """Show a training: status, progress, success before and after, last step, checkpoints.

    Shows what the tables have; `cua-project run` or `cua-project up` keeps them up to date.

    Examples:
        cua-project show first
        cua-project show first --json | jq '.evaluations[] | {step, success_rate, standard_error}'
    """
    from consumers.commands.named_training import named_training
    from consumers.monitor.api.training import training_facts
    from consumers.queries import get_session
    from consumers.queries.session import open_database

    open_database()
    with get_session() as session:
        facts = training_facts(session, named_training(session, name), datetime.now(UTC))
    if as_json:
        click.echo(facts.model_dump_json())
        return
    for label, value in _lines(facts):
        if value:
            click.echo(f"{label:13}{sanitize(value)}")


def _lines(facts: "TrainingFacts") -> Iterator[tuple[str, str | None]]:
    yield "training", facts.run_name
    yield "shown as", facts.display_name
    yield "tags", ", ".join(facts.tags)
    yield "note", facts.note
    yield "status", facts.status
    yield "parked since", _time(facts.parked_since)
    yield "message", facts.status_message
    yield "error", facts.error_message
    steps = f"step {facts.current_step} of {facts.total_steps}, {facts.progress_percent:.0f} %"
    yield "progress", ", ".join(filter(None, (steps, facts.current_phase)))
    yield "policy", f"{facts.model_name}, {facts.kind} in {facts.environment}"
    for gain in facts.gains:
        yield "success", _gain(gain)
    done = [step for step in facts.steps if step.status == "completed"]
    if done:
        last = done[-1]
        measured = (
            ("reward", last.reward_mean),
            ("loss", last.loss),
            ("kl", last.kl_divergence),
            ("gradient", last.policy_gradient_norm),
        )
        shown = [f"{name} {value:.4g}" for name, value in measured if value is not None]
        yield "last step", f"{last.step}: {', '.join(shown)}"
    yield "checkpoint", facts.checkpoint_path
    yield "files", facts.log_path
    yield "began", _time(facts.start_time)
    yield "ended", _time(facts.end_time)
    if facts.num_leaked_devices:
        yield "devices", f"{facts.num_leaked_devices} not released; they may still run"


def _time(time: datetime | None) -> str | None:
    return None if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _gain(gain: "SuccessGain") -> str:
    from schemas.clustered_errors import Difference
    from schemas.evaluation_text import difference_text, tasks_text, temperature_text

    last = gain.after or gain.before
    assert last is not None  # noqa: S101  # a gain is of evaluations
    before, after = (
        "not evaluated" if item is None else f"{item.rate:.3f}"
        for item in (gain.before, gain.after)
    )
    text = f"{temperature_text(last.temperature)}: {before} -> {after}"
    if gain.difference is not None:
        own = gain.difference
        difference = Difference(own.gain, own.standard_error, own.num_tasks)
        text += f" ({difference_text(difference)})"
    return f"{text}, {tasks_text(last.num_tasks, last.split)}"
