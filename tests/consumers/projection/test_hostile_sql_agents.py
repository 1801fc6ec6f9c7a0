"""What models, data sets and databases may say is a row or a parked record, and never a stop."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from consumers.database.connection import connected
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from schemas.entry import EntryContent, entry_hash
from schemas.ids import entry_row_id
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import Shape, history
from tests.reference_fold.reference import fold
from tests.reference_fold.writers import LoggedEvent
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import one as one_value

pytestmark = pytest.mark.services

SMALL = Shape(steps=1, groups=1, group_size=1, turns=1, has_trouble=False)
Data = dict[str, Any]
MEGABYTES = 10
LONG = "SELECT 'x' -- " + "y" * (MEGABYTES << 20)
DEEP: Any = 1
for _ in range(150):
    DEEP = [DEEP]


Change = Callable[[bytes], bytes]
"""Of the first record of a type, as the log has it."""


def told(name: str, type_: str, change: Change) -> Iterator[LoggedEvent]:
    """A small training of this name in which the first event of a type says something else."""
    is_changed = False
    for event in history(name, 1, SMALL):
        value = event.value
        if not is_changed and f'"type":"{type_}"'.encode() in value:
            value, is_changed = change(value), True
            assert value != event.value
        yield LoggedEvent(event.subject, value)
    assert is_changed


def saying(change: Callable[[Data], object]) -> Change:
    """Another payload."""

    def edited(value: bytes) -> bytes:
        event = json.loads(value)
        change(event["data"])
        if event["type"] == "cua.entry.stated":
            tell_honestly(event["data"])
        return json.dumps(event).encode()

    return edited


def replaced(old: bytes, new: bytes) -> Change:
    """Other bytes."""
    return lambda value: value.replace(old, new)


def tell_honestly(data: Data) -> None:
    """The hash and id of what an entry now says."""
    data["content_hash"] = entry_hash(EntryContent.model_validate(data["content"]))
    data["id"] = str(entry_row_id(data["task_id"], data["content_hash"]))


def rows_of_entry(rows: list[list[Any]]) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        data["content"]["table_info"]["rows"] = rows

    return change


def set_(name: str, value: object) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        data[name] = value

    return change


def set_sql_of_turn(sql: str) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        data["text"] = data["model_response"] = sql
        for action in data["actions"]:
            action["action"] = {"type": "execute_sql", "sql": sql}
            action["tool_args"] = {sql[:50]: sql}
            action["error_type"], action["error_message"] = "runtime", sql

    return change


def set_of_step(name: str, value: object) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        data["steps"][0][name] = value

    return change


APPLIED = {
    "ten megabytes of SQL in a turn": ("cua.rollout.turn_taken", set_sql_of_turn(LONG)),
    "NUL in SQL": ("cua.rollout.turn_taken", set_sql_of_turn("SELECT '\x00', '\\u0000' \x01\x7f")),
    "COPY's own escapes": ("cua.rollout.turn_taken", set_sql_of_turn("\\.\n\\N\t\\\\x00\r\n")),
    "ten megabytes of answer": ("cua.session.ended", set_("answer", LONG)),
    "NUL in an answer and an error": ("cua.session.ended", set_("error_message", "a\x00b")),
    "ten megabytes of completion": ("cua.completion.executed", set_("sql", LONG)),
    "a reward without a number": ("cua.completion.executed", set_("outcome_reward", "NaN")),
    "an infinite reward": ("cua.completion.executed", set_("process_reward", "-Infinity")),
    "sums of scores without a number": ("cua.completion.steps_scored", set_("product", "NaN")),
    "ten megabytes of step": ("cua.completion.steps_scored", set_of_step("text", LONG)),
    "a skill of NUL and quotes": ("cua.training.skills_measured", set_("trained_skill", "\x00'")),
    "numbers beyond any column": (
        "cua.entry.stated",
        rows_of_entry([[10**40, -(10**400)], [2.5e-300, 5e-324], [2**63, -0.0]]),
    ),
    "numbers that are none": ("cua.entry.stated", rows_of_entry([["NaN", "Infinity"]])),
    "values of every kind": (
        "cua.entry.stated",
        rows_of_entry([[None, True], ["a\x00b", {"\x00": ["\x00"]}], [[], {}]]),
    ),
    "deep values": ("cua.entry.stated", rows_of_entry([[DEEP]])),
    "ten megabytes of value": ("cua.entry.stated", rows_of_entry([[LONG]])),
    "rows of other lengths than there are columns": (
        "cua.entry.stated",
        rows_of_entry([[], [1], [1, 2, 3]]),
    ),
}
"""What is applied, although no agent should say it."""
PARKED = {
    "a score that is no number": (
        "cua.completion.steps_scored",
        set_of_step("score", "NaN"),
        "invalid",
    ),
    "a score above 1": ("cua.completion.steps_scored", set_of_step("score", 1.5), "invalid"),
    "a step told twice": ("cua.completion.steps_scored", set_of_step("index", 1), "invalid"),
    "a scorer with NUL": ("cua.completion.steps_scored", set_("scorer", "a\x00"), "invalid"),
    "a scorer too long for an index": (
        "cua.completion.steps_scored",
        set_("scorer", "é" * 501),
        "invalid",
    ),
    "a token beyond its column": (
        "cua.completion.steps_scored",
        set_of_step("last_token", 2**31),
        "invalid",
    ),
    "rows beyond their column": ("cua.completion.executed", set_("num_rows", 2**31), "invalid"),
    "rounds beyond their column": ("cua.session.ended", set_("num_rounds", 2**40), "invalid"),
    "an outcome that is none": ("cua.session.ended", set_("outcome", "fine"), "invalid"),
    "a skill told twice": (
        "cua.training.skills_measured",
        lambda data: data["skills"].append(data["skills"][0]),
        "invalid",
    ),
}
"""What is parked, with the kind of its reason."""


DEEPER = b"[" * 1_000 + b"1" + b"]" * 1_000
UNREADABLE = {
    "half a character in an entry": (
        "cua.entry.stated",
        replaced(b'"evidence":null', b'"evidence":"\\ud800"'),
    ),
    "half a character in a session": (
        "cua.session.ended",
        replaced(b'"error_message":null', b'"error_message":"\\udc00\\ud800"'),
    ),
    "values too deep for any reader": (
        "cua.entry.stated",
        replaced(b'"rows":[[2001,', b'"rows":[[' + DEEPER + b","),
    ),
}
"""What is no JSON that a reader takes."""


def test_what_an_agent_may_say_becomes_rows_that_a_rebuild_gives_too(migrated_url: str) -> None:
    log = MemoryLog()
    for name, (type_, change) in APPLIED.items():
        for item in told(name, type_, saying(change)):
            log.append(item.subject, item.value)

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    assert one_value(migrated_url, "SELECT count(*) FROM cua.unapplied_record") == 0
    reference = fold((record.key, record.value) for record in log.records)
    assert reference.count("parked") == 0
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []
    assert verify(MemoryReader(log), migrated_url).equal


def test_what_cannot_be_a_row_is_parked_and_stops_no_other_stream(migrated_url: str) -> None:
    changes = {name: (type_, saying(change)) for name, (type_, change, _) in PARKED.items()}
    log, names = MemoryLog(), {}
    for name, (type_, change) in (changes | UNREADABLE).items():
        for item in told(name, type_, change):
            log.append(item.subject, item.value)
            names[item.subject] = name

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT stream, kind FROM cua.unapplied_record WHERE kind <> 'behind'")
        unapplied = [(names[stream], kind) for stream, kind in cursor.fetchall()]
    unreadable = dict.fromkeys(UNREADABLE, "unreadable")
    assert dict(unapplied) == {name: kind for name, (*_, kind) in PARKED.items()} | unreadable
    assert len(unapplied) == len(PARKED) + len(UNREADABLE), "one record each"
    result = rebuild(MemoryReader(log), migrated_url)
    assert (result.equal, result.changed) == (True, 0)
