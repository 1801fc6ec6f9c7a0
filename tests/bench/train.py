"""What a training step costs in TRL's GRPOTrainer and in our trainer: `make bench-train`.

Measured: CPU-seconds of one process on one core, for sampling 8 completions of each of 4 prompts
about the simulated phone, and for one optimiser step on them. Two cases: one screenshot and one
answer; six screenshots, each followed by an answer. Both trainers have the same base weights,
LoRA, prompts, screens, number of tokens and GRPO loss (advantages by group, not divided by their
deviation, no KL). Their steps alternate in one process, on the same prompts. Every step has new
screens, and no two dialogues share a screen after the first.

Where the difference is from: ours encodes a screen once, prefills equal prompts once, keeps the KV
cache between turns, and shares prefixes in the update; TRL does none of these. TRL's update also
computes entropies, and includes its data loader and the rest of its loop; its "generation"
includes preparing the update's inputs. TRL is handed decoded screens, our trainer decodes PNGs.

Before that they are compared on the same sequences, which our trainer samples: first prompts,
log-probs and the adapter's gradient must agree, or the command fails (train_gates.py). Of TRL it
is the pass that is not compiled.

Not measured: larger policies, accelerators, vLLM, environments, the event log, checkpoints. This
policy has 1.2 M random weights, so the figures say nothing about large ones. End tokens are
suppressed in both, so that all answers have 24 tokens.

Six turns in TRL: its loop of tools takes images. Every answer is read as a call of a tool that
returns the next screen (train_peer_setup.py). A `rollout_func` could keep the cache, but brings a
sampler of its own and no images in answers.

Settings of TRL that were tried; TRL / ours in all, before ours shared prefixes; differences below
0.1 are noise:
- batches of the update, single turn: 32 rows 1.44, 2 x 16 1.42, 4 x 8 1.40: no difference;
  six turns: 32 2.10, 2 x 16 2.17, 4 x 8 1.96, 8 x 4 2.00: 4 x 8 chosen
- torch_compile, single turn: 1.25, once it has compiled for 50 CPU-seconds, so there is a table
  with it; six turns: 1.97
- cache_implementation static, attention eager, pad_to_multiple_of 16, optim adamw_torch: no
  difference; dataloader_num_workers 1: slower
- steps_per_generation and num_iterations above 1 are other algorithms; continuous batching refuses
  policies that see images
"""

import argparse
import json
import logging
import os
import shutil
import statistics
import sys
import tempfile
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
import transformers

from tests.bench.train_case import Case, draw_step, write_policy
from tests.bench.train_gates import Agreement, compare
from tests.bench.train_ours import OurTrainer, Spent
from tests.bench.train_peer import PeerTrainer

WARM_UP_STEPS = 3
"""With torch_compile the first compiles, and the second again for other lengths."""
COMPILED: Final[dict[str, Any]] = {"torch_compile": True}
STAGES = ("generation_s", "update_s", "total_s")


class Measured(NamedTuple):
    """One case."""

    case: Case
    settings: dict[str, Any]
    """Of GRPOConfig, in place of the chosen ones."""
    agreement: Agreement
    ours: list[Spent]
    """Of each repetition; empty: the two do not agree."""
    trl: list[Spent]
    sequence_tokens: int
    """Of all rollouts of a step: prompts, screens and answers."""


def measure(folder: Path, case: Case, num_repetitions: int, **settings: Any) -> Measured:
    """Compare and time the policy in `folder`; `settings` of GRPOConfig replace the chosen ones."""
    steps = [draw_step(case, number) for number in range(WARM_UP_STEPS + num_repetitions)]
    ours = OurTrainer(folder, case)
    peer = PeerTrainer(folder, ours.network, case, steps, **settings)
    agreement = compare(ours, peer, steps[0])
    num_tokens = sum(
        len(turn.tokens.prompt_tokens) + len(turn.tokens.completion_tokens)
        for one in ours.rollouts(steps[-1], 0)
        for turn in one.turns
    )
    if agreement.problems():
        return Measured(case, settings, agreement, [], [], num_tokens)
    own: list[Spent] = []
    theirs = peer.train(lambda number: own.append(ours.step(steps[number], number)))
    spent = (own[WARM_UP_STEPS:], theirs[WARM_UP_STEPS:])
    return Measured(case, settings, agreement, *spent, num_tokens)


