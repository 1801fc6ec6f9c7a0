"""docs/learning.md and its picture, from what was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tests.learning.picture import LABELS, draw
from tests.learning.results import SeedResult

TEXT = """# Does it learn?

`make learning` writes this page. The next paragraph, the tables and the picture are computed from
its runs at commit {commits}. All other text and figures are written by hand. Differences are
computed before rounding.

{verdict}

Each training is that of `make run` with another seed and a warm-up of its own.

Other settings were measured before, on the same held-out pairs, greedy:

- Prompts with the last 5 to 9 turns instead of all (`--max-recent-turns 5`): in five seeds success
  rose from 0.341 to 0.491 on average, by 0.149 ± 0.022 (over seeds), and in each by more than three
  paired standard errors (528 episodes). The warm-up imitates with all turns in the prompt. In seeds
  0, 1 and 2 the mean with short prompts was 0.345 before and 0.482 after RL, with all turns 0.403
  and 0.496. This suggests that part of the gain with short prompts was adaptation to them.
- The same settings with micro-batches of six rows in the warm-up, which round differently, seed 0:
  0.466 ± 0.027 to 0.682 ± 0.025 (528 episodes). The larger gain may be due to rounding or to
  chance; each was run once.
- 200 steps of imitation, demonstrations of at most 8 turns, 24 steps of RL, the same short prompts.
  Success rose in four of the five seeds, on average by 0.123 ± 0.043 (over seeds). In seed 0 it
  was 0.388 before, 0.574 to 0.576 after RL and after rejection sampling, and 0.044 after RL on
  shuffled rewards. The present warm-up was tuned afterwards, on seed 7.
- 220 steps, at most 12 turns, 20 steps of RL, all turns in the prompt (30 November 2026). Seed 0
  rose from 0.294 ± 0.026 to 0.417 ± 0.027, seed 1 only from 0.218 ± 0.023 to 0.248 ± 0.025.

This is about one small policy of the phone and a family of tasks that was made for the question.
Elsewhere the evidence is weaker: DB Bench shows no gain of greedy success
([measurements](measurements/dbbench.md)). The small text-to-SQL policy gains greedy accuracy, but
by undoing mistakes that were planted in its warm-up ([measurements](measurements/text_to_sql.md));
a real pretrained model gains by rejection sampling ([text-to-SQL](text_to_sql_rl.md)).

## The question

A policy of 1.2 M weights is warmed up by imitation of 30 single goals (`Turn Wi-Fi off.`) and of
40 pairs of goals (`Turn Wi-Fi off, then open Chrome.`). RL trains it on 80 pairs, which include
those 40. It is evaluated on 264 other pairs. Each of their goals occurs in training; none of the
pairs does, in either order. For 212 of the 264, training has a pair with the same two device
queries and other answers: the same two switches, or the same switch with another page or another
app. The other 52 have no such training pair. The scripted oracle solves every task within the
turns that it allows (`tests/producer/agents/android/test_goals.py`).

The reward is 1 if both goals hold at the end, else 0; each response that cannot be parsed costs
0.1. The order in which the goals were reached is not judged. Advantages are rewards less their
group's mean. The loss is the importance-sampling policy gradient, summed over tokens, without
clipping and without a KL penalty. RL trains LoRA of rank 16 for {rl_steps} steps, each with 16
groups of 8 rollouts (`SETTINGS` in `tests/learning/__main__.py`; the warm-up is
`producer/agents/android/policy/recipe.py`).

Unlike the small SQL policies, the policy is not taught mistakes that RL could undo. The warm-up
ends early, so that RL has something to add: {alignment_steps} steps that align image features with
the names of what they show, {grounding_steps} of grounding, {imitation_steps} of behaviour cloning
([glossary](glossary.md)). 30 % of the demonstrated actions are random and masked from the loss.
In seed 7, with short prompts, 350 instead of 200 steps of cloning and longer demonstrations raised
greedy success from 0.324 to 0.597; RL then added 0.181. More imitation may therefore do as well as
RL; the two were not compared at equal compute.

## How it was measured

The 264 pairs are a validation set: settings were tuned on them with seed {tuning_seed}, which is
not in the tables (0.597 to 0.778, with short prompts); there is no separate test set. Each seed has
its own warm-up and one training. Greedy figures and sampled ones are over 264 episodes each, one
for each task. Standard errors are clustered by task, differences are paired by task, intervals are
bootstrapped over tasks. They cover the evaluation alone: how trainings from one warm-up differ was
not measured. The error of the mean is over seeds.

## Greedy success on held-out pairs

{greedy}

## Sampled at temperature 1

Lower entropy can raise sampled success without changing greedy success: the greedy table is the
stricter test. Neither table shows whether RL solves tasks that eight samples of the warmed-up
policy all miss. pass@8 is of the warmed-up policy, before RL, on 32 held-out pairs drawn at random,
8 episodes each; its standard error is up to 0.09. It cannot be compared with the other columns,
which cover all 264 pairs.

{sampled}

## Controls

Same warmed-up policy, tasks and batch sizes. The settings were chosen for RL, not for the controls.
Shuffled rewards: the rewards of each step, permuted over its rollouts. Rejection sampling:
imitation of the policy's own successful rollouts ([controls](controls.md)).

{controls}

## By step

Each step samples 16 of the 80 training pairs, so its success also depends on which.

![Sampled success of the training rollouts by step, a line for each run](pictures/learning.svg)

## A pretrained model, text-to-SQL

