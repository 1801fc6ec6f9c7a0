"""The state machines as the documentation has them, for the reference fold.

Written out, not derived from the code.
"""

from typing import Any

FAILS = {"failed"}
CANCELS = {"failed", "cancelled"}
MACHINES: dict[str, tuple[list[str], set[str]]] = {
    "training": (["pending", "initializing", "running", "completed"], CANCELS),
    "baseline": (["pending", "running", "completed"], CANCELS),
    "eval": (["pending", "running", "completed"], CANCELS),
    "step": (["pending", "rollout_collecting", "rollout_running", "training", "completed"], FAILS),
    "group": (["pending", "running", "completed"], FAILS),
    "rollout": (["pending", "env_creation", "agent_init", "running", "completed"], CANCELS),
    "environment": (["pending", "creating", "running", "terminated"], {"error"}),
}

STATUSES: dict[str, str | None] = {
    "cua.training.created": "pending",
    "cua.training.initialization_started": "initializing",
    "cua.training.started": "running",
    "cua.training.progressed": None,
    "cua.training.heartbeat_sent": None,
    "cua.training.paused": "paused",
    "cua.training.resumed": "initializing",
    "cua.training.completed": "completed",
    "cua.training.failed": "failed",
    "cua.training.cancelled": "cancelled",
    "cua.step.created": "pending",
    "cua.step.collection_started": "rollout_collecting",
    "cua.step.rollouts_started": "rollout_running",
    "cua.step.training_started": "training",
    "cua.step.progressed": None,
    "cua.step.finished": "completed",
    "cua.step.failed": "failed",
    "cua.group.created": "pending",
    "cua.group.started": "running",
    "cua.group.progressed": None,
    "cua.group.finished": "completed",
    "cua.group.failed": "failed",
    "cua.rollout.created": "pending",
    "cua.rollout.environment_requested": "env_creation",
    "cua.rollout.agent_initialized": "agent_init",
    "cua.rollout.started": "running",
    "cua.rollout.phase_entered": None,
    "cua.rollout.turn_taken": None,
    "cua.rollout.finished": "completed",
    "cua.rollout.failed": "failed",
    "cua.rollout.cancelled": "cancelled",
    "cua.environment.requested": "pending",
    "cua.environment.creation_started": "creating",
    "cua.environment.started": "running",
    "cua.environment.terminated": "terminated",
    "cua.environment.failed": "error",
    "cua.environment.leaked": "error",
    "cua.evaluation.created": "pending",
    "cua.evaluation.started": "running",
    "cua.evaluation.progressed": None,
    "cua.evaluation.finished": "completed",
    "cua.evaluation.failed": "failed",
    "cua.evaluation.cancelled": "cancelled",
}
"""Facts about an entity -> its status from then on; None: it stays."""


def entity_of(
    type_: str, data: dict[str, Any], owner: str
) -> tuple[tuple[str, str] | None, str | None]:
    """((table, id), new status) of a fact; None for a fact without an entity."""
    if type_ not in STATUSES:
        return None, None
    word = type_.split(".")[1]
    if word == "step":
        return ("step", data["step_id"]), STATUSES[type_]
    if word == "group":
        return ("group", data["group_id"]), STATUSES[type_]
    if word == "evaluation":
        return ("baseline" if data["kind"] == "baseline" else "eval", owner), STATUSES[type_]
    return (word, owner), STATUSES[type_]


def transition(table: str, old: str | None, new: str, *, resumes: bool) -> bool | None:  # noqa: PLR0911  # one rule per line
    """True: a change; False: it is so already; None: refused."""
    path, breaks = MACHINES[table]
    ends = breaks | {path[-1]}
    if new == "pending":
        return True if old is None else None
    if old is None:
        return None
    if old == new:
        return False
    if table == "training" and new == "initializing" and old != "pending":
        return True if resumes else None
    if (old, new) in {("running", "paused"), ("paused", "running")}:
        return True if table == "training" else None
    if old in ends:
        return None
    if new in ends and (new in breaks or new == "terminated"):
        return True
    return True if old in path and new in path and path.index(old) < path.index(new) else None
