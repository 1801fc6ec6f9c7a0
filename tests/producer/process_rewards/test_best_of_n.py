"""Best-of-N and pass@N: by hand, and against every subset."""

from itertools import combinations
from math import prod
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.process_rewards.best_of_n import (
    STRATEGIES,
    BestOfN,
    Candidate,
    Strategy,
    best_of_n,
    best_of_sizes,
    completion_score,
    pass_at_k,
    ranked,
)

SCORES = (0.5, 0.9, 0.8)


@pytest.mark.parametrize(
    ("strategy", "score"), [("product", 0.36), ("min", 0.5), ("last", 0.8), ("average", 2.2 / 3)]
)
def test_a_completion_s_score_by_hand(strategy: Strategy, score: float) -> None:
    assert completion_score(SCORES, strategy) == pytest.approx(score)
    assert completion_score((), strategy) < 0


@pytest.mark.parametrize(
    ("strategy", "chosen"), [("product", 3), ("min", 1), ("last", 0), ("average", 2)]
)
def test_strategies_choose_differently(strategy: Strategy, chosen: int) -> None:
    scores = [(0.1, 0.99), (0.6, 0.6, 0.6), (0.5, 0.9, 0.9), (0.55, 0.8)]
    # Products 0.099, 0.216, 0.405, 0.44; means 0.545, 0.6, 0.767, 0.675.
    assert ranked([Candidate(score, is_right=False) for score in scores], strategy)[0] == chosen


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ties_go_to_the_first_and_what_has_no_score_is_last(strategy: Strategy) -> None:
    scores = [(), (0.5,), (0.7,), (0.7,), (0.0,)]
    assert ranked([Candidate(score, is_right=True) for score in scores], strategy) == [
        2,
        3,
        1,
        4,
        0,
    ]
    assert ranked([Candidate((), is_right=True)] * 2, strategy) == [0, 1]


def test_wrong_arguments_are_refused() -> None:
    for scores in ([1.5], [-0.1], [float("nan")]):
        with pytest.raises(ValueError, match="scores from 0 to 1"):
            completion_score(scores, "last")
    for n, c, k in ((3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)):
        with pytest.raises(ValueError, match="expected 0 <= c <= n and 1 <= k <= n"):
            pass_at_k(n, c, k)
    with pytest.raises(ValueError, match="at least 2 completions"):
        best_of_n([[Candidate((1.0,), is_right=True)]], 2)
    with pytest.raises(ValueError, match="and n of at least 1"):
        best_of_n([], 1)


@pytest.mark.parametrize(
    ("n", "c", "k", "share"),
    [(4, 1, 1, 0.25), (4, 1, 2, 0.5), (4, 2, 2, 5 / 6), (4, 0, 4, 0), (4, 3, 2, 1), (4, 4, 1, 1)],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, share: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(share, abs=1e-12)


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), max_size=3).map(tuple),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@given(CANDIDATES, st.integers(1, 6))
def test_the_shares_are_those_over_all_subsets(candidates: list[Candidate], n: int) -> None:
    n = min(n, len(candidates))
    found = best_of_n([candidates], n)
    subsets = [list(combination) for combination in combinations(candidates, n)]
    for strategy in STRATEGIES:
        chosen = [subset[ranked(subset, strategy)[0]].is_right for subset in subsets]
        assert found.by_strategy[strategy] == pytest.approx(mean(chosen))
        assert found.by_strategy[strategy] <= found.pass_at_n + 1e-9
    any_right = [any(item.is_right for item in subset) for subset in subsets]
    assert found.pass_at_n == pytest.approx(mean(any_right))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5).map(tuple))
def test_a_completion_s_score_is_a_share_between_product_and_maximum(
    scores: tuple[float, ...],
) -> None:
    values = {strategy: completion_score(scores, strategy) for strategy in STRATEGIES}
    assert values["product"] == prod(scores)
    assert values["product"] <= values["min"] <= values["average"] + 1e-12
    assert values["min"] <= values["last"] <= max(scores)


def test_figures_are_means_over_questions_for_powers_of_two_and_all() -> None:
    right, wrong = Candidate((0.9,), is_right=True), Candidate((0.1,), is_right=False)
    questions = [[right, wrong, wrong, wrong, wrong, wrong], [wrong] * 6]
    found = best_of_sizes(questions)
    assert [item.num_candidates for item in found] == [1, 2, 4, 6]
    assert found[-1] == BestOfN(6, dict.fromkeys(STRATEGIES, 0.5), 0.5)
    # One question is never right; the other with the share of subsets that have the first.
    assert [item.pass_at_n for item in found] == pytest.approx([1 / 12, 2 / 12, 4 / 12, 0.5])
