"""What each event of an SQL agent does to rows, for the reference fold."""

from uuid import UUID

from schemas import ids
from tests.reference_fold.reference_basis import Row, Tables, pick, put, time


def entry_hash(content: Row) -> str:
    """Of what an entry says beyond what every entry has unless it says otherwise."""
    return ids.content_hash(
        {
            name: value
            for name, value in content.items()
            if value is not None and (name, value) != ("skills", [])
        }
    )


def entry(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    known = tables["entry"].get(data["id"], {})
    now, content = time(event["time"]), data["content"]
    table = content.get("table_info") or {}
    columns = {
        "table_name": table.get("name"),
        "columns_json": table.get("columns"),
        "rows_json": table.get("rows"),
        "answer_direct_json": content.get("answer_direct"),
        "skills": content.get("skills", []),
    }
    for name in ("database", "database_sha256", "evidence", "answer_md5", "sql", "difficulty"):
        columns[name] = content.get(name)
    put(
        tables,
        "entry",
        event,
        **pick(data, "id task_id content_hash"),
        **pick(content, "kind entry_id instruction"),
        **columns,
        created_at=min(known.get("created_at", now), now),
        updated_at=max(known.get("updated_at", now), now),
    )


def session(tables: Tables, data: Row, event: Row, owner: str) -> None:
    names = (
        "entry_id session_status outcome answer table_hash num_rounds num_operations num_sql_errors"
        " num_replayed error_message"
    )
    ended = time(data["ended_at"])
    put(tables, "session", event, id=owner, end_time=ended, **pick(data, names))


def completion(tables: Tables, data: Row, event: Row, owner: str) -> None:
    names = "entry_id sql num_steps outcome outcome_reward process_reward num_rows error_message"
    put(
        tables,
        "completion",
        event,
        id=owner,
        execution_time=data["execution_time_s"],
        executed_at=time(data["executed_at"]),
        **pick(data, names),
    )


def completion_steps(tables: Tables, data: Row, event: Row, owner: str) -> None:
    scorer = data["scorer"]
    of = {"completion_id": owner, "scorer": scorer}
    key = str(ids.natural_id("completion_score", UUID(owner), scorer))
    whole = pick(data, "product minimum last average") | {"scored_at": time(data["scored_at"])}
    put(tables, "completion_score", event, id=key, num_steps=len(data["steps"]), **of, **whole)
    for step in data["steps"]:
        put(
            tables,
            "step_score",
            event,
            id=str(ids.natural_id("step_score", UUID(owner), scorer, step["index"])),
            step_index=step["index"],
            **of,
            **pick(step, "text first_token last_token score label"),
        )


def skills(tables: Tables, data: Row, event: Row, owner: str) -> None:
    evaluation = UUID(data["evaluation_id"])
    for datum in data["skills"]:
        key = ids.natural_id("skill_success", UUID(owner), evaluation, datum["skill"])
        put(
            tables,
            "skill_success",
            event,
            id=str(key),
            training_id=owner,
            measured_at=time(data["measured_at"]),
            **pick(data, "evaluation_id generation step stage trained_skill"),
            **pick(datum, "skill num_sessions num_correct success_rate"),
        )
