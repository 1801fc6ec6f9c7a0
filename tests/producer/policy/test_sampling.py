"""What a completion depends on, and what is recorded of it."""

import math
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
import torch

from producer.policy.policy import Completion, SampledTokens, Turn
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.sampling import sample_tokens
from tests.support.rounding import EPS, rounding_of_forward
from tests.support.turns import past_turn

from .conftest import make_request, make_screen

SOFTMAX_ROUNDING = 16 * EPS
"""Of exp(log_softmax(log p)) for a few tokens: two logarithms and two exponentials, each within 2
units in the last place of numbers below 2, and a sum of three."""


def recorded(completion: Completion) -> SampledTokens:
    assert completion.tokens is not None
    return completion.tokens


def assert_equal_up_to_rounding(
    policy: InProcessPolicy, some: SampledTokens, others: SampledTokens
) -> None:
    bound = rounding_of_forward(
        policy._network.base, max(abs(logprob) for logprob in others.completion_logprobs)
    )
    assert some.completion_logprobs == pytest.approx(others.completion_logprobs, rel=0, abs=bound)


def test_a_draw_is_the_first_token_whose_cumulative_probability_exceeds_the_uniform_number() -> (
    None
):
    logits_bv = torch.log(torch.tensor([[0.2, 0.5, 0.3]])).expand(4, -1)
    uniforms_b = torch.tensor([0.0, 0.19, 0.2001, 0.71], dtype=torch.float64)
    tokens, logprobs = sample_tokens(logits_bv, torch.ones(4), uniforms_b)
    assert tokens.tolist() == [0, 0, 1, 2]
    assert logprobs.exp().tolist() == pytest.approx([0.2, 0.2, 0.5, 0.3], rel=SOFTMAX_ROUNDING)


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits_bv = torch.tensor([[-torch.inf, 0.0, -torch.inf]]).expand(2, -1)
    assert sample_tokens(
        logits_bv, torch.ones(2), torch.tensor([0.0, 1 - 1e-16], dtype=torch.float64)
    )[0].tolist() == [1, 1]


def test_temperature_divides_the_logits_and_zero_takes_the_likeliest_token_untempered() -> None:
    logits_bv = torch.tensor([[0.0, 2.0]]).expand(2, -1)
    tokens, logprobs = sample_tokens(
        logits_bv, torch.tensor([2.0, 0.0]), torch.tensor([0.1, 0.1], dtype=torch.float64)
    )
    assert tokens.tolist() == [0, 1]
    # The first of a softmax over 0 and 1, the second of one over 0 and 2.
    expected = [1 / (1 + math.e), math.e**2 / (1 + math.e**2)]
    assert logprobs.exp().tolist() == pytest.approx(expected, rel=SOFTMAX_ROUNDING)


def test_a_completion_depends_on_its_request_alone_whatever_else_is_in_the_batch(
    policy: InProcessPolicy,
) -> None:
    requests = [
        make_request(1, make_screen(1)),
        make_request(2, make_screen(2), description="Open Settings now"),
        make_request(3, make_screen(1)),
    ]
    together = [recorded(completion) for completion in policy.sample(requests)]
    for request, expected in zip(requests, together, strict=True):
        policy.forget(request.episode)
        alone = recorded(policy.sample([request])[0])
        assert alone.completion_tokens == expected.completion_tokens
        assert_equal_up_to_rounding(policy, alone, expected)


def test_another_seed_draws_another_completion(policy: InProcessPolicy) -> None:
    screen = make_screen(1)
    completions = {
        recorded(completion).completion_tokens
        for completion in policy.sample([make_request(n, screen, seed=n) for n in range(8)])
    }
    assert len(completions) > 1


def test_greedy_ignores_the_seed(policy: InProcessPolicy) -> None:
    screen = make_screen(1)
    requests = [make_request(n, screen, seed=n, temperature=0.0) for n in range(4)]
    assert (
        len({recorded(completion).completion_tokens for completion in policy.sample(requests)}) == 1
    )


