"""What an evaluation measured, on pages: its rate with its error, its tasks, its name, its gain."""

from collections.abc import Mapping

from consumers.monitor import layout
from consumers.monitor.html import Html, Node, tag
from consumers.monitor.plain_text import name
from consumers.queries import Gain
from consumers.tables import Baseline, Eval
from schemas.clustered_errors import Difference
from schemas.evaluation_text import significance_text, tasks_text, temperature_text


def name_of(evaluation: Baseline | Eval) -> str:
    """`Baseline`, `Evaluation after step 10, sampled at temperature 1`, `Evaluation by hand`."""
    if isinstance(evaluation, Baseline):
        point = "Baseline"
    elif evaluation.kind == "manual":
        point = "Evaluation by hand"
    else:
        point = f"Evaluation after step {evaluation.step}"
    sampled = f", {temperature_text(evaluation.temperature)}" if evaluation.temperature else ""
    return f"{point}{sampled}"


def standard_error(evaluation: Baseline | Eval) -> float:
    """The success rate's standard error as recorded; 0 if it was not, or is no share."""
    metrics = evaluation.metrics_json
    value: object = evaluation.standard_error
    if value is None and isinstance(metrics, Mapping):
        value = metrics.get("standard_error")
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else 0.0


def success(evaluation: Baseline | Eval) -> Node:
    """`78.4 % ± 2.1 %`."""
    error = standard_error(evaluation)
    return [
        tag("strong", layout.share(evaluation.success_rate)),
        f" ± {error * 100:.1f} %" if error else None,
    ]


def tasks(evaluation: Baseline | Eval) -> Html:
    """`18 training tasks on unseen seeds (demo_training)`."""
    text = tasks_text(evaluation.num_tasks, evaluation.split)
    if evaluation.num_tasks is None and evaluation.split is None:
        text = "not recorded"
    elif evaluation.training_id is None:
        text += ", no training recorded"
    source: Node = [" (", name(evaluation.task_source), ")"] if evaluation.task_source else None
    return tag("span", text, source, class_="text")


def gain_text(gain: Gain) -> Node:
    """`greedy: 78.4 % → 81.5 %, +3.1 % ± 1.6 % paired by task, within two standard errors`."""
    if gain.before is None or gain.after is None:
        return None
    difference = gain.difference
    change: Node = ", not comparable task by task"
    if difference is not None:
        change = [
            ", ",
            tag("span", signed(difference.gain), class_=colour(difference)),
            f" ± {layout.share(difference.standard_error)} paired by task,"
            f" {significance_text(difference)}",
        ]
    return tag(
        "p",
        f"{temperature_text(gain.after.temperature)}: {layout.share(gain.before.rate)}"
        f" → {layout.share(gain.after.rate)}",
        change,
    )


def colour(difference: Difference | None) -> str | None:
    """None for what may be chance."""
    if difference is None or not difference.is_significant:
        return None
    return "good" if difference.gain > 0 else "bad"


def signed(share: float) -> str:
    """0.031 -> +3.1 %."""
    return f"{share * 100:+.1f} %"
