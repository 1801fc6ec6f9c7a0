"""Prompts that begin alike stay together, whatever the order they came in."""

import random
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.algorithms.settings import UpdateSettings
from producer.policy.prefix_clusters import cluster_by_prefix, common_length, shuffle_clusters
from producer.policy.sequences import TokenSequence, split_into_substeps

SYSTEM = [9] * 8
"""What every question begins with."""


def question(schema: int, number: int) -> list[int]:
    """Of 40 tokens, of which one database's questions share 36."""
    return [*SYSTEM, *[schema] * 28, *[100 + number] * 4]


def test_questions_about_one_database_are_a_cluster_and_a_system_prompt_makes_none() -> None:
    prompts = [question(2, 0), question(1, 0), question(2, 1), question(1, 1), question(1, 0)]
    assert cluster_by_prefix(prompts) == [[1, 4, 3], [0, 2]]


@pytest.mark.parametrize(("num_shared", "clusters"), [(75, 1), (74, 2)])
def test_three_quarters_of_the_longer_prompt_make_two_alike(num_shared: int, clusters: int) -> None:
    shared = [1] * num_shared
    longer = shared + [2] * (100 - num_shared)
    assert len(cluster_by_prefix([longer, [*shared, 3]])) == clusters


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=30),
    st.integers(0, 2**32),
)
def test_every_prompt_has_one_place_and_equal_ones_are_neighbours(
    prompts: list[list[int]], seed: int
) -> None:
    order = shuffle_clusters(cluster_by_prefix(prompts), random.Random(seed))
    assert sorted(order) == list(range(len(prompts)))
    shown = [tuple(prompts[index]) for index in order]
    changes = sum(one != other for one, other in pairwise(shown))
    assert changes == max(0, len(set(shown)) - 1)


def test_the_clusters_come_in_another_order_with_another_seed() -> None:
    prompts = [question(schema, number) for schema in range(6) for number in range(2)]
    clusters = cluster_by_prefix(prompts)
    orders = {tuple(shuffle_clusters(clusters, random.Random(seed))) for seed in range(5)}
    assert len(orders) == 5


@dataclass
class Part:
    """What an update divides."""

    tokens: TokenSequence


def test_what_begins_alike_shares_an_optimiser_step_where_asked() -> None:
    parts = [
        Part(TokenSequence([*question(schema, number), 5], [], [40], [-1.0]))
        for number in range(4)
        for schema in range(6)
    ]

    def schemas_of_each(*, group_by_prefix: bool) -> list[int]:
        settings = UpdateSettings(seed=0, num_substeps=6, group_by_prefix=group_by_prefix)
        substeps = split_into_substeps(parts, [], settings)
        assert sorted(map(id, parts)) == sorted(
            id(part) for one in substeps for part in one.trained
        )
        return [len({part.tokens.tokens[len(SYSTEM)] for part in one.trained}) for one in substeps]

    assert schemas_of_each(group_by_prefix=True) == [1] * 6
    assert max(schemas_of_each(group_by_prefix=False)) > 1


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_a_common_beginning_is_as_long_as_possible(first: list[int], second: list[int]) -> None:
    length = common_length(first, second)
    assert first[:length] == second[:length]
    rest = (first[length : length + 1], second[length : length + 1])
    assert rest[0] != rest[1] or rest == ([], [])
