"""Which advantage function a text-to-SQL training takes, and that verl's names are verl's."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from producer.algorithms.core_functions import (
    CORE_FUNCTIONS,
    OUTCOME,
    PROCESS,
    CoreAlgorithm,
    call_core_function,
    choose_core_function,
    named_core_function,
)
from producer.algorithms.token_advantages import AdvantagesAndReturns
from tests.oracles import verl_core

WEIGHTED, TOKEN_WISE = "compute_weighted_grpo_advantage", "compute_token_wise_advantage"


def mine(
    token_level_rewards: Tensor, eos_mask: Tensor, index: np.ndarray, epsilon: float = 1e-6
) -> AdvantagesAndReturns:
    """As a user writes it: ones, and the groups' numbers."""
    assert index.dtype == np.int64
    groups = torch.tensor(index)[:, None].expand_as(token_level_rewards).double()
    return torch.ones_like(token_level_rewards) * eos_mask, groups + epsilon


@pytest.mark.parametrize(
    ("algorithm", "has_process_rewards", "name"),
    [
        ("grpo", True, PROCESS),
        ("grpo", False, OUTCOME),
        ("rloo", True, "compute_rloo_outcome_advantage"),
        ("ppo", True, "gae"),
        ("prime", True, "prime"),
    ],
)
def test_without_a_name_a_function_that_fits_is_taken(
    algorithm: CoreAlgorithm, has_process_rewards: bool, name: str
) -> None:
    assert choose_core_function(algorithm, {}, has_process_rewards=has_process_rewards) == name
    assert (name in CORE_FUNCTIONS) == (algorithm not in {"ppo", "prime"})


def test_a_user_s_module_is_searched_in_the_published_order_before_ours_is_taken() -> None:
    module: dict[str, object] = {"compute_grpo_advantage": mine, TOKEN_WISE: mine}
    assert choose_core_function("grpo", module) == "compute_grpo_advantage"
    assert choose_core_function("grpo", {TOKEN_WISE: mine}) == TOKEN_WISE
    assert choose_core_function("grpo", {"own": mine}) == PROCESS
    assert choose_core_function("ppo", {"own": mine}) == "gae"


def test_a_name_means_the_user_s_function_before_ours() -> None:
    assert named_core_function(WEIGHTED, {WEIGHTED: mine}) is mine
    assert named_core_function("own", {"own": mine}) is mine
    assert named_core_function(WEIGHTED, {}) is CORE_FUNCTIONS[WEIGHTED]


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    module = {"own": mine, "text": "no function"}
    with pytest.raises(ValueError, match="no core function 'nope'; use one of own, comp"):
        named_core_function("nope", module)
    with pytest.raises(ValueError, match="no core function 'text'"):
        named_core_function("text", module)


def test_a_function_of_other_arguments_is_refused() -> None:
    def other(data: object, gamma: float) -> None:
        del data, gamma

    with pytest.raises(ValueError, match="other must take token_level_rewards, eos_mask"):
        named_core_function("other", {"other": other})


REWARDS, MASK = torch.tensor([[0.5, 1.0], [0.25, 0.0], [0.1, 0.2]]), torch.ones(3, 2)


def test_a_user_s_function_gets_keywords_and_groups_as_numbers() -> None:
    advantages, returns = call_core_function(mine, REWARDS, MASK, ["b", "a", "b"])
    assert torch.equal(advantages, MASK)
    assert returns[:, 0].tolist() == pytest.approx([0.0, 1.0, 0.0], abs=1e-5)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"must return \(advantages, returns\); found NoneType"),
        (REWARDS, r"found Tensor"),
        ((REWARDS[:2], REWARDS), r"finite advantages of shape \(3, 2\)"),
        ((REWARDS, REWARDS / 0), r"finite returns of shape"),
        ((REWARDS, "x"), r"finite returns of shape"),
        ((REWARDS, REWARDS.double() + 1e300), r"finite returns of shape"),
        ((REWARDS * 1j, REWARDS), r"finite advantages of shape"),
    ],
)
def test_what_a_user_s_function_returns_is_checked(returned: object, message: str) -> None:
    def function(**_: object) -> Any:
        return returned

    with pytest.raises(ValueError, match=message):
        call_core_function(function, REWARDS, MASK, [0, 0, 0])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyError("uid"), "^it raised KeyError: 'uid'$"),
        (ValueError("of mine"), "^it raised ValueError: of mine$"),
        (SystemExit(0), "^it raised SystemExit: 0$"),
    ],
)
def test_what_a_user_s_function_raises_is_said(error: BaseException, message: str) -> None:
    def function(**_: object) -> Any:
        raise error

    with pytest.raises(ValueError, match=message):
        call_core_function(function, REWARDS, MASK, [0, 0, 0])


