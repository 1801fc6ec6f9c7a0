"""Completions of an answer's prefix by the policy itself, for the labels of its steps."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable
from uuid import UUID, uuid5

from producer.config import RunConfig
from producer.policy.policy import Completion, SampleRequest
from producer.rollouts.step_labels import StepLabeller
from producer.seeds import derived_seed
from producer.task import Task

_SPACE = UUID("b6e0a7a0-7f4e-5c0e-9d2b-6a1f0c7c6f11")
"""Names the episodes of completed prefixes, which are none of the log's."""


@runtime_checkable
class PrefixPolicy(Protocol):
    """A policy of tokens: it continues an answer, and knows its tokens' characters."""

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """As `Policy.sample`."""
        ...

    def forget(self, episode: UUID) -> None:
        """As `Policy.forget`."""
        ...

    def token_starts(self, tokens: Sequence[int]) -> list[int]:
        """For each token of a completion the index of its first character."""
        ...


def make_labeller(config: RunConfig, policy: object) -> StepLabeller | None:
    """Labels steps by `config.step_completions` completions of each prefix; None without them.

    A prefix has the same completions in every run of the same seed and weights, whenever it is met.
    """
    if not config.step_completions:
        return None
    assert isinstance(policy, PrefixPolicy)  # noqa: S101  # the configuration is checked

    def complete(task: Task, prefix: str) -> list[str]:
        requests = [
            SampleRequest(
                episode=uuid5(_SPACE, f"{task.task_id}/{number}/{prefix}"),
                task=task,
                history=(),
                screenshot=None,
                temperature=config.temperature,
                top_p=config.top_p,
                max_tokens=config.max_tokens,
                seed=derived_seed(config.seed, "step-completion", task.task_id, prefix, number),
                prefix=prefix,
            )
            for number in range(config.step_completions)
        ]
        completions = policy.sample(requests)
        for request in requests:
            policy.forget(request.episode)
        return [completion.text for completion in completions]

    return StepLabeller(complete, policy.token_starts)