def table(measured: Measured) -> str:
    """Medians with the least and the most of the repetitions."""
    case, agreement = measured.case, measured.agreement
    given = "".join(f", {name} {value}" for name, value in measured.settings.items())
    lines = [
        f"{case.num_prompts} prompts x {case.group_size} completions, {case.num_turns} turn(s) of"
        f" {case.num_tokens} tokens: {measured.sequence_tokens:,} tokens a step,"
        f" {case.num_rollouts * case.num_turns * case.num_tokens:,} of them sampled{given}",
        f"gates: log-probs within {agreement.update_gap:.1e} (update) and"
        f" {agreement.sampled_gap:.1e} (sampler), gradient within {agreement.gradient_gap:.1e}",
        f"{'CPU-seconds, median (least-most)':34} {'TRL':>22} {'ours':>22} {'TRL / ours':>20}",
    ]
    for stage in STAGES:
        theirs, own = values(measured.trl, stage), values(measured.ours, stage)
        ratios = [one / other for one, other in zip(theirs, own, strict=True)]
        lines.append(
            f"{stage.removesuffix('_s'):34} {_spread(theirs, 3):>22} {_spread(own, 3):>22}"
            f" {_spread(ratios, 2):>20}"
        )
    return "\n".join(lines)


def values(spent: Sequence[Spent], stage: str) -> list[float]:
    """Of each repetition, CPU-seconds of this stage."""
    return [float(getattr(one, stage)) for one in spent]


def _spread(numbers: list[float], digits: int) -> str:
    middle, least, most = statistics.median(numbers), min(numbers), max(numbers)
    return f"{middle:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"


def _report(measured: Measured) -> dict[str, object]:
    return {
        "turns": measured.case.num_turns,
        "trl_settings": measured.settings,
        "tokens": measured.sequence_tokens,
        "agreement": measured.agreement._asdict(),
        "trl": {stage: values(measured.trl, stage) for stage in STAGES},
        "ours": {stage: values(measured.ours, stage) for stage in STAGES},
    }


def use_one_core() -> None:
    """This process computes on one core and one thread from now on."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)


def variants(case: Case, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings of TRL, one after the other: those given, or the chosen ones.

    Of single turns with and without compiling.
    """
    if given or case.num_turns > 1:
        return [given]
    if shutil.which("g++") is None:
        sys.stderr.write("(no measurement with torch_compile: it needs g++)\n")
        return [{}]
    return [{}, COMPILED]


def positive(text: str) -> int:
    """For argparse, which reports the ValueError."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def main() -> int:
    """Print a table for each case; --json: a list of objects."""
    parser = argparse.ArgumentParser(
        prog="make bench-train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repetitions", type=positive, default=5)
    parser.add_argument(
        "--turns",
        type=positive,
        nargs="+",
        default=[1, 6],
        help="cases, by turns of each completion",
    )
    parser.add_argument(
        "--trl",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="a setting of GRPOConfig in place of the chosen one",
    )
    parser.add_argument("--json", action="store_true", dest="as_json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    use_one_core()
    if not options.as_json:
        packages = [f"{name} {version(name)}" for name in ("torch", "transformers", "trl")]
        sys.stdout.write(f"{', '.join(packages)}\n\n")
    with tempfile.TemporaryDirectory(prefix="cua-bench-train-") as root:
        folder = Path(root) / "policy"
        write_policy(folder)
        reports: list[dict[str, object]] = []
        for num_turns in options.turns:
            case = Case(num_turns=num_turns)
            for settings in variants(case, dict(options.trl)):
                measured = measure(folder, case, options.repetitions, **settings)
                if problems := measured.agreement.problems():
                    sys.stderr.write("\n".join([f"{num_turns} turns:", *problems]) + "\n")
                    return 1
                if not options.as_json:
                    sys.stdout.write(table(measured) + "\n\n")
                    sys.stdout.flush()
                reports.append(_report(measured))
    if options.as_json:
        sys.stdout.write(json.dumps(reports) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
