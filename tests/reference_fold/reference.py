"""The reference fold: the tables, computed from the log's bytes as plainly as possible.

Independent of the code it tests: it imports nothing of consumers and, of schemas, only the ids. It
reads raw JSON into plain dicts, one record at a time; no batches, no database, no merging.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from schemas import ids
from tests.reference_fold.reference_basis import MadeAlreadyError
from tests.reference_fold.reference_ownership import HOMES, ids_agree, presupposed
from tests.reference_fold.reference_rows import ROWS
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


def decision_in(value: bytes) -> dict[str, Any] | None:
    """The operator's decision in a record, if it is one."""
    try:
        event = json.loads(value)
        is_decision = event["type"] in DECISIONS
    except (ValueError, KeyError, TypeError):
        return None
    return event if is_decision else None


DECISIONS = [
    f"cua.operator.{name}"
    for name in ("record_dropped", "rest_dropped", "gap_dropped", "drop_undone")
]
Taken = tuple[int, bytes]
"""A record's number in its stream, and its value."""


class ParkedError(Exception):
    """The event cannot be applied; its stream stops here."""


class StreamFold:
    """One stream, record by record."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.epoch, self.sequence, self.source = 0, 0, ""
        self.last_of: dict[int, int] = {}
        self.refused: set[tuple[int, str]] = set()
        self.waiting: list[tuple[dict[str, Any], Taken]] = []
        self.statuses: dict[tuple[str, str], str] = {}
        """Of everything that the stream has made, ended or not."""
        self.taken = 0
        self.unapplied: list[Taken] = []
        """Parked, or given up with the rest of the stream."""
        self.is_parked = False
        self.is_given_up = False
        self.dropped: dict[str, str] = {}
        """SHA-256 of a value -> record_dropped or rest_dropped."""
        self.duplicates = 0
        self.fenced = 0

    @property
    def parked(self) -> int:
        """How many records are parked."""
        return len(self.unapplied) if self.is_parked else 0

    def take(self, value: bytes, tables: Tables) -> None:
        """The next record of the stream, as the log has it."""
        self.taken += 1
        self._take((self.taken, value), tables)

    def _take(self, taken: Taken, tables: Tables) -> None:
        decision = decision_in(taken[1])
        if decision is not None:
            self._decide(decision, tables)
        elif self.is_parked or self.is_given_up:
            self.unapplied.append(taken)
            return
        else:
            try:
                event = json.loads(taken[1])
                datetime.fromisoformat(event["time"])
                is_event = not event["type"].startswith("cua.operator.")
            except (ValueError, KeyError, TypeError):
                is_event = False
            if not is_event:
                if not self._is_dropped(taken):
                    self._park(taken)
                return
            self._consider(event, taken, tables)
        moved = True
        while moved and not self.is_parked and not self.is_given_up:
            moved = False
            for event, waiting in sorted(
                self.waiting, key=lambda pair: (pair[0]["epoch"], pair[0]["sequence"])
            ):
                if self._place(event) != "gap":
                    self.waiting.remove((event, waiting))
                    self._consider(event, waiting, tables)
                    moved = True
                    break

    def _decide(self, decision: dict[str, Any], tables: Tables) -> None:
        """An operator's decision. What it lets through is taken as if it came only now."""
        what, data = decision["type"].removeprefix("cua.operator."), decision["data"]
        if what == "gap_dropped":
            before = (data["from_epoch"], data["from_sequence"])
            if (self.epoch, self.sequence) == before and self.waiting:
                first = min(
                    (event for event, _ in self.waiting),
                    key=lambda event: (event["epoch"], event["sequence"]),
                )
                self._go_before(first)
            return
        if what == "drop_undone":
            if self.dropped.get(data["value_sha256"]) != "rest_dropped":
                return
            del self.dropped[data["value_sha256"]]
            self.is_parked, self.is_given_up = self.is_parked or self.is_given_up, False
        else:
            self.dropped.setdefault(data["value_sha256"], what)
        if self.is_parked:
            self.is_parked, again, self.unapplied = False, sorted(self.unapplied), []
            for taken in again:
                self._take(taken, tables)

    def _go_before(self, event: dict[str, Any]) -> None:
        """As if everything before this event had been taken."""
        continues = event.get("continues") if event["sequence"] == 1 else None
        epoch, sequence = event["epoch"], event["sequence"] - 1
        if continues:
            epoch, sequence = (int(number) for number in continues.split("/"))
        if epoch > self.epoch:
            self.last_of[self.epoch] = self.sequence
            self.epoch, self.source = epoch, event["source"] if epoch == event["epoch"] else ""
        self.sequence = sequence

    def _is_dropped(self, taken: Taken) -> bool:
        what = self.dropped.get(sha256(taken[1]).hexdigest())
        if what == "rest_dropped":
            self.is_given_up = True
            self._set_aside(taken)
        return what is not None

    def _park(self, taken: Taken) -> None:
        self.is_parked = True
        self._set_aside(taken)

    def _set_aside(self, taken: Taken) -> None:
        self.unapplied = [taken, *(waiting for _, waiting in self.waiting)]
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

    def _consider(self, event: dict[str, Any], taken: Taken, tables: Tables) -> None:
        place = self._place(event)
        if place == "duplicate":
            self.duplicates += 1
        elif place == "gap":
            self.waiting.append((event, taken))
        elif place == "fenced":
            self.fenced += 1
            if event["sequence"] == 1 and event["epoch"] > self.epoch:
                self.refused.add((event["epoch"], event["source"]))
        else:
            try:
                if not self._is_dropped(taken):
                    self._apply(event, tables)
            except ParkedError:
                self._park(taken)
                return
            if self.is_given_up:
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


def moment(text: str) -> datetime:
    """A time of the log."""
    return datetime.fromisoformat(text).astimezone(UTC)


class Reference:
    """The tables, and what is not applied."""

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
