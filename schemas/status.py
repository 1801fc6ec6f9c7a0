"""The state machines of every entity that has a status.

The emitter refuses and the projector parks what they do not know.

States read left to right; a state may be skipped where its phase did not happen. From any state
that is not an end, the entity may fail or be cancelled where it has such an end. `training` alone
comes back: from any state but pending, by `TrainingResumed` in a new epoch.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateMachine:
    """One entity's states."""

    path: tuple[str, ...]
    """The way of an entity to which nothing happens, first state to last."""
    breaks: frozenset[str]
    """Ends that are reachable from every state that is no end."""
    extra: frozenset[tuple[str, str]] = frozenset()
    """Transitions that are not on the path."""

    @property
    def initial(self) -> str:
        """The state of an entity's creation."""
        return self.path[0]

    @property
    def ends(self) -> frozenset[str]:
        """States that nothing leaves (a resumed training excepted)."""
        return self.breaks | {self.path[-1]}

    @property
    def states(self) -> frozenset[str]:
        """Every state."""
        return frozenset(self.path) | self.breaks | {state for pair in self.extra for state in pair}

    def allows(self, old: str, new: str) -> bool:
        """Whether `old` -> `new` is a transition (restating `old` is none, and is decided by the caller)."""
        if (old, new) in self.extra:
            return True
        if old in self.ends:
            return False
        if new in self.breaks:
            return True
        return old in self.path and new in self.path and self.path.index(old) < self.path.index(new)


MACHINES: dict[str, StateMachine] = {
    "training": StateMachine(
        path=("pending", "initializing", "running", "completed"),
        breaks=frozenset({"failed", "cancelled"}),
        extra=frozenset(
            {("running", "paused"), ("paused", "running")}
            | {
                (state, "initializing")
                for state in ("running", "paused", "failed", "cancelled", "completed")
            }
        ),
    ),
    "baseline": StateMachine(
        path=("pending", "running", "completed"), breaks=frozenset({"failed", "cancelled"})
    ),
    "eval": StateMachine(
        path=("pending", "running", "completed"), breaks=frozenset({"failed", "cancelled"})
    ),
    "step": StateMachine(
        path=("pending", "rollout_collecting", "rollout_running", "training", "completed"),
        breaks=frozenset({"failed"}),
    ),
    "group": StateMachine(path=("pending", "running", "completed"), breaks=frozenset({"failed"})),
    "rollout": StateMachine(
        path=("pending", "env_creation", "agent_init", "running", "completed"),
        breaks=frozenset({"failed", "cancelled"}),
    ),
    "environment": StateMachine(
        path=("pending", "creating", "running", "terminated"),
        breaks=frozenset({"error", "terminated"}),
    ),
}


class IllegalTransitionError(Exception):
    """A fact would move an entity in a way its state machine does not know."""


def next_status(
    entity: str, old: str | None, new: str, *, creates: bool, resumes: bool = False
) -> bool:
    """Whether this is a change of status; IllegalTransitionError when the machine refuses it.

    `old` None: the entity is not known. `creates`: the fact is one that brings the entity into
    being. `resumes`: the fact is a `TrainingResumed`, the only one that leaves an end or restates
    `initializing` as a change.
    """
    machine = MACHINES[entity]
    if creates:
        if old is not None:
            message = f"{entity} is created twice (it is {old})"
            raise IllegalTransitionError(message)
        if new != machine.initial:
            message = f"{entity} begins as {machine.initial}, not {new}"
            raise IllegalTransitionError(message)
        return True
    if old is None:
        message = f"{entity} would become {new} but was never created"
        raise IllegalTransitionError(message)
    if old == new:
        return False
    into_initializing = entity == "training" and new == "initializing" and old != "pending"
    if into_initializing and not resumes:
        message = f"training returns from {old} to initializing only by TrainingResumed"
        raise IllegalTransitionError(message)
    if not machine.allows(old, new):
        message = f"{entity} cannot go from {old} to {new}"
        raise IllegalTransitionError(message)
    return True


def has_reached(entity: str, current: str, status: str) -> bool:
    """Whether an entity in `current` is at `status` or past it on its path."""
    path = MACHINES[entity].path
    if current == status:
        return True
    return current in path and status in path and path.index(current) > path.index(status)
