"""`cua-train rescore`: another reward or judge for what a training did."""

import json
import logging
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import rich_click as click
from pydantic import JsonValue

from producer.commands.options import examples, given_training_name
from producer.commands.stopping import stop_on_signals
from producer.config.reward import REWARD_NAMES, check_reward_name, checked_sha256
from producer.console import print_table, rounded
from producer.errors import StopRequestedError, UsageError
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.training.rescore import Scorer
    from producer.validators.judges import AskModel

logger = logging.getLogger(__name__)

EPILOG = examples(
    "$ cua-train rescore --training-name first --reward efficiency",
    "$ cua-train rescore --training-name first --reward my_rewards:tidy",
    "$ cua-train rescore --training-name first --judge http://localhost:8000/v1",
)


@click.command(name="rescore", epilog=EPILOG)
@click.option(
    "--training-name", metavar="NAME", required=True, panel="Training", help="What to score again."
)
@click.option(
    "--reward",
    "reward_name",
    default="binary",
    metavar="NAME|MODULE:FUNCTION",
    panel="Scoring",
    help=f"{', '.join(REWARD_NAMES)}, or a function of yours. [default: binary]",
)
@click.option(
    "--judge",
    metavar="agent|URL",
    panel="Scoring",
    help="Who judges again, from what is recorded. [default: the recorded verdicts]",
)
@click.option(
    "--judge-model",
    metavar="NAME",
    panel="Scoring",
    help="Whom the endpoint asks. [default: the only one that it lists]",
)
@click.option(
    "--turn-cost",
    type=click.FloatRange(min=0),
    metavar="FLOAT",
    default=0.0,
    panel="Scoring",
    help="Reward subtracted for each turn. [default: 0]",
)
@click.option(
    "--parse-error-cost",
    type=click.FloatRange(min=0),
    metavar="FLOAT",
    default=0.0,
    panel="Scoring",
    help="Reward subtracted for each action that cannot be parsed. [default: 0]",
)
@click.option("--json", "as_json", is_flag=True, panel="Output", help="Print the result as JSON.")
def command(
    *,
    training_name: str,
    reward_name: str,
    judge: str | None,
    judge_model: str | None,
    turn_cost: float,
    parse_error_cost: float,
    as_json: bool,
) -> int:
    """Score the finished rollouts of a training again, from the log.

    The new scores are events beside the old ones, and rows of the tables `scoring` and `score`.
    Nothing that the training recorded changes.
    """
    name = given_training_name(training_name)
    scorer = _scorer(reward_name, judge, judge_model, turn_cost, parse_error_cost)
    from producer.training.rescore import rescore

    installation = read_installation(os.environ)
    try:
        result = rescore(installation, name, scorer, stop=stop_on_signals())
    except StopRequestedError:
        logger.info("stopped; the scores so far are in the log")
        return 130
    if as_json:
        click.echo(json.dumps(rounded(asdict(result))))
        return 0
    failed = f", {result.failed} could not be scored" if result.failed else ""
    click.echo(f"training {name}: {result.rollouts} rollouts{failed}; scoring {result.scoring_id}")
    print_table(
        ["", "recorded", scorer.reward_name],
        [
            ["mean reward", _number(result.reward_mean_before), _number(result.reward_mean)],
            ["success", _number(result.success_rate_before), _number(result.success_rate)],
        ],
    )
    return 0


def _scorer(
    reward_name: str,
    judge: str | None,
    judge_model: str | None,
    turn_cost: float,
    parse_error_cost: float,
) -> "Scorer":
    """UsageError for what cannot score; UnreachableError for an endpoint that is away."""
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
    from producer.training.load_tasks import open_judge
    from producer.validators.judges import AGENT, UNJUDGED, check_judge

    try:
        judge = check_judge(judge)
    except ValueError as error:
        message = f"--judge: {error}"
        raise UsageError(message) from None
    if judge == UNJUDGED:
        message = "--judge: none judges nothing; leave it out to use the recorded verdicts"
        raise UsageError(message)
    if judge == AGENT:
        if judge_model is not None:
            message = "--judge-model: the agent's own report asks no model"
            raise UsageError(message)
        return judge, None, None
    asked = open_judge(os.environ)
    return judge, asked.find_model(judge, judge_model), asked


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