`cua-train sql demo --seed SEED`: SmolLM2-135M-Instruct (a third party's 4-bit copy) after SFT on
128 gold queries, and after one round of rejection sampling on questions whose gold queries only
judge its answers. Greedy execution accuracy on held-out databases with other schemas. The control
is trained on equally many of the sampled answers, drawn at random, right or wrong. Errors are
clustered by database, gains paired. How it works:
[text-to-SQL](text_to_sql_rl.md#the-demonstration).

{pretrained}
"""


COLUMNS = ("before", "after", "gain", "95 % interval", "gain / error")


def write_page(
    page: Path,
    picture: Path,
    results: Sequence[SeedResult],
    missing: Sequence[int],
    facts: Mapping[str, str],
) -> None:
    """Write both files.

    `missing`: seeds that were not measured. `facts`: of the runs' settings, as TEXT names them.
    """
    sampled = [
        [str(result.seed), *_cells(result.before_after["rl"], 1.0), f"{result.pass_at_8:.3f}"]
        for result in results
    ]
    greedy = [[str(result.seed), *_cells(result.before_after["rl"], 0.0)] for result in results]
    text = TEXT.format(
        **facts,
        verdict=_verdict(results, missing),
        greedy=_table(["seed", *COLUMNS], [*greedy, _mean_row(results)]),
        sampled=_table(["seed", *COLUMNS, "pass@8"], sampled),
        controls=_controls(results),
    )
    page.write_text(text, encoding="utf-8")
    curves = [
        (kind, result.seed, curve) for result in results for kind, curve in result.curves.items()
    ]
    picture.write_text(draw(curves), encoding="utf-8")


def _controls(results: Sequence[SeedResult]) -> str:
    """Of the seeds with controls: each training, then each control compared with RL."""
    controlled = [result for result in results if result.control_minus_rl]
    if not controlled:
        return (
            "Not measured in these runs; seed 0 of `make run` has controls ([demo"
            " policy](measurements/demo-policy.md#rl))."
        )
    trainings = [
        [str(result.seed), LABELS[kind], *_cells(rows, 0.0)]
        for result in controlled
        for kind, rows in result.before_after.items()
    ]
    compared = [
        [str(result.seed), LABELS[kind], *_cells(rows, 0.0)]
        for result in controlled
        for kind, rows in result.control_minus_rl.items()
    ]
    columns = ["RL", "control's", "difference", "95 % interval", "difference / error"]
    return "\n\n".join(
        (
            _table(["seed", "training", *COLUMNS], trainings),
            "Greedy success after training, control minus RL:",
            _table(["seed", "control", *columns], compared),
        )
    )


MIN_STANDARD_ERRORS = 3
"""Of the paired gain, above which a seed counts as raised."""
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Number of seeds -> two-sided 95 % quantile of Student's t for their mean."""


def _verdict(results: Sequence[SeedResult], missing: Sequence[int]) -> str:
    failed = [str(result.seed) for result in results if not _is_raised(result)]
    gain, error = _mean_gain(results)
    reach = T_95[len(results)] * error
    where = "" if not failed else f" (not in seed {', '.join(failed)})"
    return (
        f"In {len(results) - len(failed)} of {len(results)} seeds{where} RL raises greedy success"
        f" on held-out pairs of goals by more than {MIN_STANDARD_ERRORS} paired standard errors."
        f" The mean gain over {len(results)} seeds is {gain:+.3f} ± {error:.3f}; its 95 % interval"
        f" by Student's t is {gain - reach:+.3f} to {gain + reach:+.3f}."
        f"{_rejection_verdict(results)}{_missing_verdict(missing)}"
    )


def _missing_verdict(missing: Sequence[int]) -> str:
    if not missing:
        return ""
    return f" Seeds not measured yet: {', '.join(map(str, missing))}."


def _is_raised(result: SeedResult) -> bool:
    difference = _at(result.before_after["rl"], 0.0)[1]["difference"]
    return bool(difference["gain"] > MIN_STANDARD_ERRORS * difference["standard_error"])


def _rejection_verdict(results: Sequence[SeedResult]) -> str:
    """How RL compares with rejection sampling; empty without such a control."""
    rows = [
        _at(result.control_minus_rl["rejection"], 0.0)
        for result in results
        if "rejection" in result.control_minus_rl
    ]
    if not rows:
        return ""
    differences = [pair[1]["difference"] for pair in rows]
    return " Rejection sampling minus RL, greedy, where both were run: " + (
        ", ".join(f"{one['gain']:+.3f} ± {one['standard_error']:.3f}" for one in differences) + "."
    )


def _mean_gain(results: Sequence[SeedResult]) -> tuple[float, float]:
    """Over seeds, with its standard error."""
    gains = [_at(result.before_after["rl"], 0.0)[1]["difference"]["gain"] for result in results]
    return mean(gains), stdev(gains) / len(gains) ** 0.5


def _mean_row(results: Sequence[SeedResult]) -> list[str]:
    rows = [_at(result.before_after["rl"], 0.0) for result in results]
    before, after = (mean(pair[place]["success"] for pair in rows) for place in (0, 1))
    gain, error = _mean_gain(results)
    shown = f"{gain:+.3f} ± {error:.3f} over seeds"
    return ["mean", f"{before:.3f}", f"{after:.3f}", shown, "", ""]


def _at(rows: Sequence[dict[str, Any]], temperature: float) -> list[dict[str, Any]]:
    return [row for row in rows if row["temperature"] == temperature]


def _cells(rows: Sequence[dict[str, Any]], temperature: float) -> list[str]:
    """Both successes, their difference, its interval, and how many errors it is."""
    first, second = _at(rows, temperature)
    difference = second["difference"]
    gain, error = difference["gain"], difference["standard_error"]
    low, high = difference["interval"]
    return [
        *(f"{row['success']:.3f} ± {row['standard_error']:.3f}" for row in (first, second)),
        f"{gain:+.3f} ± {error:.3f}",
        f"{low:+.3f} to {high:+.3f}",
        f"{gain / error:.1f}" if error else "-",
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
