"""Prompts that begin alike are prefilled together, and answered as if each were alone."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.policy.policy import SampleRequest, Turn
from producer.policy.torch_policy import prefill, sampling
from producer.policy.torch_policy.forward import NetworkInput, hidden_states
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.shared_prefill import PASS_TOKENS, PrefixGroup, find_groups
from tests.support.checkpoints import write_checkpoint
from tests.support.rounding import rounding_of_forward
from tests.support.turns import past_turn

from .conftest import ClickOnly, make_task, randomize_adapter

LONG = PASS_TOKENS + 6


def test_neighbours_that_begin_alike_are_one_group_and_the_others_one_without_a_beginning() -> None:
    prompts = [
        *([1] * LONG + [end] for end in (2, 3, 4)),
        [5, 6],
        [5, 7],
        *([8] * LONG + [9] * LONG + [end] for end in (2, 3)),
    ]
    assert find_groups(prompts) == [
        PrefixGroup(0, 3, LONG),
        PrefixGroup(3, 5, 0),
        PrefixGroup(5, 7, 2 * LONG),
    ]


def test_a_prompt_that_another_one_continues_keeps_a_token_of_its_own() -> None:
    prompts = [[1] * (LONG + 1), [1] * (LONG + 2), [1] * (LONG + 3)]
    assert find_groups(prompts) == [PrefixGroup(0, 3, LONG)]


def test_a_beginning_that_does_not_pay_for_its_pass_is_not_shared() -> None:
    of_two = [[1] * PASS_TOKENS + [2], [1] * PASS_TOKENS + [3]]
    assert find_groups(of_two) == [PrefixGroup(0, 2, 0)]
    of_three = [*of_two, [1] * PASS_TOKENS + [4]]
    assert find_groups(of_three) == [PrefixGroup(0, 3, PASS_TOKENS)]


def test_nothing_is_shared_of_no_prompt_or_one() -> None:
    assert find_groups([]) == []
    assert find_groups([[1, 2]]) == [PrefixGroup(0, 1, 0)]


def num_saved(prompts: Sequence[Sequence[int]], cuts: Sequence[int]) -> int:
    """Tokens that this division saves, where a group may also share nothing."""
    saved = 0
    for start, stop in zip((0, *cuts), (*cuts, len(prompts)), strict=True):
        own = prompts[start:stop]
        shared = min(len(one) for one in own) - 1
        while any(one[:shared] != own[0][:shared] for one in own):
            shared -= 1
        saved += max(0, shared * (len(own) - 1) - PASS_TOKENS)
    return saved


@given(
    st.sets(st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple), min_size=1, max_size=7)
)
def test_no_other_division_of_any_prompts_saves_more(kinds: set[tuple[int, ...]]) -> None:
    prompts = sorted([token for kind in one for token in [kind] * 40] for one in kinds)
    groups = find_groups(prompts)
    assert [group.start for group in groups] == [0, *(group.stop for group in groups[:-1])]
    assert groups[-1].stop == len(prompts)
    for group in groups:
        own = prompts[group.start : group.stop]
        assert all(one[: group.num_shared] == own[0][: group.num_shared] for one in own)
        assert all(len(one) > group.num_shared for one in own)
    places = range(1, len(prompts))
    assert sum(
        group.num_shared * (group.stop - group.start - 1) - PASS_TOKENS * bool(group.num_shared)
        for group in groups
    ) == max(
        num_saved(prompts, cuts) for n in range(len(prompts)) for cuts in combinations(places, n)
    )


@pytest.fixture(params=["qwen2", "llama", "qwen3_vl"])
def policy(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> InProcessPolicy:
    """Of a network that counts as large."""
    monkeypatch.setattr(sampling, "SMALL_WEIGHTS", 0)
    write_checkpoint(tmp_path, request.param, tied=request.param == "llama")
    network = load_network(str(tmp_path), lora_rank=4, seed=1)
    randomize_adapter(network)
    return InProcessPolicy(network, ClickOnly(), "Answer with one query.")


def question(episode: int, database: str, history: tuple[Turn, ...] = ()) -> SampleRequest:
    return SampleRequest(
        episode=UUID(int=episode),
        task=make_task(f"{database * LONG} Question {episode}?"),
        history=history,
        screenshot=None,
        temperature=1.0,
        max_tokens=4,
        seed=episode + 100 * len(history),
        text="1 row" if history else None,
    )


def assert_as_alone(policy: InProcessPolicy, requests: Sequence[SampleRequest]) -> list[Turn]:
    together = policy.sample(requests)
    for asked, completion in zip(requests, together, strict=True):
        policy.forget(asked.episode)
        alone = policy.sample([asked])[0]
        assert completion.tokens is not None
        assert alone.tokens is not None
        assert completion.tokens.completion_tokens == alone.tokens.completion_tokens
        largest = max(abs(one) for one in alone.tokens.completion_logprobs)
        assert completion.tokens.completion_logprobs == pytest.approx(
            alone.tokens.completion_logprobs,
            rel=0,
            abs=rounding_of_forward(policy._network.base, largest),
        )
    return [past_turn(None, one.text, one.tokens) for one in together]


def test_each_is_answered_as_if_it_were_alone(policy: InProcessPolicy) -> None:
    databases = ("table a (x) ", "table b (y) ")
    requests = [question(number, databases[number % 2]) for number in (4, 1, 3, 2, 5)]
    turns = assert_as_alone(policy, requests)
    following = [
        replace(asked, history=(turn,), text="1 row", seed=asked.seed + 100)
        for asked, turn in zip(requests, turns, strict=True)
    ]
    # Some go on from their caches, beside new ones that begin alike.
    assert_as_alone(policy, [*following, *(question(n, databases[0]) for n in (6, 7))])


def test_a_schema_that_several_questions_share_is_computed_once(
    policy: InProcessPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []

    def counting(network: object, batch: NetworkInput, *rest: object) -> object:
        computed.append(batch.tokens_BT.numel())
        return hidden_states(network, batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(prefill, "hidden_states", counting)
    requests = [question(number, "table a (x)") for number in range(4)]
    prompts = [one.tokens for one in policy.sample(requests)]
    lengths = {len(tokens.prompt_tokens) for tokens in prompts if tokens is not None}
    assert len(lengths) == 1
    shared, rest = computed
    assert shared + rest // 4 == lengths.pop()
    assert rest // 4 < shared // 10
