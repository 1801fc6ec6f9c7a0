"""Mutants that write the same rows as the right projector, because two columns are always alike.

Listed by hand from what the events mean; a test says that each really changes nothing.
"""

from collections.abc import Set
from functools import cache

from schemas.json_schemas import read_schema, schema_versions

NEW_ROW_TIMES = ("created_at", "updated_at", "changed_at")
"""Of a new row: the event's time."""
ALIKE: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("cua.evaluation.created", "baseline"): (("completed_tasks", "current_task_index"),),
    ("cua.evaluation.created", "eval"): (("completed_tasks", "current_task_index"),),
    ("cua.step.created", "step"): (("progress_percent", "rollout_progress", "training_progress"),),
    ("cua.step.collection_started", "step"): (("start_time", "updated_at"),),
    ("cua.step.training_started", "step"): (("current_phase", "status"),),
    ("cua.step.finished", "step"): (
        ("end_time", "training_end_time"),
        ("rollout_progress", "training_progress"),
    ),
    ("cua.training.created", "training"): (("current_step", "generation"),),
    ("cua.training.heartbeat_sent", "training"): (("last_heartbeat", "updated_at"),),
    ("cua.training.initialization_started", "training"): (("start_time", "updated_at"),),
    ("cua.training.resumed", "training"): (("end_time", "error_message"),),
    ("cua.rollout.environment_requested", "rollout"): (
        ("start_time", "updated_at"),
        ("current_phase", "status"),
    ),
    ("cua.rollout.finished", "rollout"): (("end_time", "updated_at"),),
}
"""(event type, table) -> columns with the same constant, the same field or the event's time."""
MESSAGES = {"status_message", "error_message", "reason"}
PERCENTS = {"progress", "progress_percent"}


def changes_no_row(type_: str, table: str, columns: tuple[str, ...]) -> bool:
    """Whether swapping two columns, or leaving one out, is known to make no difference."""
    if not columns:
        return False
    alike: list[Set[str]] = [set(group) for group in ALIKE.get((type_, table), ())]
    nothing: Set[str] = frozenset()
    alike.append(set(NEW_ROW_TIMES))
    if table == "status_history":
        nothing = _null_in_history(type_)
        alike += [nothing, {"epoch", "sequence"} if _is_first(type_) else set()]
    if len(columns) == 1:
        return columns[0] in nothing
    return any(set(columns) <= group for group in alike)


@cache
def _null_in_history(type_: str) -> frozenset[str]:
    """Columns of status_history for which the event has nothing."""
    schema = read_schema(type_, schema_versions()[type_][-1])
    fields = set(schema["properties"]) if isinstance(schema["properties"], dict) else set()
    creates = bool(schema.get("x-creates"))
    found = {"old_status"} if creates else set()
    found |= set() if fields & MESSAGES else {"status_message"}
    found |= set() if fields & PERCENTS or creates else {"progress_percent"}
    return frozenset(found)


@cache
def _is_first(type_: str) -> bool:
    """Whether it is a stream's first event, of epoch 1 and sequence 1."""
    schema = read_schema(type_, 1)
    return bool(schema.get("x-creates")) and schema.get("x-entity") not in {"step", "group"}
