"""The gates of the training bench, on a small policy."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.bench.train import measure, table
from tests.bench.train_case import Case, draw_step, write_policy
from tests.bench.train_gates import Agreement, compare
from tests.bench.train_ours import OurTrainer
from tests.bench.train_peer import PeerTrainer
from tests.support.small_size import SIZE

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
CASE = Case(num_prompts=2, group_size=2, num_tokens=4, lora_rank=4, lora_alpha=8.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("bench") / "policy"
    write_policy(folder, SIZE)
    return folder


def test_trl_computes_the_same_and_a_repetition_of_both_is_timed(folder: Path) -> None:
    measured = measure(folder, CASE, num_repetitions=1)
    assert measured.agreement.problems() == []
    # 2 x 2 sequences, each of 60 tokens of a screen, and at least 4 of the answer.
    assert measured.sequence_tokens > 4 * 64
    assert [spent.total_s > 0 for spent in (*measured.trl, *measured.ours)] == [True, True]
    assert table(measured).splitlines()[-1].startswith("total")


def test_trl_computes_the_same_of_dialogues_with_a_screen_for_each_answer(folder: Path) -> None:
    case = replace(CASE, num_turns=3)
    groups = draw_step(case, 0)
    ours = OurTrainer(folder, case)
    peer = PeerTrainer(folder, ours.network, case, [groups])
    assert compare(ours, peer, groups).problems() == []
    (spent,) = peer.train(lambda _: None)
    assert spent.generation_s > 0


def test_other_weights_are_found_before_anything_is_timed(folder: Path) -> None:
    groups = draw_step(CASE, 0)
    ours = OurTrainer(folder, CASE)
    peer = PeerTrainer(folder, ours.network, CASE, [groups])
    with torch.no_grad():
        next(iter(ours.network.trainable())).mul_(2.0)
    problems = compare(ours, peer, groups).problems()
    assert [problem.split(" differ from TRL's by ")[0] for problem in problems] == [
        "log-probs recorded by our sampler",
        "log-probs of our update",
        "gradients, relative to their norm,",
    ]


def test_a_difference_that_is_no_number_is_a_problem_too() -> None:
    nan = float("nan")
    assert len(Agreement(nan, nan, nan, (), ()).problems()) == 3
    assert Agreement(1e-6, 1e-6, 1e-5, (), ()).problems() == []
    assert Agreement(0.0, 0.0, 0.0, (3,), ("lora_A",)).problems() == [
        "the prompts of rollouts [3] have other tokens in TRL",
        "only one of the two has gradients of lora_A",
    ]
