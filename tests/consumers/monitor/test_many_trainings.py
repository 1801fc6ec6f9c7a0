"""The list of trainings reloads itself every few seconds, so it has a bounded length."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.overview import LISTED
from consumers.monitor.pages import Pages
from consumers.tables import StreamState
from schemas.installation import read_installation
from tests.support.sample_rows import at, named, training_row

pytestmark = pytest.mark.services

NUM_TRAININGS = LISTED + 7


@pytest.fixture
def pages(migrated_url: str, tmp_path: Path) -> Iterator[Pages]:
    engine = create_engine(migrated_url)
    with Session(engine) as session:
        for number in range(NUM_TRAININGS):
            session.add(training_row(f"t{number:03}", "completed", created_at=at(number)))
            if number < 9:
                stream = f"training/{named(f't{number:03}')}"
                session.add(parked(stream))
        session.commit()
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    yield Pages(lambda: engine, store, lambda: at(1_000))
    engine.dispose()


def parked(stream: str) -> StreamState:
    return StreamState(
        stream=stream,
        epoch=1,
        sequence=1,
        source="",
        ends={},
        refused=[],
        statuses={},
        parked_since=at(3),
        dropped=False,
        drops={},
        num_waiting=0,
    )


def names(text: str) -> list[str]:
    return re.findall(r">(t\d\d\d)</a>", text)


def test_the_newest_are_listed_with_a_link_to_all(pages: Pages) -> None:
    text = pages.answer("/").content.decode()
    assert names(text) == [f"t{number:03}" for number in range(NUM_TRAININGS - 1, 6, -1)]
    assert '<a href="/trainings">All trainings</a>' in text
    assert '<meta http-equiv="refresh" content="3">' in text
    assert "9 streams are parked" in text
    assert text.count(" parked since ") == 2


def test_all_are_listed_on_a_page_that_does_not_reload(pages: Pages) -> None:
    text = pages.answer("/trainings").content.decode()
    assert len(names(text)) == NUM_TRAININGS
    assert "All trainings" not in text
    assert 'http-equiv="refresh"' not in text
    assert text.count(" parked since ") == 9
