"""Whether TRL and our trainer compute the same, before anything of theirs is compared.

For the same sequences, which ours samples: prompts token by token, log-probs, and the adapter's
gradient in one update.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from producer.policy.learner import Trajectory
from tests.bench.train_case import PromptGroup
from tests.bench.train_ours import OurTrainer, sampled_logprobs
from tests.bench.train_peer import Computed, PeerTrainer

MAX_LOGPROB_GAP = 1e-5
"""Nats."""
MAX_GRADIENT_GAP = 1e-4
"""Norm of the difference, in norms of TRL's gradient."""


class Agreement(NamedTuple):
    """How far the two are apart."""

    sampled_gap: float
    """Largest difference of a log-prob recorded by our sampler from TRL's forward pass, nats."""
    update_gap: float
    """Of a log-prob that our update computes."""
    gradient_gap: float
    """As `MAX_GRADIENT_GAP`."""
    differing_prompts: tuple[int, ...]
    """Rollouts whose first prompts have other tokens."""
    differing_weights: tuple[str, ...]
    """Names of weights that only one of the two has a gradient of."""

    def problems(self) -> list[str]:
        """What differs by more than rounding; empty: nothing."""
        return list(self._problems())

    def _problems(self) -> Iterator[str]:
        if self.differing_prompts:
            yield f"the prompts of rollouts {list(self.differing_prompts)} have other tokens in TRL"
        if self.differing_weights:
            yield f"only one of the two has gradients of {', '.join(self.differing_weights)}"
        for what, gap, bound in (
            ("log-probs recorded by our sampler", self.sampled_gap, MAX_LOGPROB_GAP),
            ("log-probs of our update", self.update_gap, MAX_LOGPROB_GAP),
            ("gradients, relative to their norm,", self.gradient_gap, MAX_GRADIENT_GAP),
        ):
            # Not `gap > bound`: NaN differs too.
            if not gap <= bound:
                yield f"{what} differ from TRL's by {gap:.1e}; at most {bound:.0e} is rounding"


def compare(ours: OurTrainer, peer: PeerTrainer, groups: Sequence[PromptGroup]) -> Agreement:
    """Both on rollouts of the first step, which ours samples; changes no weights."""
    trajectories = ours.rollouts(groups, 0)
    theirs = peer.compute(
        [
            [list(one.turns[turn].tokens.completion_tokens) for one in trajectories]
            for turn in range(ours.case.num_turns)
        ]
    )
    own = ours.gradients(trajectories)
    return Agreement(
        sampled_gap=_sampled_gap(trajectories, theirs),
        update_gap=ours.largest_gap(trajectories, theirs.logprobs),
        gradient_gap=_gradient_gap(own, theirs.gradients),
        differing_prompts=tuple(
            at
            for at, (one, tokens) in enumerate(zip(trajectories, theirs.prompts, strict=True))
            if list(one.turns[0].tokens.prompt_tokens) != tokens
        ),
        differing_weights=tuple(sorted(own.keys() ^ theirs.gradients.keys())),
    )


def _sampled_gap(trajectories: Sequence[Trajectory], theirs: Computed) -> float:
    return max(
        abs(recorded - computed)
        for one, logprobs in zip(trajectories, theirs.logprobs, strict=True)
        for recorded, computed in zip(sampled_logprobs(one), logprobs, strict=True)
    )


def _gradient_gap(own: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    shared = sorted(own.keys() & theirs.keys())
    own_N = torch.cat([own[name].flatten() for name in shared])
    theirs_N = torch.cat([theirs[name].flatten() for name in shared])
    return float((own_N - theirs_N).norm() / theirs_N.norm())
