"""Which events a stream may contain, and whether their ids are those of what they speak of."""

from typing import Any
from uuid import UUID

from schemas import ids
from tests.reference_fold.reference_sql_rows import entry_hash

HOMES = {
    "training": "training",
    "step": "training",
    "checkpoint": "training",
    "task": "training evaluation",
    "validator": "training evaluation",
    "entry": "training evaluation",
    "group": "training evaluation",
    "evaluation": "evaluation",
    "rollout": "rollout",
    "session": "rollout",
    "completion": "rollout",
    "validation": "rollout scoring",
    "environment": "environment",
    "annotation": "annotation",
    "scoring": "scoring",
}
"""Second word of an event type -> kinds of streams that may contain it."""


def presupposed(  # noqa: PLR0911  # one case per event
    type_: str, data: dict[str, Any], owner: str
) -> list[tuple[str, str]]:
    """What the stream itself must have made before it may say this: nobody speaks for others."""
    match type_:
        case "cua.step.progressed" | "cua.step.samples_chosen":
            return [("step", data["step_id"])]
        case "cua.group.progressed" | "cua.group.dropped":
            return [("group", data["group_id"])]
        case "cua.group.created":
            return [(data["source_type"], data["source_id"])]
        case "cua.training.step_superseded":
            return [("step", data["step_id"]), *(("group", datum) for datum in data["group_ids"])]
        case "cua.evaluation.superseded":
            table = "baseline" if data["kind"] == "baseline" else "eval"
            return [(table, owner), *(("group", datum) for datum in data["group_ids"])]
        case "cua.checkpoint.saved":
            step = data["step_id"]
            return [("training", owner)] + ([("step", step)] if step else [])
        case _:
            return []


def ids_agree(  # noqa: C901, PLR0912  # one case per event
    type_: str, data: dict[str, Any], owner: str, subject: str, event_training: str | None
) -> bool:
    """Whether a new row's id is what its natural key gives."""
    match type_:
        case "cua.annotation.recorded":
            pair = UUID(data["training_id"]), owner
        case "cua.training.created":
            pair = ids.training_id(data["run_name"]), owner
        case "cua.rollout.created":
            pair = ids.rollout_id(data["rollout_id"]), owner
        case "cua.task.stated":
            if not defined_as_stated(data):
                return False
            pair = ids.task_row_id(data["task_id"], data["definition_hash"]), data["id"]
        case "cua.entry.stated":
            if entry_hash(data["content"]) != data["content_hash"]:
                return False
            pair = ids.entry_row_id(UUID(data["task_id"]), data["content_hash"]), data["id"]
        case "cua.step.created":
            pair = ids.step_id(UUID(owner), data["generation"], data["step"]), data["step_id"]
        case "cua.validation.recorded" if subject.startswith("rollout/"):
            pair = UUID(owner), data["rollout_id"]
        case "cua.validator.stated":
            names = ("task_id", "validator_type", "validation_query", "validation_method", "config")
            pair = ids.validator_row_id([data[name] for name in names]), data["id"]
        case "cua.group.created":
            pair = ids.group_id(UUID(data["source_id"]), data["group_num"]), data["group_id"]
        case "cua.evaluation.created" | "cua.scoring.created" if event_training not in {
            None,
            data["training_id"],
        }:
            return False
        case "cua.evaluation.created" if None in (data["training_id"], data["generation"]):
            return True
        case "cua.evaluation.created" if data["kind"] == "baseline":
            training, generation = UUID(data["training_id"]), data["generation"]
            pair = ids.baseline_id(training, generation, data.get("temperature")), owner
        case "cua.evaluation.created" if data["kind"] == "scheduled":
            training, generation = UUID(data["training_id"]), data["generation"]
            expected = ids.eval_id(training, generation, data["step"], data.get("temperature"))
            pair = expected, owner
        case _:
            return True
    return str(pair[0]) == pair[1]


def defined_as_stated(data: dict[str, Any]) -> bool:
    """Whether a task's fields are those of the definition that its id hashes."""
    definition = data.get("definition")
    if definition is None:
        return False
    rest: dict[str, Any] = {"validation_type": "shell", "prerequisites": []}
    if definition["validation_query"] is None:
        rest["validation_type"] = None
    fields = data.keys() - {"id", "definition_hash", "definition"}
    return ids.content_hash(definition) == data["definition_hash"] and all(
        (rest | definition).get(name, "nothing") == data[name] for name in fields
    )
