"""A training as one HTML file for others: the monitor's pages with everything in them, bounded."""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from itertools import chain, zip_longest
from typing import NamedTuple
from uuid import UUID

from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.blobs import NoScreenshotError, ScreenshotStore
from consumers.monitor.html import Html, Node, render, tag
from consumers.monitor.plain_text import excerpt
from consumers.monitor.rollout import rollout_page
from consumers.monitor.training import training_page
from consumers.queries import (
    get_latest_completed_step,
    list_baselines_by_training,
    list_evals_by_training,
    list_rollouts_by_baseline,
    list_rollouts_by_eval,
    list_rollouts_by_step,
)
from consumers.tables import Rollout, Training

LINK = re.compile(r' href="([^"]*)"')
"""In markup of `tag`, where a quote in a text or a value is escaped."""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Limits(NamedTuple):
    """What bounds a report."""

    num_rollouts: int = 6
    num_steps: int = 1000
    """Of the table and of the curves."""
    picture_bytes: int = 12 * 2**20
    """Of PNG files; as text in the report they take a third more."""
    rollout_characters: int = 8 * 2**20
    """Of the rollouts without pictures; a rollout that would exceed it is left out."""


class Report(NamedTuple):
    """What was made."""

    html: str
    num_rollouts: int


class _Pictures:
    """Screenshots as data URLs, as far as there is room for them."""

    def __init__(self, store: ScreenshotStore, room_bytes: int) -> None:
        self._store = store
        self._left_bytes = room_bytes

    def size_px(self, digest: str) -> tuple[int, int]:
        """As the store's. NoScreenshotError, too, where the report has no room for it."""
        size = self._store.size_px(digest)
        num_bytes = len(self._store.read(digest))
        if num_bytes > self._left_bytes:
            message = f"no room for {digest}"
            raise NoScreenshotError(message)
        self._left_bytes -= num_bytes
        return size

    def url(self, digest: str) -> str:
        """The picture itself."""
        return f"data:image/png;base64,{b64encode(self._store.read(digest)).decode()}"


def training_report(
    session: Session, training: Training, store: ScreenshotStore, now: datetime, limits: Limits
) -> Report:
    """The report: the training's page, its configuration, and some of its rollouts."""
    page = training_page(session, training.id, now, limits.num_steps)
    assert page is not None  # noqa: S101  # its row is at hand
    pictures = _Pictures(store, limits.picture_bytes)
    shown: dict[str, tuple[UUID, str]] = {}
    room = limits.rollout_characters
    for rollout in _chosen(session, training, limits.num_rollouts):
        document = rollout_page(session, rollout.id, pictures)
        if document is not None and len(markup := _section(rollout, document)) <= room:
            shown[layout.path_of("rollout", rollout.id)] = rollout.id, markup
            room -= len(markup)
    body = tag(
        "main",
        tag("h1", excerpt(page.title)),
        tag("p", "Made by `cua-project report` at ", layout.moment(now), " UTC.", class_="faint"),
        *page.body,
        tag("h2", "Configuration"),
        tag(
            "details",
            tag("summary", "every setting of the last start"),
            tag("pre", excerpt(json.dumps(training.config_json, indent=2, ensure_ascii=False))),
        ),
        tag("h2", "Rollouts") if shown else None,
        *(Html(markup) for _, markup in shown.values()),
    )

    def inlined(link: re.Match[str]) -> str:
        path = link[1]
        if path.startswith("/blob/"):
            return f' href="{pictures.url(path.removeprefix("/blob/"))}"'
        return f' href="#{shown[path][0]}"' if path in shown else ""

    return Report(_whole(page.title, LINK.sub(inlined, render(body))), len(shown))


def _section(rollout: Rollout, document: layout.Document) -> str:
    heading = tag("h2", excerpt(document.title))
    return render(tag("section", heading, *document.body, id=str(rollout.id)))


def _whole(title: str, body: str) -> str:
    style = files("consumers.monitor").joinpath("style.css").read_text(encoding="utf-8")
    head: Sequence[Node] = (
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
    document = tag("html", tag("head", *head), tag("body", Html(body)), lang="en")
    return f"<!doctype html>{render(document)}\n"


def _chosen(session: Session, training: Training, most: int) -> list[Rollout]:
    """Of the last evaluation, or else of the last step: failed and solved ones in turn."""
    rollouts = next(filter(None, _sources(session, training)), ())
    solved = [rollout for rollout in rollouts if rollout.task_success]
    others = [rollout for rollout in rollouts if not rollout.task_success]
    in_turn = chain.from_iterable(zip_longest(others, solved))
    return [rollout for rollout in in_turn if rollout is not None][:most]


def _sources(session: Session, training: Training) -> "chain[Sequence[Rollout]]":
    evals = reversed(list_evals_by_training(session, training.id))
    step = get_latest_completed_step(session, training.id)
    baselines = reversed(list_baselines_by_training(session, training.id))
    return chain(
        (list_rollouts_by_eval(session, item.id) for item in evals),
        (list_rollouts_by_step(session, step.id) for step in (step,) if step is not None),
        (list_rollouts_by_baseline(session, item.id) for item in baselines),
    )
