"""Routes: the answer to each path."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from consumers.database.revision import Age, look
from consumers.database.shape import describe, missing
from consumers.errors import CuaProjectError, MismatchError, UnreachableError
from consumers.monitor import layout
from consumers.monitor.blobs import NoScreenshotError, ScreenshotStore
from consumers.monitor.evaluation import evaluation_page
from consumers.monitor.html import tag
from consumers.monitor.layout import Document
from consumers.monitor.overview import WHOLE_PATH, overview_page
from consumers.monitor.rollout import rollout_page
from consumers.monitor.step import step_page
from consumers.monitor.training import training_page

ENTITY_PATH = re.compile(
    r"/(training|step|baseline|eval|rollout)/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
BLOB_PATH = re.compile(r"/blob/([0-9a-f]{64})")
HTML = "text/html; charset=utf-8"
NO_STORE, FOR_EVER = "no-store", "private, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response."""

    code: int
    content_type: str
    content: bytes
    cache: str = NO_STORE


class Pages:
    """Answers paths. Thread-safe: each answer has its own session."""

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        store: ScreenshotStore,
        clock: Callable[[], datetime],
        refresh_s: int = layout.REFRESH_S,
    ) -> None:
        """`open_engine` finds the database; called again after the connection is lost.

        `refresh_s`: seconds after which a page of something unfinished reloads itself.
        """
        self._open_engine = open_engine
        self._store = store
        self._clock = clock
        self._refresh_s = refresh_s
        self._engine: Engine | None = None

    def answer(self, path: str) -> Answer:
        """The answer to a path without its query; an unreachable database has one too."""
        if path == "/style.css":
            return Answer(
                200,
                "text/css; charset=utf-8",
                files("consumers.monitor").joinpath("style.css").read_bytes(),
            )
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
            page = self._page_with_one_retry(path)
        except UnreachableError as error:
            return _notice(503, "The database is unreachable", str(error))
        except ProgrammingError:
            return self._without_tables()
        if page is None:
            return _notice(404, "Not found", "No row has this id; it may not be projected yet.")
        return Answer(200, HTML, page.text(self._refresh_s).encode())

    def _without_tables(self) -> Answer:
        """Why the tables cannot be read: none yet, of another version, or not whole."""
        if self._engine is not None:
            url = self._engine.url.render_as_string(hide_password=False)
            try:
                revision = look(url)
                if revision.age is not Age.EMPTY:
                    revision.require_current()
                    raise MismatchError(describe(missing(url)))
            except UnreachableError as error:
                return _notice(503, "The database is unreachable", str(error))
            except CuaProjectError as error:
                return _notice(503, "The tables cannot be read", str(error))
        return _notice(
            503,
            "There are no tables yet",
            "`cua-project up` or `cua-project run` creates them and fills them from the log.",
        )

    def _page_with_one_retry(self, path: str) -> Document | None:
        try:
            return self._page(path)
        except OperationalError:
            # The server has stopped. Finding the database again restarts an embedded one.
            if self._engine is not None:
                self._engine.dispose()
            self._engine = None
        try:
            return self._page(path)
        except OperationalError as error:
            first = str(error.orig).strip().splitlines()[0]
            message = f"PostgreSQL does not answer: {first}"
            raise UnreachableError(message) from None

    def _page(self, path: str) -> Document | None:
        if self._engine is None:
            self._engine = self._open_engine()
        with Session(self._engine.execution_options(postgresql_readonly=True)) as session:
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
