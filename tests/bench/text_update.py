"""The time of one update on one dialogue: `python -m tests.bench.text_update`.

A text-only policy of 2 M parameters with random weights and LoRA, updated after each session on
its 300 completion tokens, as REINFORCE per session does. Prints CPU milliseconds per update, for
each kind of advantage and number type, and with --profile where the time goes.
"""

import cProfile
import pstats
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import torch

from producer.algorithms.settings import UpdateSettings
from producer.codecs.compact import CompactCodec
from producer.policy.learner import RolloutOutcome, Trajectory
from producer.policy.policy import SampleRequest
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.placement import Placement
from producer.task import Task
from tests.support.checkpoints import change_json, hub_weights, write_checkpoint, write_shards
from tests.support.turns import trained_turn
from tests.support.update_settings import NO_OUTCOME

NUM_TOKENS = 300
NUM_UPDATES = 30
WARM_UP = 5
SIZE = {
    "hidden_size": 160,
    "intermediate_size": 416,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 2048,
}
SETTINGS = UpdateSettings(loss_fn="ppo", learning_rate=1e-5, seed=0)
TASK = Task("task", "task", "How many orders are there?", None, None, 1, None, None)


def open_policy(folder: Path, model_type: str, dtype: torch.dtype) -> InProcessPolicy:
    """A policy of `SIZE` with a fresh adapter."""
    if not folder.exists():
        write_checkpoint(folder, model_type)
        change_json(folder / "config.json", **SIZE, head_dim=40)
        write_shards(folder, hub_weights(folder, model_type))
    placement = Placement(torch.device("cpu"), dtype)
    network = load_network(str(folder), 16, 0, None, placement)
    return InProcessPolicy(network, CompactCodec(), "Answer with one query.")


def session(policy: InProcessPolicy) -> Trajectory:
    """One turn of `NUM_TOKENS` sampled tokens, or fewer where the policy ends it."""
    tokens = None
    for seed in range(1000):
        request = SampleRequest(UUID(int=seed), TASK, (), None, 1.0, NUM_TOKENS, seed, text="x")
        tokens = policy.sample([request])[0].tokens
        policy.forget(request.episode)
        if tokens is not None and len(tokens.completion_tokens) == NUM_TOKENS:
            break
    assert tokens is not None  # a network samples tokens
    return Trajectory(TASK, (trained_turn(None, tokens),), 1.0, NO_OUTCOME)


def kinds(one: Trajectory) -> dict[str, Trajectory]:
    """The session under each kind of advantage."""
    return {
        "advantage": one,
        "token_advantages": replace(one, advantage=((0.5,) * one.num_tokens,)),
        "gae": replace(one, outcome=RolloutOutcome(0, 1.0, is_right=True)),
    }


def milliseconds(policy: InProcessPolicy, one: Trajectory) -> float:
    """CPU time of one update, the fastest half's mean."""
    taken = []
    for _ in range(NUM_UPDATES):
        began = time.process_time()
        policy.update([one], SETTINGS)
        taken.append(time.process_time() - began)
    fastest = sorted(taken)[: NUM_UPDATES // 2]
    return 1000 * sum(fastest) / len(fastest)


def profile(policy: InProcessPolicy, one: Trajectory) -> None:
    """Print the functions that take most of the time."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(NUM_UPDATES):
        policy.update([one], SETTINGS)
    profiler.disable()
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(14)


def main() -> int:
    """Measure."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        for model_type in ("qwen2", "qwen3"):
            for dtype in (torch.float32, torch.bfloat16):
                policy = open_policy(Path(root) / model_type, model_type, dtype)
                weights: Any = policy._network.base.parameters()
                num_weights = sum(weight.numel() for weight in weights)
                one = session(policy)
                for name, given in kinds(one).items():
                    for _ in range(WARM_UP):
                        policy.update([given], SETTINGS)
                    took = milliseconds(policy, given)
                    sys.stdout.write(
                        f"{model_type} {num_weights / 1e6:.2f} M {dtype!s:15}"
                        f" {one.num_tokens} tokens {name:17} {took:6.1f} CPU-ms\n"
                    )
                if "--profile" in sys.argv:
                    profile(policy, one)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
