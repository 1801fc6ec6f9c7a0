"""What every handler of the reference fold uses: new rows, changed rows, copied fields."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]
Tables = dict[str, dict[str, Row]]
Handler = Callable[[Tables, Row, Row, str], None]

ETA = (
    ("avg_turn_time", "avg_turn_time_s"),
    ("estimated_total_time", "estimated_total_time_s"),
    ("estimated_remaining_time", "estimated_remaining_time_s"),
)


def time(text: str) -> datetime:
    """A time of the log."""
    return datetime.fromisoformat(text).astimezone(UTC)


ONCE = {"turn", "action", "obs", "sample", "validation", "validator", "annotation", "score"}
ONCE |= {"session", "completion", "completion_score", "step_score", "skill_success"}
"""Tables whose rows never change."""


class MadeAlreadyError(Exception):
    """A row is made twice."""


def put(tables: Tables, table: str, event: Row, **columns: Any) -> None:
    """A new row, made and changed at the event's time.

    It comes to stand in the tables when the whole event is understood.
    """
    news = tables["news"]
    if table not in {"task", "validator", "entry"} and (
        columns["id"] in tables[table] or columns["id"] in news.get(table, {})
    ):
        raise MadeAlreadyError
    row = {"created_at": time(event["time"])} | columns
    if table not in ONCE:
        row.setdefault("updated_at", time(event["time"]))
    news.setdefault(table, {})[str(columns["id"])] = row


def change(tables: Tables, table: str, key: str, event: Row, **columns: Any) -> None:
    """Columns of a row that is there."""
    if key in tables[table]:
        tables[table][key].update(columns, updated_at=time(event["time"]))


def progress(data: Row) -> Row:
    """The columns of a stated progress."""
    stated = data["progress"]
    return {"progress_percent": stated["percent"]} | {
        column: stated.get(name) for column, name in ETA
    }


def source(data: Row) -> Row:
    """step_id, eval_id or baseline_id."""
    return {"source_type": data["source_type"], data["source_type"] + "_id": data["source_id"]}


def pick(data: Row, names: str) -> Row:
    """Fields that are columns of the same name."""
    return {name: data[name] for name in names.split()}


def same(table: str, key: str, names: str = "", phase: str | None = None, **times: str) -> Handler:
    """A handler that copies fields: `names` as they are, `times` (column=field) as times."""

    def handler(tables: Tables, data: Row, event: Row, owner: str) -> None:
        columns = pick(data, names) | {column: time(data[field]) for column, field in times.items()}
        if phase:
            columns["current_phase"] = phase
        if "progress" in data:
            columns |= progress(data)
        change(tables, table, owner if key == "owner" else data[key], event, **columns)

    return handler


def ended(message: str, name: str, end: str = "ended_at", column: str = "end_time") -> Handler:
    """A handler of an end: a message in a column, and when."""

    def handler(tables: Tables, data: Row, event: Row, owner: str) -> None:
        word = event["type"].split(".")[1]
        table = (
            ("baseline" if data["kind"] == "baseline" else "eval") if word == "evaluation" else word
        )
        change(tables, table, owner, event, **{message: data.get(name), column: time(data[end])})

    return handler
