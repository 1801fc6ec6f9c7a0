"""Best-of-N: chooses, among several completions, the one that a process reward model rates best.

Every figure for N of n completions is the mean over all subsets of size N, so that it does not
depend on which were drawn first. For N = n it is what was actually chosen. Ties go to the
completion that was sampled first.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

Strategy = Literal["product", "min", "last", "average"]
STRATEGIES: Final[dict[Strategy, Callable[[Sequence[float]], float]]] = {
    "product": math.prod,
    "min": min,
    "last": lambda scores: scores[-1],
    "average": lambda scores: math.fsum(scores) / len(scores),
}
"""How the scores of a completion's steps are combined into one."""


class Candidate(NamedTuple):
    """One completion of a question."""

    scores: tuple[float, ...]
    """Scores of its steps, from 0 to 1. If empty, nothing could be scored, and the completion is
    chosen last."""
    is_right: bool
    """Whether the completion returns the gold's rows."""


class BestOfN(NamedTuple):
    """Shares of right answers with N completions per question."""

    num_candidates: int
    """The number N."""
    by_strategy: dict[Strategy, float]
    """Share of right answers among the chosen completions, by strategy."""
    pass_at_n: float
    """Probability that any of N is right, an upper bound for every strategy."""


def completion_score(scores: Sequence[float], strategy: Strategy) -> float:
    """Combine a completion's step scores into one; -inf without steps.

    Raises ValueError if a score is not a probability.
    """
    if not all(0 <= score <= 1 for score in scores):
        message = f"expected scores from 0 to 1; found {list(scores)}"
        raise ValueError(message)
    return STRATEGIES[strategy](scores) if scores else -math.inf


def ranked(candidates: Sequence[Candidate], strategy: Strategy) -> list[int]:
    """Indices of the completions, best first."""
    return sorted(
        range(len(candidates)),
        key=lambda at: (-completion_score(candidates[at].scores, strategy), at),
    )


def pass_at_k(num_samples: int, num_right: int, k: int) -> float:
    """1 - C(n - c, k) / C(n, k): the share of subsets of size k with a right one.

    The estimate is unbiased (arXiv 2107.03374). Raises ValueError unless 0 <= c <= n and 1 <= k <=
    n.
    """
    if not (0 <= num_right <= num_samples and 1 <= k <= num_samples):
        message = (
            f"expected 0 <= c <= n and 1 <= k <= n; found n {num_samples}, c {num_right}, k {k}"
        )
        raise ValueError(message)
    return 1 - math.comb(num_samples - num_right, k) / math.comb(num_samples, k)


def best_of_n(questions: Sequence[Sequence[Candidate]], n: int) -> BestOfN:
    """The shares over all questions.

    Raises ValueError without questions, or if one has fewer than `n` completions.
    """
    if not questions or min(map(len, questions)) < n or n < 1:
        message = f"expected questions with at least {n} completions each, and n of at least 1"
        raise ValueError(message)
    passed = [
        pass_at_k(len(candidates), sum(candidate.is_right for candidate in candidates), n)
        for candidates in questions
    ]
    return BestOfN(
        n,
        {
            strategy: math.fsum(_chosen_right(question, strategy, n) for question in questions)
            / len(questions)
            for strategy in STRATEGIES
        },
        math.fsum(passed) / len(questions),
    )


def best_of_sizes(questions: Sequence[Sequence[Candidate]]) -> list[BestOfN]:
    """`best_of_n` for N = 1, 2, 4 ... and for all completions."""
    most = min(map(len, questions), default=0)
    powers = [2**power for power in range(most.bit_length())]
    sizes = sorted({*(size for size in powers if size <= most), most})
    return [best_of_n(questions, size) for size in sizes]


def _chosen_right(candidates: Sequence[Candidate], strategy: Strategy, n: int) -> float:
    """Share of subsets of size n whose chosen completion is right.

    The completion at place j of the ranking is chosen from the C(N - 1 - j, n - 1) subsets that
    have it and none before it.
    """
    most = len(candidates)
    subsets = sum(
        math.comb(most - 1 - place, n - 1)
        for place, at in enumerate(ranked(candidates, strategy))
        if candidates[at].is_right
    )
    return subsets / math.comb(most, n)
