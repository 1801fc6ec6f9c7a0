"""`/api` and paths below: which of the tables' facts each answers, as JSON."""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from unicodedata import normalize
from urllib.parse import unquote
from uuid import UUID

from sqlalchemy.orm import Session

from consumers.monitor.answer import API, JSON, Answer, failure
from consumers.monitor.api.openapi import openapi
from consumers.monitor.api.rollout import rollout_facts
from consumers.monitor.api.step import step_facts
from consumers.monitor.api.training import training_facts, training_list
from consumers.monitor.api.value import Value
from consumers.monitor.table_reader import TableReader, UnreadableError
from consumers.queries import get_rollout_by_rollout_id, get_training_by_run_name
from consumers.tables import Rollout, Step


def api_answer(path: str, tables: TableReader, clock: Callable[[], datetime]) -> Answer:
    """The answer to `/api` or a path below, without its query; 404 and 503 are JSON, too."""
    if path in {API, API.rstrip("/"), f"{API}openapi.json"}:
        return Answer(HTTPStatus.OK, JSON, _openapi())
    kind, _, name = path.removeprefix(API).partition("/")
    try:
        facts = tables.read_soon(lambda session: _facts(session, kind, unquote(name), clock()))
    except UnreadableError as error:
        return failure(HTTPStatus.SERVICE_UNAVAILABLE, f"{error.title}: {error}")
    if facts is None:
        return failure(HTTPStatus.NOT_FOUND, _not_found(kind, name))
    return Answer(HTTPStatus.OK, JSON, facts.model_dump_json().encode())


def _facts(session: Session, kind: str, name: str, now: datetime) -> Value | None:
    if "\0" in name:  # PostgreSQL has no such text
        return None
    if kind == "trainings" and not name:
        return training_list(session, now)
    if kind == "trainings":
        training = get_training_by_run_name(session, normalize("NFC", name))
        return None if training is None else training_facts(session, training, now)
    if kind == "steps" and (step_id := _row_id(name)) is not None:
        step = session.get(Step, step_id)
        return None if step is None else step_facts(session, step)
    if kind == "rollouts":
        row_id = _row_id(name)
        rollout = (
            get_rollout_by_rollout_id(session, name)
            if row_id is None
            else session.get(Rollout, row_id)
        )
        return None if rollout is None else rollout_facts(session, rollout)
    return None


def _row_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _not_found(kind: str, name: str) -> str:
    known = {
        "trainings": "no training has this name; /api/trainings lists them",
        "steps": "no step has this row id; the answer of its training lists them",
        "rollouts": "no rollout has this id; the answer of its step lists them",
    }
    if kind not in known or not name:
        return "there is no such path; /api/openapi.json lists them"
    return f"{known[kind]}. It may not be projected yet"


@lru_cache(maxsize=1)
def _openapi() -> bytes:
    return openapi()
