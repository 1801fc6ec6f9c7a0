"""What Tinker's SDK computes on the same weights is what this process computes."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
import torch

from producer.algorithms.names import LossName
from producer.codecs.compact import CompactCodec
from producer.policy.learner import Learner, Trajectory
from producer.policy.policy import Completion, Turn
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from tests.producer.policy.conftest import SETTINGS, make_request, make_screen, trajectory
from tests.producer.tinker.opened import RANK, RECENT_TURNS, SEED, through_sdk
from tests.support.turns import past_turn
from tests.support.update_settings import changed

pytestmark = [
    pytest.mark.usefixtures("sdk_connections"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

NUM_TURNS = 4
EPISODES = (1, 2, 3, 4)
NEAR = 1e-5


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def in_process(folder: Path) -> InProcessPolicy:
    network = load_network(str(folder), RANK, SEED)
    return InProcessPolicy(network, CompactCodec(), max_recent_turns=RECENT_TURNS)


def compare(one: Completion, other: Completion) -> None:
    assert one.tokens is not None, one.failure
    assert other.tokens is not None
    assert replace(one.tokens, completion_logprobs=()) == replace(
        other.tokens, completion_logprobs=()
    )
    assert one.tokens.completion_logprobs == pytest.approx(
        other.tokens.completion_logprobs, abs=NEAR
    )
    assert (one.text, one.actions) == (other.text, other.actions)


def play(tinker: Learner, local: Learner) -> list[Trajectory]:
    """Episodes that both sample, turn by turn; one is only measured."""
    histories: dict[int, list[Turn]] = {episode: [] for episode in EPISODES}
    for turn in range(NUM_TURNS):
        requests = [
            make_request(
                episode,
                make_screen(100 * episode + turn),
                tuple(history),
                seed=1000 * episode + turn,
            )
            for episode, history in histories.items()
        ]
        for request, one, other in zip(
            requests, tinker.sample(requests), local.sample(requests), strict=True
        ):
            compare(one, other)
            histories[request.episode.int].append(
                past_turn(request.screenshot, other.text, other.tokens)
            )
    for episode in EPISODES:
        local.forget(UUID(int=episode))
    played = [
        trajectory(turns, advantage)
        for turns, advantage in zip(histories.values(), (1.0, -1.0, 0.5, -0.5), strict=True)
    ]
    return [*played[:-1], replace(played[-1], is_trained=False)]


def update(policy: Learner, batch: list[Trajectory], **settings: object) -> dict[str, float]:
    result = policy.update(batch, changed(SETTINGS, num_substeps=2, ppo_epochs=2, **settings))
    names = ("loss", "loss_per_token", "kl_sample_train_v1", "kl_sample_train_v2", "entropy")
    return {
        **{name: getattr(result, name) for name in (*names, "gradient_norm")},
        "num_tokens": result.num_tokens,
        "num_measured_tokens": result.num_measured_tokens,
    }


@pytest.mark.parametrize("loss_fn", ["importance_sampling", "ppo", "cispo"])
def test_samples_losses_and_log_probs_are_those_of_this_process(
    small_policy: Path, stand_in: str, loss_fn: LossName
) -> None:
    tinker, local = through_sdk(small_policy, stand_in), in_process(small_policy)
    batch = play(tinker, local)
    assert any(turn.tokens.prompt_extends is None for one in batch for turn in one.turns[1:])
    assert any(turn.tokens.prompt_extends is not None for one in batch for turn in one.turns)
    for _ in range(2):
        found = update(tinker, batch, loss_fn=loss_fn, learning_rate=1e-3)
        # The passes of the second update are of other weights than the samples.
        assert found == pytest.approx(
            update(local, batch, loss_fn=loss_fn, learning_rate=1e-3), rel=NEAR, abs=NEAR
        )
    assert tinker.version == 2
    play(tinker, local)


def test_bounds_weight_decay_and_clipping_reach_the_service(
    small_policy: Path, stand_in: str
) -> None:
    tinker, local = through_sdk(small_policy, stand_in), in_process(small_policy)
    batch = play(tinker, local)
    settings = {
        "loss_fn": "cispo",
        "clip_ratio_low": 0.01,
        "clip_ratio_high": 0.02,
        "learning_rate": 1e-2,
        "weight_decay": 0.1,
        "max_gradient_norm": 0.5,
    }
    for _ in range(2):
        assert update(tinker, batch, **settings) == pytest.approx(
            update(local, batch, **settings), rel=NEAR, abs=NEAR
        )


def test_a_state_has_adapter_optimiser_and_version_for_another_process(
    small_policy: Path, stand_in: str, tmp_path: Path
) -> None:
    tinker, local = through_sdk(small_policy, stand_in), in_process(small_policy)
    batch = play(tinker, local)
    update(tinker, batch), update(local, batch)
    tinker.save_state(tmp_path)
    restored = through_sdk(small_policy, stand_in)
    restored.load_state(tmp_path)
    assert restored.version == 1
    assert update(restored, batch) == pytest.approx(update(local, batch), rel=NEAR, abs=NEAR)
    play(restored, local)


def test_a_batch_without_tokens_changes_nothing_but_the_version(
    small_policy: Path, stand_in: str
) -> None:
    tinker = through_sdk(small_policy, stand_in)
    result = tinker.update([], SETTINGS)
    assert (tinker.version, result.loss, result.num_tokens, result.gradient_norm) == (1, 0, 0, 0)
    assert tinker.sample([]) == []


def test_it_needs_no_torch(small_policy: Path, stand_in: str, tmp_path: Path) -> None:
    module = "tests.producer.tinker.without_torch"
    command = [sys.executable, "-m", module, stand_in, str(small_policy), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    num_tokens, path = done.stdout.split()
    assert 1 <= int(num_tokens) <= 4
    assert path.endswith("/weights/state-000001")