def test_a_later_turn_records_only_its_own_prompt_tokens(
    policy: InProcessPolicy, play: Callable[[int, int], list[Turn]]
) -> None:
    turns = play(1, 3)
    tokens = [turn.tokens for turn in turns if turn.tokens is not None]
    assert [turn.prompt_extends for turn in tokens] == [None, 1, 2]
    assert [turn.num_prompt_images for turn in tokens] == [1, 2, 3]
    # 90 x 160 pixels become 96 x 160: 6 x 10 patches of 16. The rest is `turn on wi-fi` and 7 marks
    # and roles.
    image = policy._network.image_token
    assert tokens[0].prompt_tokens.count(image) == 60
    assert len(tokens[0].prompt_tokens) == 60 + 3 + 7
    assert tokens[1].prompt_tokens.count(image) == 60


def test_max_tokens_bounds_each_request_by_itself(policy: InProcessPolicy) -> None:
    requests = [
        make_request(1, make_screen(1), max_tokens=2),
        make_request(2, make_screen(2), max_tokens=5),
    ]
    for request, completion in zip(requests, policy.sample(requests), strict=True):
        tokens = recorded(completion)
        assert (
            len(tokens.completion_tokens) == len(tokens.completion_logprobs) <= request.max_tokens
        )
        ended = tokens.completion_tokens[-1] in policy._network.end_tokens
        assert tokens.stop_reason == ("stop" if ended else "length")


def test_a_forgotten_episode_continues_from_its_records_as_if_it_had_been_kept(
    policy: InProcessPolicy,
) -> None:
    first = make_request(1, make_screen(1))
    completion = policy.sample([first])[0]
    history = (past_turn(first.screenshot, completion.text, completion.tokens),)
    second = make_request(1, make_screen(2), history, seed=5)
    kept = recorded(policy.sample([second])[0])
    policy.forget(UUID(int=1))
    rebuilt = recorded(policy.sample([second])[0])
    assert rebuilt.prompt_tokens == kept.prompt_tokens
    assert rebuilt.completion_tokens == kept.completion_tokens
    assert_equal_up_to_rounding(policy, rebuilt, kept)


def test_episodes_of_different_length_share_a_batch(
    policy: InProcessPolicy, play: Callable[[int, int], list[Turn]]
) -> None:
    long, short = tuple(play(1, 3)), tuple(play(2, 1))
    requests = [
        make_request(1, make_screen(8), long),
        make_request(2, make_screen(9), short),
        make_request(3, make_screen(10)),
    ]
    together = [recorded(completion) for completion in policy.sample(requests)]
    for request, expected in zip(requests, together, strict=True):
        policy.forget(request.episode)
        assert recorded(policy.sample([request])[0]).completion_tokens == expected.completion_tokens


def test_a_turn_without_tokens_cannot_be_continued(policy: InProcessPolicy) -> None:
    history = (past_turn(make_screen(1), "click(1,2)", None),)
    with pytest.raises(ValueError, match="another policy took its last turn"):
        policy.sample([make_request(1, make_screen(2), history)])


def test_no_requests_give_no_completions(policy: InProcessPolicy) -> None:
    assert policy.sample([]) == []


def test_a_new_first_turn_of_a_known_episode_starts_it_over(policy: InProcessPolicy) -> None:
    request = make_request(1, make_screen(1))
    assert (
        recorded(policy.sample([request])[0]).completion_tokens
        == recorded(policy.sample([replace(request)])[0]).completion_tokens
    )


def test_a_suppressed_token_is_never_drawn_and_logprobs_stay_those_of_the_whole_distribution() -> (
    None
):
    logits_BV = torch.log(torch.tensor([[0.5, 0.3, 0.2]])).repeat(3, 1)
    tokens, logprobs = sample_tokens(
        logits_BV,
        torch.tensor([1.0, 1.0, 0.0]),
        torch.tensor([0.0, 0.99, 0.5], dtype=torch.float64),
        [0],
    )
    assert tokens.tolist() == [1, 2, 1]
    assert logprobs.exp().tolist() == pytest.approx([0.3, 0.2, 0.3], rel=SOFTMAX_ROUNDING)
