"""State machines of all entities that have a status.

The emitter refuses illegal transitions; the projector parks their events.

States are listed in order, and a state is skipped if its phase did not happen. An entity may fail
or be cancelled (where it has such a state) from any state that is not final. Only `training` leaves
a final state: by `TrainingResumed`, in a new epoch.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateMachine:
    """The states and transitions of one entity type."""

    path: tuple[str, ...]
    """The states of an entity that succeeds, in order."""
    breaks: frozenset[str]
    """Final states that are reachable from every state that is not final."""
    extra: frozenset[tuple[str, str]] = frozenset()
    """Further transitions (from, to)."""

    @property
    def initial(self) -> str:
        """The state at creation."""
        return self.path[0]

    @property
    def ends(self) -> frozenset[str]:
        """Final states; only a resumed training leaves one."""
        return self.breaks | {self.path[-1]}

    @property
    def states(self) -> frozenset[str]:
        """All states."""
        return frozenset(self.path) | self.breaks | {state for pair in self.extra for state in pair}

    def allows(self, old: str, new: str) -> bool:
        """Whether `old` -> `new` is legal. Repeating `old` is not a transition."""
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
    """The event's status transition is not in the state machine of its entity."""


def next_status(
    entity: str, old: str | None, new: str, *, creates: bool, resumes: bool = False
) -> bool:
    """Whether the event changes the status. IllegalTransitionError if it must not.

    `old` is None for an unknown entity. `creates`: the event creates the entity. `resumes`: the
    event is a `TrainingResumed`, which alone may leave a final state, and for which a repeated
    `initializing` is a change.
    """
    machine = MACHINES[entity]
    if creates:
        if old is not None:
            message = f"{entity} cannot be created twice (its status is {old})"
            raise IllegalTransitionError(message)
        if new != machine.initial:
            message = f"{entity} must be created with status {machine.initial}, not {new}"
            raise IllegalTransitionError(message)
        return True
    if old is None:
        message = f"{entity} cannot become {new}: it was never created"
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