def test_what_one_of_ours_refuses_is_said_in_its_own_words() -> None:
    with pytest.raises(ValueError, match=r"^grpo_passk needs groups of at least 2 scored"):
        call_core_function(
            CORE_FUNCTIONS["compute_grpo_passk_outcome_advantage"], REWARDS, MASK, [0, 0, 1]
        )


@pytest.mark.parametrize("name", CORE_FUNCTIONS)
@pytest.mark.parametrize("num_tokens", [0, 3])
def test_responses_without_a_token_have_no_advantage(name: str, num_tokens: int) -> None:
    nothing = torch.zeros(2, num_tokens)
    found = call_core_function(CORE_FUNCTIONS[name], nothing, nothing, [0, 0])
    assert all(torch.equal(item, nothing) for item in found)


@pytest.mark.parametrize("name", CORE_FUNCTIONS)
def test_a_hole_in_the_mask_changes_nothing_beside_it(name: str) -> None:
    rewards = torch.tensor([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0], [0.75, 0.0, 0.0], [0.0, 0.0, 2.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])

    def holed(values: Tensor) -> Tensor:
        return torch.cat([values[:, :1], torch.zeros(4, 1), values[:, 1:]], dim=1)

    whole, _ = call_core_function(CORE_FUNCTIONS[name], rewards, mask, [0, 1, 1, 0])
    found, _ = call_core_function(CORE_FUNCTIONS[name], holed(rewards), holed(mask), [0, 1, 1, 0])
    assert whole.any()
    assert torch.allclose(found, holed(whole), rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def verl() -> ModuleType:
    return verl_core.load()


class _Gamma:
    gamma = 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        (OUTCOME, OUTCOME, {}),
        ("compute_grpo_advantage", OUTCOME, {}),
        ("compute_dr_grpo_outcome_advantage", OUTCOME, {"norm_adv_by_std_in_grpo": False}),
        ("compute_rloo_outcome_advantage", "compute_rloo_outcome_advantage", {}),
        ("compute_opo_outcome_advantage", "compute_opo_outcome_advantage", {}),
        ("compute_gpg_outcome_advantage", "compute_gpg_outcome_advantage", {}),
        (
            "compute_grpo_passk_outcome_advantage",
            "compute_grpo_passk_outcome_advantage",
            {"config": {}},
        ),
        (
            "compute_reinforce_plus_plus_outcome_advantage",
            "compute_reinforce_plus_plus_outcome_advantage",
            {"config": _Gamma()},
        ),
        (
            "compute_reinforce_plus_plus_baseline_outcome_advantage",
            "compute_reinforce_plus_plus_baseline_outcome_advantage",
            {},
        ),
    ],
)
def test_a_function_of_verl_s_name_is_verl_s_on_rewards_of_tokens(
    verl: ModuleType, seed: int, name: str, theirs: str, options: dict[str, Any]
) -> None:
    draw = np.random.default_rng(seed)
    index = np.array([0, 1, 2, 0, 1, 1, 2, 0, 2, 2])
    mask = (torch.arange(6) < torch.tensor(draw.integers(1, 7, len(index)))[:, None]).double()
    rewards = torch.tensor(draw.choice([0.0, 0.5, 0.9, 1.0, 1.5], mask.shape)) * mask
    ours, our_returns = call_core_function(CORE_FUNCTIONS[name], rewards, mask, index)
    if "reinforce" not in theirs:
        options = {"index": index, **options}
    elif "baseline" in theirs:
        options = {"index": index}
    found, returns = getattr(verl, theirs)(
        token_level_rewards=rewards, response_mask=mask, **options
    )
    assert torch.allclose(ours, found * mask, rtol=0, atol=1e-6)
    if name == "compute_reinforce_plus_plus_outcome_advantage":
        assert torch.allclose(our_returns, returns, rtol=0, atol=1e-6)
