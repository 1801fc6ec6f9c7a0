"""Groups of a step that are too old to be trained on, and those collected in their place.

Collecting ahead never makes any (`ahead`). They are found when a training goes on with a smaller
`max_steps_off_policy`, or without it, after its process had collected further ahead.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from producer.rollouts.plan import GroupPlan, Recalled, RolloutResult, RolloutSource
from producer.training.samples import SelectedSample, max_staleness, samples_chosen
from producer.training.session import Session
from schemas import ids
from schemas.group import GroupDropped, GroupFailed

REPLACED = "some of its rollouts are too old to be trained on; another group is collected instead"


def replace_stale(
    session: Session, source: RolloutSource, groups: Sequence[GroupPlan], *, version: int
) -> tuple[tuple[GroupPlan, ...], Recalled]:
    """The groups to collect, in the places of `groups`, and what is recorded of them.

    `version`: of the policy when the step is trained. A group with a rollout that is too old then
    is recorded as dropped, and another of the same task and device seeds takes its place; it gets
    the next number that no group of the step has.
    """
    known = session.history.dropped_groups("stale")
    kept = tuple(groups)
    while True:
        kept = tuple(_successor(session, source, group, len(groups), known) for group in kept)
        recalled = session.recalled(source, kept)
        stale = {
            num
            for (num, _), result in recalled.results.items()
            if version - result.policy_version > max_staleness(session.config)
        }
        for group in kept:
            if group.num in stale:
                results = [one for (num, _), one in recalled.results.items() if num == group.num]
                _drop(session, source, group, results, version)
        if not stale:
            return kept, recalled
        kept = tuple(
            _replacement(source, group, len(groups)) if group.num in stale else group
            for group in kept
        )


def _replacement(source: RolloutSource, group: GroupPlan, num_groups: int) -> GroupPlan:
    num = group.num + num_groups
    return replace(group, num=num, id=ids.group_id(source.id, num))


def _successor(
    session: Session, source: RolloutSource, group: GroupPlan, num_groups: int, known: set[UUID]
) -> GroupPlan:
    """The group, or that which an earlier process began in its place; `known`: the stale ones."""
    while group.id in known:
        _fail(session, group, 0)
        group = _replacement(source, group, num_groups)
    return group


def _drop(
    session: Session,
    source: RolloutSource,
    group: GroupPlan,
    results: Sequence[RolloutResult],
    version: int,
) -> None:
    """Record that the group's rollouts are not trained on."""
    recorded = session.history.sampled_rollouts(source.id)
    samples = [
        SelectedSample(result, None, "stale")
        for result in results
        if result.plan.id not in recorded
    ]
    if samples:
        session.stream.emit(samples_chosen(version, source.id, samples))
    # The group's failure follows: it alone would keep the next process from collecting another.
    session.stream.emit(GroupDropped(group_id=group.id, reason="stale"))
    _fail(session, group, len(results))


def _fail(session: Session, group: GroupPlan, num_scored: int) -> None:
    """End a group that was not complete."""
    if session.stream.status(("group", group.id)) in {"pending", "running"}:
        session.stream.emit(
            GroupFailed(
                group_id=group.id,
                completed_rollouts=num_scored,
                error_message=REPLACED,
                ended_at=session.clock(),
            )
        )
