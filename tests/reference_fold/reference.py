"""The reference fold: the tables, computed from the log's bytes as plainly as possible.

Independent of the code it tests: it imports nothing of consumers and, of schemas, only the ids. It
reads raw JSON into plain dicts, one record at a time; no batches, no database, no merging.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from schemas import ids
from tests.reference_fold.reference_basis import MadeAlreadyError
from tests.reference_fold.reference_rows import ROWS
from tests.reference_fold.reference_sql_rows import entry_hash
from tests.reference_fold.reference_states import entity_of, transition

Row = dict[str, Any]
Tables = dict[str, dict[str, Row]]

TABLES = [
    "training",
    "baseline",
    "eval",
    "task",
    "validator",
    "step",
    "group",
    "rollout",
    "turn",
    "action",
    "obs",
    "validation",
    "environment",
    "sample",
    "status_history",
    "annotation",
    "scoring",
    "score",
    "entry",
    "session",
    "completion",
    "completion_score",
    "step_score",
    "skill_success",
]  # easier to compare with tables.md


class ParkedError(Exception):
    """The event cannot be applied; its stream stops here."""


class StreamFold:
    """One stream, record by record."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.epoch, self.sequence, self.source = 0, 0, ""
        self.last_of: dict[int, int] = {}
        self.refused: set[tuple[int, str]] = set()
        self.waiting: list[dict[str, Any]] = []
        self.statuses: dict[tuple[str, str], str] = {}
        """Of everything that the stream has made, ended or not."""
        self.is_parked = False
        self.duplicates = 0
        self.fenced = 0
        self.parked = 0

    def take(self, value: bytes, tables: Tables) -> None:
        """The next record of the stream, as the log has it."""
        if self.is_parked:
            self.parked += 1
            return
        try:
            event = json.loads(value)
            datetime.fromisoformat(event["time"])
        except (ValueError, KeyError, TypeError):
            self._park()
            return
        self._consider(event, tables)
        moved = True
        while moved and not self.is_parked:
            moved = False
            for event in sorted(
                self.waiting, key=lambda waiting: (waiting["epoch"], waiting["sequence"])
            ):
                if self._place(event) != "gap":
                    self.waiting.remove(event)
                    self._consider(event, tables)
                    moved = True
                    break

    def _park(self) -> None:
        self.is_parked = True
        self.parked += 1 + len(self.waiting)
        self.waiting.clear()

    def _place(self, event: dict[str, Any]) -> str:  # noqa: PLR0911  # one rule per line
        epoch, sequence, source = event["epoch"], event["sequence"], event["source"]
        if (epoch, source) in self.refused:
            return "fenced"
        if epoch < self.epoch:
            return "duplicate" if sequence <= self.last_of.get(epoch, 0) else "fenced"
        if epoch == self.epoch:
            if source != self.source:
                return "fenced"
            return (
                "duplicate"
                if sequence <= self.sequence
                else "next"
                if sequence == self.sequence + 1
                else "gap"
            )
        if sequence > 1:
            return "gap"
        continues = event.get("continues")
        if epoch == 1 and self.epoch == 0:
            return "fenced" if continues else "next"
        if not continues:
            return "fenced"
        old_epoch, old_sequence = (int(number) for number in continues.split("/"))
        if old_epoch != epoch - 1:
            return "fenced"
        if (old_epoch, old_sequence) == (self.epoch, self.sequence):
            return "next"
        return "gap" if (old_epoch, old_sequence) > (self.epoch, self.sequence) else "fenced"

    def _consider(self, event: dict[str, Any], tables: Tables) -> None:
        place = self._place(event)
        if place == "duplicate":
            self.duplicates += 1
        elif place == "gap":
            self.waiting.append(event)
        elif place == "fenced":
            self.fenced += 1
            if event["sequence"] == 1 and event["epoch"] > self.epoch:
                self.refused.add((event["epoch"], event["source"]))
        else:
            try:
                self._apply(event, tables)
            except ParkedError:
                self._park()
                return
            if event["epoch"] > self.epoch:
                self.last_of[self.epoch] = self.sequence
                self.epoch, self.source = event["epoch"], event["source"]
            self.sequence = event["sequence"]

    def _apply(self, event: dict[str, Any], tables: Tables) -> None:  # noqa: C901  # one rule after the other
        type_, data = event["type"], event["data"]
        owner = self.subject.split("/")[1]
        versions = {"1", "2"} if type_ == "cua.rollout.turn_taken" else {"1"}
        if type_ not in ROWS or event["dataschema"].split(":")[-1] not in versions:
            raise ParkedError(type_)
        entity, new = entity_of(type_, data, owner)
        old = self.statuses.get(entity) if entity else None
        if (
            entity
            and entity[1] == owner
            and old is None
            and not type_.endswith(".created")
            and type_ != "cua.environment.requested"
        ):
            raise ParkedError(type_)
        if any(item not in self.statuses for item in presupposed(type_, data, owner)):
            raise ParkedError(type_)
        moved = False
        if entity and new:
            allowed = transition(entity[0], old, new, resumes=type_ == "cua.training.resumed")
            if allowed is None:
                raise ParkedError(type_)
            moved = allowed
        claimed = event.get("trainingid")
        if self.subject.startswith("training/") and claimed not in {None, owner}:
            raise ParkedError(type_)
        if self.subject.split("/")[0] not in HOMES[type_.split(".")[1]].split() or not ids_agree(
            type_, data, owner, self.subject, claimed
        ):
            raise ParkedError(type_)
        # Under a step's id its groups would have the ids of the step's: it has no rows.
        has_rows = not (self.subject.startswith("evaluation/") and owner in tables["step"])
        if not has_rows and type_.split(".")[1] not in {"task", "validator", "entry"}:
            self.statuses |= {entity: new} if entity and new and moved else {}
            return
        tables["news"] = {}
        try:
            ROWS[type_](tables, data, event, owner)
        except MadeAlreadyError:
            raise ParkedError(type_) from None
        finally:
            news = tables.pop("news")
        for table, rows in news.items():
            tables[table].update(rows)
        if entity:
            self._move(tables, event, entity, old, new if moved else None)

    def _move(
        self,
        tables: Tables,
        event: dict[str, Any],
        entity: tuple[str, str],
        old: str | None,
        new: str | None,
    ) -> None:
        table, key = entity
        row = tables[table].get(key)
        if row is not None:
            row["updated_at"] = moment(event["time"])
        if new is None:
            return
        self.statuses[entity] = new
        assert row is not None
        row["status"] = new
        if (
            table != "environment"
            and old == "pending"
            and new not in {"completed", "failed", "cancelled", "terminated", "error"}
        ):
            row["start_time"] = moment(event["data"].get("started_at") or event["time"])
        data = event["data"]
        percent = (
            data["progress"]["percent"]
            if "progress" in data
            else data.get("progress_percent", 0.0 if old is None else None)
        )
        key_of_row = str(
            ids.natural_id("status_history", table, UUID(key), event["epoch"], event["sequence"])
        )
        tables["status_history"][key_of_row] = {
            "id": key_of_row,
            "entity_type": table,
            "entity_id": key,
            "old_status": old,
            "new_status": new,
            "progress_percent": percent,
            "status_message": next(
                (
                    data[name]
                    for name in ("status_message", "error_message", "reason")
                    if data.get(name) is not None
                ),
                None,
            ),
            "metadata_json": {"type": event["type"]},
            "changed_at": moment(event["time"]),
            "created_at": moment(event["time"]),
            "stream": event["subject"],
            "epoch": event["epoch"],
            "sequence": event["sequence"],
        }


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
        return True
    rest: dict[str, Any] = {"validation_type": "shell", "prerequisites": []}
    if definition["validation_query"] is None:
        rest["validation_type"] = None
    fields = data.keys() - {"id", "definition_hash", "definition"}
    return ids.content_hash(definition) == data["definition_hash"] and all(
        (rest | definition).get(name, "nothing") == data[name] for name in fields
    )


def moment(text: str) -> datetime:
    """A time of the log."""
    return datetime.fromisoformat(text).astimezone(UTC)


class Reference:
    """The tables, and what is held."""

    def __init__(self) -> None:
        self.tables: Tables = {name: {} for name in TABLES}
        self.streams: dict[str, StreamFold] = {}
        self.lost = 0
        """Records that name no stream."""

    def take(self, key: str | None, value: bytes) -> None:
        """One record of the log; a stream is all that orders them."""
        try:
            subject = json.loads(value)["subject"]
        except (ValueError, KeyError, TypeError):
            subject = None
        if subject is not None and key is not None and subject != key:
            value, subject = b"", key
        name = subject or key
        if name is None:
            self.lost += 1
            return
        self.streams.setdefault(name, StreamFold(name)).take(value, self.tables)

    def count(self, name: str) -> int:
        """A counter, over all streams."""
        return sum(getattr(stream, name) for stream in self.streams.values())


def fold(records: Iterable[tuple[str | None, bytes]]) -> Reference:
    """A whole log."""
    reference = Reference()
    for key, value in records:
        reference.take(key, value)
    return reference
