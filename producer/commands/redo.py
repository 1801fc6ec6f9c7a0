"""`cua-train redo` and `cua-train rescore`: train or score a recorded training again."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from pydantic import JsonValue

from producer.algorithms.controls import BLANK_SCREENS, CONTROL_TEXTS, REWARD_CONTROLS
from producer.algorithms.names import ControlName
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
from producer.config.reward import REWARD_NAMES, check_reward_name, checked_sha256
from producer.console import print_table, rounded
from producer.errors import MismatchError, UsageError
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.training.rescore import Scorer
    from producer.validators.judges import AskModel

COST = click.FloatRange(min=0)
RESCORE_EPILOG = examples(
    "$ cua-train rescore --training-name first --reward efficiency",
    "$ cua-train rescore --training-name first --reward my_rewards:tidy",
    "$ cua-train rescore --training-name first --judge http://localhost:8000/v1",
)
EPILOG = examples(
    "$ cua-train redo --training-name first --step 12",
    "$ cua-train redo --training-name first --step 12 --output adapter-12",
    "$ cua-train redo --training-name first --step 1 --control shuffled_rewards --output other",
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
@option(
    "--control",
    "Train the step as a control, with the same rollouts: their rewards permuted"
    " (shuffled_rewards), all set to 1 and right (ignored_rewards), or negated (wrong_sign). Needs"
    " --output. Earlier steps are trained as recorded.",
    metavar="NAME",
    shown="as it was",
)
@with_json
def command(
    *,
    training_name: str,
    step: int,
    output: Path | None,
    control: str | None,
    as_json: bool,
) -> int:
    """Train a step again from its recorded rollouts, and compare the result with the record.

    Starts from the newest saved state before the step, or from the fresh policy, and samples
    nothing. Exits with 0 if loss, gradient, KL and checkpoint have the bits of the record, as they
    do on the same CPU, otherwise with 4. Changes neither the training nor the log. A control is not
    compared: evaluate its adapter with `cua-train run --load-checkpoint-path FOLDER
    --baseline-only`.
    """
    name = given_training_name(training_name)
    chosen = _control(control)
    if output is not None:
        check_new_output(output)
    elif chosen != "none":
        message = "--control: needs --output; the adapter is its only result"
        raise UsageError(message)
    from producer.training.redo import describe, redo

    with exit_when_stopped() as stop:
        installation = read_installation(os.environ)
        result = redo(installation, name, step, output, stop, chosen)
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
                    describe(step.differences) or "equal"
                    if step is not result.steps[-1] or chosen == "none"
                    else f"a control: {CONTROL_TEXTS[chosen]}",
                ]
                for step in result.steps
            ],
        )
        if result.is_checkpoint_equal is not None:
            word = "equal" if result.is_checkpoint_equal else "other weights"
            click.echo(f"the step's checkpoint: {word}")
    return MismatchError.exit_code if result.is_equal is False else 0


def _control(given: str | None) -> ControlName:
    """Parse a control's name, with hyphens or underscores as in `run`. Raises UsageError."""
    if given is None:
        return "none"
    spelt = given.replace("-", "_")
    if spelt == BLANK_SCREENS:
        message = "--control: the recorded rollouts saw their screens; blank_screens is for `run`"
        raise UsageError(message)
    for name in REWARD_CONTROLS:
        if name == spelt:
            return name
    message = f"--control: {given!r} is not one of {', '.join(REWARD_CONTROLS)}"
    raise UsageError(message)


@click.command(name="rescore", epilog=RESCORE_EPILOG)
@with_training_name
@option(
    "--reward reward_name",
    f"{', '.join(REWARD_NAMES)}, or your own function.",
    metavar="NAME|MODULE:FUNCTION",
    default="binary",
)
@option(
    "--judge",
    "Judge the recorded episodes again.",
    metavar="agent|URL",
    shown="keep the recorded verdicts",
)
@option(
    "--judge-model",
    "Model of the judge's endpoint.",
    metavar="NAME",
    shown="the only one that it lists",
)
@option("--turn-cost", "Reward subtracted for each turn.", COST, default=0.0)
@option(
    "--parse-error-cost",
    "Reward subtracted for each action that cannot be parsed.",
    COST,
    default=0.0,
)
@with_json
def rescore_training(*, training_name: str, as_json: bool, **scoring: Any) -> None:
    """Score the finished rollouts of a training again, from the log.

    The new scores are additional events, and rows of the tables `scoring` and `score`. The
    training's own record does not change.
    """
    name = given_training_name(training_name)
    scorer = _scorer(**scoring)
    from producer.training.rescore import rescore

    installation = read_installation(os.environ)
    with exit_when_stopped(lambda: "the scores so far are in the log") as stop:
        result = rescore(installation, name, scorer, stop=stop)
    if as_json:
        click.echo(json.dumps(rounded(asdict(result))))
        return
    failed = f", {result.failed} could not be scored" if result.failed else ""
    click.echo(f"training {name}: {result.rollouts} rollouts{failed}; scoring {result.scoring_id}")
    print_table(
        ["", "recorded", scorer.reward_name],
        [
            ["mean reward", _number(result.reward_mean_before), _number(result.reward_mean)],
            ["success", _number(result.success_rate_before), _number(result.success_rate)],
        ],
    )


def _scorer(
    *,
    reward_name: str,
    judge: str | None,
    judge_model: str | None,
    turn_cost: float,
    parse_error_cost: float,
) -> "Scorer":
    """Build the scorer.

    Raises UsageError for an unusable reward or judge, and UnreachableError for the judge's
    endpoint.
    """
    from producer.config.reward import named_reward
    from producer.training.rescore import Scorer

    try:
        check_reward_name(reward_name)
        sha256 = checked_sha256(reward_name, None)
    except ValueError as error:
        message = f"--reward: {error}"
        raise UsageError(message) from None
    config: dict[str, JsonValue] = {"turn_cost": turn_cost, "parse_error_cost": parse_error_cost}
    if sha256 is not None:
        config["reward_sha256"] = sha256
    ask_model = None
    if judge is not None:
        judge, judge_model, ask_model = _open_judge(judge, judge_model)
    elif judge_model is not None:
        message = "--judge-model: needs --judge URL"
        raise UsageError(message)
    if judge_model is not None:
        config["judge_model"] = judge_model
    return Scorer(
        reward_name=reward_name,
        reward=named_reward(reward_name),
        judge=judge,
        ask_model=ask_model,
        turn_cost=turn_cost,
        parse_error_cost=parse_error_cost,
        config=config,
    )


def _open_judge(judge: str, judge_model: str | None) -> tuple[str, str | None, "AskModel | None"]:
    from producer.validators.judges import AGENT, UNJUDGED, check_judge

    try:
        judge = check_judge(judge)
    except ValueError as error:
        message = f"--judge: {error}"
        raise UsageError(message) from None
    if judge == UNJUDGED:
        message = "--judge: none gives no verdicts; omit it to use the recorded ones"
        raise UsageError(message)
    if judge == AGENT:
        if judge_model is not None:
            message = "--judge-model: the judge `agent` uses no model; omit it"
            raise UsageError(message)
        return judge, None, None
    from producer.validators.model_judge import open_judge

    asked = open_judge(os.environ)
    return judge, asked.find_model(judge, judge_model), asked


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
