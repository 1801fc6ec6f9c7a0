"""Routes: the answer to each path."""

import re
from collections.abc import Callable
from datetime import datetime
from importlib.resources import files
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.answer import FOR_EVER, Answer, is_api
from consumers.monitor.api.routes import api_answer
from consumers.monitor.blobs import NoScreenshotError, ScreenshotStore
from consumers.monitor.evaluation import evaluation_page
from consumers.monitor.html import tag
from consumers.monitor.layout import Document
from consumers.monitor.overview import WHOLE_PATH, overview_page
from consumers.monitor.rollout import rollout_page
from consumers.monitor.step import step_page
from consumers.monitor.table_reader import TableReader, UnreadableError
from consumers.monitor.training import training_page

ENTITY_PATH = re.compile(
    r"/(training|step|baseline|eval|rollout)/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
BLOB_PATH = re.compile(r"/blob/([0-9a-f]{64})")
HTML = "text/html; charset=utf-8"


class Pages:
    """Answers paths. Thread-safe: each answer has its own session."""

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        store: ScreenshotStore,
        clock: Callable[[], datetime],
    ) -> None:
        """`open_engine` finds the database; called again after the connection is lost."""
        self.tables = TableReader(open_engine)
        self._store = store
        self._clock = clock

    def answer(self, path: str) -> Answer:
        """The answer to a path without its query; an unreachable database has one too."""
        if path == "/style.css":
            return Answer(
                200,
                "text/css; charset=utf-8",
                files("consumers.monitor").joinpath("style.css").read_bytes(),
            )
        if is_api(path):
            return api_answer(path, self.tables, self._clock)
        if match := BLOB_PATH.fullmatch(path):
            return self._screenshot(match[1])
        if path not in {"/", WHOLE_PATH} and ENTITY_PATH.fullmatch(path) is None:
            return _notice(404, "Page not found", "Start at the list of trainings.")
        return self._rows(path)

    def _screenshot(self, digest: str) -> Answer:
        try:
            return Answer(200, "image/png", self._store.read(digest), FOR_EVER)
        except NoScreenshotError:
            return _notice(
                404, "Screenshot not found", "It is not in this installation's blob store."
            )

    def _rows(self, path: str) -> Answer:
        try:
            page = self.tables.read(lambda session: self._page(session, path))
        except UnreadableError as error:
            return _notice(503, error.title, str(error))
        if page is None:
            return _notice(404, "Not found", "No row has this id; it may not be projected yet.")
        return Answer(200, HTML, page.text().encode())

    def _page(self, session: Session, path: str) -> Document | None:
        match = ENTITY_PATH.fullmatch(path)
        if match is None:
            return overview_page(session, self._clock(), is_whole=path == WHOLE_PATH)
        kind, owner = match[1], UUID(match[2])
        if kind == "training":
            return training_page(session, owner, self._clock())
        if kind == "step":
            return step_page(session, owner)
        if kind == "rollout":
            return rollout_page(session, owner, self._store)
        return evaluation_page(session, kind, owner)


def _notice(code: int, title: str, text: str) -> Answer:
    return Answer(code, HTML, layout.page(title, tag("p", text)).text().encode())
