"""Prefills prompts of which several have a common prefix; each prefix is computed once.

Questions about one database share its schema, which is most of their prompts. The prompts are
sorted and divided into groups of neighbours with a common prefix, which is copied from the cache of
each group's first row to the others'. Only text is shared: a prompt with screens, or with cached
tokens, is prefilled alone.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from producer.policy.prefix_clusters import common_length
from producer.policy.torch_policy.forward import Prompt, Segment, WorkingCache
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefill import Prefilled, join_prefilled, prefill

PASS_TOKENS: Final = 64
"""Cost of another forward pass, in tokens: it reads all weights."""


class PrefixGroup(NamedTuple):
    """Neighbouring prompts with a common prefix."""

    start: int
    stop: int
    num_shared: int
    """Length of the common prefix; each prompt has at least one more token."""


def sort_by_beginning(prompts: Sequence[Prompt]) -> list[Prompt]:
    """Sort, so that prompts with a common prefix are adjacent; unshareable ones come first."""
    return sorted(prompts, key=_shareable)


def prefill_groups(network: Network, cache: WorkingCache, prompts: Sequence[Prompt]) -> Prefilled:
    """As `prefill` for sorted prompts; computes each common prefix once."""
    parts = []
    for start, stop, num_shared in find_groups([_shareable(prompt) for prompt in prompts]):
        own = prompts[start:stop]
        rows = WorkingCache(cache.kv_B2LHCD[start:stop])
        if num_shared:
            first = WorkingCache(rows.kv_B2LHCD[:1])
            prefill(network, first, [Segment(own[0].segment.tokens[:num_shared], [])], [0])
            rows.kv_B2LHCD[1:, ..., :num_shared, :] = first.kv_B2LHCD[..., :num_shared, :]
        parts.append(
            prefill(
                network,
                rows,
                [_rest(prompt.segment, num_shared) for prompt in own],
                [prompt.num_cached + num_shared for prompt in own],
            )
        )
    return join_prefilled(parts)


def find_groups(prompts: Sequence[Sequence[int]]) -> list[PrefixGroup]:
    """The division of sorted prompts into groups of neighbours that saves the most tokens.

    A group saves its common prefix once for each prompt except the first, minus PASS_TOKENS.
    Neighbouring prompts without a worthwhile prefix form one group.
    """
    common = [
        min(common_length(first, second), len(first) - 1, len(second) - 1)
        for first, second in pairwise(prompts)
    ]
    # For the prompts before each index: the most tokens that can be saved, and the last group.
    saved, last = [0], [PrefixGroup(0, 0, 0)]
    for stop in range(1, len(prompts) + 1):
        best, group = saved[stop - 1], PrefixGroup(stop - 1, stop, 0)
        num_shared = len(prompts[stop - 1])
        for start in range(stop - 2, -1, -1):
            num_shared = min(num_shared, common[start])
            gain = saved[start] + num_shared * (stop - start - 1) - PASS_TOKENS
            if gain > best:
                best, group = gain, PrefixGroup(start, stop, num_shared)
        saved.append(best)
        last.append(group)
    groups: list[PrefixGroup] = []
    stop = len(prompts)
    while stop:
        group = last[stop]
        stop = group.start
        if groups and not group.num_shared and not groups[-1].num_shared:
            groups[-1] = groups[-1]._replace(start=group.start)
        else:
            groups.append(group)
    return groups[::-1]


def _shareable(prompt: Prompt) -> list[int]:
    """Tokens that may be shared; empty for a prompt with screens or cached tokens."""
    return [] if prompt.num_cached or prompt.segment.screens else prompt.segment.tokens


def _rest(segment: Segment, num_shared: int) -> Segment:
    if not num_shared:
        return segment
    return Segment(segment.tokens[num_shared:], [], segment.start_position + num_shared)
