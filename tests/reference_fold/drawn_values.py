"""Events whose every field is drawn from its schema, but for those that other events depend on.

So no two columns that a projector fills from different fields hold the same values, and one that
swaps them, or forgets one, writes other rows.
"""

import json
from functools import cache
from random import Random
from typing import Any
from uuid import UUID

from schemas import ids
from schemas.base import Payload
from schemas.entry import EntryContent, entry_hash
from schemas.json_schemas import read_schema
from schemas.task import TaskStated
from tests.support.defined_task import defined
from tests.support.schema_values import draw

KEPT: dict[str, str] = {
    "cua.training.created": "run_name",
    "cua.training.resumed": "generation",
    "cua.training.step_superseded": "step_id group_ids",
    "cua.task.stated": "task_id",
    "cua.validator.stated": "task_id",
    "cua.step.created": "step_id generation step",
    "cua.step.samples_chosen": "step_id samples.rollout_id samples.group_id",
    "cua.group.created": "group_id source_type source_id group_num",
    "cua.evaluation.created": "kind training_id generation step temperature",
    "cua.evaluation.superseded": "kind group_ids",
    "cua.rollout.created": "rollout_id source_type source_id group_id",
    "cua.rollout.environment_requested": "env_id",
    "cua.rollout.turn_taken": "turn tokens.prompt_extends tokens.prompt_images",
    "cua.validation.recorded": "rollout_id validator_id",
    "cua.entry.stated": "task_id",
    "cua.completion.steps_scored": "scorer steps.index",
    "cua.training.skills_measured": "evaluation_id skills.skill",
    "cua.annotation.recorded": "training_id",
    "cua.scoring.created": "training_id",
    "cua.scoring.rollout_scored": "rollout_id",
    "cua.checkpoint.saved": "step_id generation step",
}
"""Type -> fields that name rows or streams, or on whose order something depends."""
KEPT_BY_KIND = {"step": "step_id", "group": "group_id", "evaluation": "kind"}
"""Second word of a type -> the same, of its types that are not listed."""
SHARED = ("cua.task.stated", "cua.validator.stated", "cua.entry.stated")
"""Any training may state them, and in the same words."""


@cache
def _schema(type_: str, version: int) -> dict[str, Any]:
    return dict(read_schema(type_, version))


def drawn(payload: Payload, random: Random) -> Payload:
    """The same fact about the same things, with everything else drawn."""
    type_ = payload.TYPE
    said: dict[str, Any] = json.loads(payload.model_dump_json())
    kept = KEPT.get(type_, KEPT_BY_KIND.get(type_.split(".")[1], "")).split()
    if type_ == "cua.evaluation.created" and said["kind"] != "scheduled":
        kept.remove("step")
    source = Random(f"{type_}{said['task_id']}") if type_ in SHARED else random
    schema = _schema(type_, payload.VERSION)
    new = draw(schema, source)
    for name in {path.split(".")[0] for path in kept if "." in path}:
        if isinstance(said[name], list):
            items = schema["properties"][name]["items"]
            new[name] = [draw(items, source, schema) for _ in said[name]]
    for path in kept:
        _keep(new, said, path.split("."))
    if type_ == "cua.task.stated":
        return defined(TaskStated.model_validate(new))
    if type_ == "cua.validator.stated":
        names = ("task_id", "validator_type", "validation_query", "validation_method", "config")
        new["id"] = str(ids.validator_row_id([new[name] for name in names]))
    if type_ == "cua.entry.stated":
        new["content_hash"] = entry_hash(EntryContent.model_validate(new["content"]))
        new["id"] = str(ids.entry_row_id(UUID(new["task_id"]), new["content_hash"]))
    return type(payload).model_validate(new)


def _keep(new: dict[str, Any], said: dict[str, Any], path: list[str]) -> None:
    name, *rest = path
    if not rest:
        new[name] = said[name]
    elif said[name] is None:
        new[name] = None
    elif isinstance(said[name], list):
        for one, other in zip(new[name], said[name], strict=True):
            _keep(one, other, rest)
    elif new[name] is None:
        new[name] = said[name]
    else:
        _keep(new[name], said[name], rest)


def named(kind: str, *key: object) -> UUID:
    """An id for something that only a test names."""
    return ids.natural_id(f"test-{kind}", *key)
