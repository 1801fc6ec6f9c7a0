"""Sequences that begin alike are computed in one row, with the results of each one alone."""

from collections.abc import Sequence
from itertools import chain

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from producer.policy import memory_demand
from producer.policy.sequences import TokenSequence
from producer.policy.torch_policy import packed_rows
from producer.policy.torch_policy.logprobs import (
    completion_logprobs,
    completion_states,
    micro_batches,
    state_logprobs,
)
from producer.policy.torch_policy.memory_check import size_of_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefix_sharing import (
    TokenRow,
    num_padded_tokens,
    share_rows,
)
from producer.policy.torch_policy.screen_encoder import ScreenEncoder

from .conftest import make_screen

SCREENS = [make_screen(seed) for seed in range(3)]
Turns = list[tuple[int, list[int]]]
"""(screen, completion) of each turn."""
EPISODES = st.lists(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.sampled_from([7, 8]), min_size=1, max_size=3)),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=5,
)


@pytest.fixture
def encoder(network: Network) -> ScreenEncoder:
    return ScreenEncoder(network.visual, network.processor)


def sequence(
    network: Network, encoder: ScreenEncoder, turns: Turns, prompt: Sequence[int] = (1, 2, 3)
) -> TokenSequence:
    """A prompt, then of each turn its screen between two markers and its completion."""
    made = TokenSequence(tokens=list(prompt))
    for screen, completion in turns:
        (features,) = encoder.encode([SCREENS[screen]])
        made.screenshots.append(SCREENS[screen])
        image = [int(network.image_token or 0)] * features.grid.num_tokens
        made.tokens += [4, *image, 5]
        made.sampled_at += range(len(made.tokens), len(made.tokens) + len(completion))
        made.tokens += completion
        made.sampled_logprobs += [-1.0] * len(completion)
    return made


def gradient(network: Network, logprobs_N: Tensor) -> Tensor:
    """Of all adapter weights, flat."""
    weights_N = torch.linspace(0.5, 1.5, len(logprobs_N))
    parts = torch.autograd.grad((logprobs_N * weights_N).sum(), network.trainable())
    return torch.cat([part.flatten() for part in parts])


def check(network: Network, encoder: ScreenEncoder, rows: list[TokenRow]) -> None:
    """Log-probs and gradients of the rows are those of their sequences alone."""
    alone_N = completion_logprobs(network, encoder, list(chain.from_iterable(rows)), 1.0)
    shared_N = state_logprobs(network, completion_states(network, encoder, rows), 1.0)
    torch.testing.assert_close(shared_N, alone_N, rtol=0, atol=1e-5)
    ours, expected = gradient(network, shared_N), gradient(network, alone_N)
    assert (ours - expected).norm() <= 1e-4 * expected.norm()


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(EPISODES, min_size=1, max_size=3))
def test_log_probs_and_gradients_in_shared_rows_are_those_of_each_sequence_alone(
    network: Network, encoder: ScreenEncoder, given_rows: list[list[Turns]]
) -> None:
    check(
        network,
        encoder,
        [[sequence(network, encoder, turns) for turns in row] for row in given_rows],
    )


def test_text_is_shared_too(network: Network, encoder: ScreenEncoder) -> None:
    texts = [TokenSequence([1, 2, 3, last], [], [2, 3], [-1.0, -1.0]) for last in (7, 8)]
    check(network, encoder, [texts, texts[:1]])


def test_a_group_computes_its_prompt_once(network: Network, encoder: ScreenEncoder) -> None:
    group = [sequence(network, encoder, [(0, [7, 8, 7 + n % 2, 9])]) for n in range(8)]
    (row,) = share_rows(network, group, 4096)
    # Of eight, two are different: they share 7 and 8, and each has two tokens of its own.
    assert row.num_tokens == len(group[0].tokens) - 4 + 2 + 2 * 2
    assert sorted(row.indices) == list(range(8))
    assert num_padded_tokens(network, [[group[index] for index in row.indices]]) == row.num_tokens


def test_screens_that_differ_are_not_shared(network: Network, encoder: ScreenEncoder) -> None:
    same, other = (sequence(network, encoder, [(screen, [7])]) for screen in (0, 1))
    # The prompt of three tokens and the marker before the screen.
    assert num_padded_tokens(network, [[same, other]]) == 2 * len(same.tokens) - 4
    assert num_padded_tokens(network, [[same, same]]) == len(same.tokens)


def test_screens_side_by_side_are_shared_all_or_none(network: Network) -> None:
    image = int(network.image_token or 0)

    def pair(*screens: int) -> TokenSequence:
        return TokenSequence([1, image, image, 2], [SCREENS[screen] for screen in screens], [3], [])

    assert num_padded_tokens(network, [[pair(0, 1), pair(0, 1)]]) == 4
    assert num_padded_tokens(network, [[pair(0, 1), pair(0, 2)]]) == 4 + 3


def test_a_row_is_left_alone_where_attention_would_cost_more_than_sharing_saves(
    network: Network,
) -> None:
    def pair(num_own: int) -> list[TokenSequence]:
        return [TokenSequence(tokens=[*range(60), *[token] * num_own]) for token in (7, 8)]

    # This network: 32 wide, two heads of 16, 48 in between. Linear layers of a token: 2 * 32 * 64
    # + 3 * 32 * 48 = 8,704 products; attention to one token: 2 * 32 = 64. Even at 136 tokens.
    # 10 own tokens: together 80 + 80² / 136 = 127; apart 2 * (70 + 70² / 272) = 176.
    # 200 own: together 460 + 460² / 136 = 2,016; apart 2 * (260 + 260² / 272) = 1,017.
    assert [len(share_rows(network, pair(num_own), 4096)) for num_own in (10, 200)] == [1, 2]


def test_a_row_has_at_most_the_tokens_of_a_micro_batch(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_rows, "_break_even_tokens", lambda _size: 1e9)
    alike = [TokenSequence(tokens=[*[1] * 2000, *[own] * 1000]) for own in (2, 3, 4)]
    # Two together have 4,000 of the 4,096 tokens.
    assert share_rows(network, alike, 4096) == [([0, 1], 4000), ([2], 3000)]


def test_a_micro_batch_holds_rows_of_similar_length_and_at_least_one(network: Network) -> None:
    sequences = [TokenSequence(tokens=[length] * length) for length in (5, 100, 6, 40)]
    # Longest first: 100 alone is over 50; 40 + another of up to 40 would be 80; 6 and 5 take 12.
    assert micro_batches(network, sequences, max_tokens=50) == [[[1]], [[3]], [[2], [0]]]


def test_a_group_shares_a_prompt_that_is_nearly_as_long_as_a_pass(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_rows, "_break_even_tokens", lambda _size: 1e9)
    group = [TokenSequence(tokens=[*[1] * 45, *[own] * 4]) for own in range(2, 18)]
    # Of 49 tokens each; a row has up to 98: the prompt and 13 completions. Three are left.
    batches = micro_batches(network, group, max_tokens=50)
    assert [[len(row) for row in batch] for batch in batches] == [[13], [3]]


def test_a_micro_batch_holds_what_a_pass_may_keep_of_its_tokens(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = size_of_network(network.base.config, network.base.dtype)
    kept = size.activation_bytes(50, checkpointed=False)
    monkeypatch.setattr(memory_demand, "PASS_BYTES", kept)
    sequences = [TokenSequence(tokens=[length] * length) for length in (5, 100, 6, 40)]
    assert micro_batches(network, sequences) == [[[1]], [[3]], [[2], [0]]]
