"""A report is one file that needs nothing else, and it is bounded."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.report import Limits, Report, training_report
from consumers.queries import get_training_by_run_name
from consumers.tables import Eval
from schemas.installation import read_installation
from tests.consumers.monitor.conftest import HOSTILE, SCREENSHOT, put_blob
from tests.support.sample_rows import at, named, step_row, training_row, write_sample

pytestmark = pytest.mark.services


@pytest.fixture
def session(migrated_url: str, tmp_path: Path) -> Iterator[Session]:
    """The sample, with a training whose name and messages are hostile."""
    engine = create_engine(migrated_url)
    with Session(engine) as session:
        write_sample(session, put_blob(tmp_path, SCREENSHOT), HOSTILE)
        session.add(training_row(HOSTILE, error_message=HOSTILE, model_name=HOSTILE))
        session.commit()
        yield session
    engine.dispose()


def report_of(session: Session, home: Path, name: str, **limits: int) -> Report:
    training = get_training_by_run_name(session, name)
    assert training is not None
    store = ScreenshotStore(read_installation({"CUA_HOME": str(home)}))
    return training_report(session, training, store, at(35), Limits(**limits))


def of_the_step(session: Session) -> None:
    """Leave the rollouts of step-1, two with one screenshot."""
    step = named("step-2-again")
    session.query(Eval).delete()
    for table in ("step", '"group"'):
        session.connection().exec_driver_sql(f"DELETE FROM cua.{table} WHERE id = '{step}'")
    session.connection().exec_driver_sql("UPDATE cua.step SET status = 'failed' WHERE step > 1")
    session.commit()


class Resources(HTMLParser):
    """What a browser would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in {"href", "src", "xlink:href", "action", "srcset", "data", "poster"}:
                self.addresses.append(value or "")
            if name.startswith("on") or name == "style":
                self.handlers.append(name)
            if name == "id":
                self.ids.append(value or "")


def resources(text: str) -> Resources:
    found = Resources()
    found.feed(text)
    return found


@pytest.mark.parametrize("name", ["demo", HOSTILE])
def test_it_fetches_and_runs_nothing(session: Session, tmp_path: Path, name: str) -> None:
    of_the_step(session)
    text = report_of(session, tmp_path, name).html
    found = resources(text)
    assert not found.tags & {"script", "link", "iframe", "object", "img", "form", "base"}
    assert not found.handlers
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    inside = {f"#{name}" for name in found.ids}
    for address in found.addresses:
        assert address in inside or address.startswith("data:image/png;base64,")
    assert "default-src &#x27;none&#x27;" in text


def test_it_has_settings_curves_evaluations_and_rollouts(session: Session, tmp_path: Path) -> None:
    report = report_of(session, tmp_path, "demo")
    for part in (
        "<dt>learning rate</dt><dd>0.001</dd>",
        "success 0.5 at step 0",
        "reward 0.5 at step 1",
        "<strong>50.0 %</strong> ± 5.0 %",
        "every setting of the last start",
        f'<section id="{named("rollout-e")}">',
    ):
        assert part in report.html
    assert report.num_rollouts == 1, "of the last evaluation"


def test_without_an_evaluation_it_shows_a_failed_and_a_solved_rollout_of_the_last_step(
    session: Session, tmp_path: Path
) -> None:
    of_the_step(session)
    report = report_of(session, tmp_path, "demo")
    sections = re.findall(r'<section id="([^"]+)">', report.html)
    assert sections == [str(named("rollout-0")), str(named("rollout-1"))]
    assert report.html.count("data:image/png;base64,") == 1
    assert f'href="#{named("rollout-1")}"' in report.html
    assert sections[:1] == re.findall(
        r'<section id="([^"]+)">', report_of(session, tmp_path, "demo", num_rollouts=1).html
    )


def test_pictures_and_rollouts_beyond_the_limits_are_left_out(
    session: Session, tmp_path: Path
) -> None:
    of_the_step(session)
    for room, drawn in ((len(SCREENSHOT), 1), (len(SCREENSHOT) - 1, 0)):
        text = report_of(session, tmp_path, "demo", picture_bytes=room).html
        assert text.count("data:image/png") == drawn
        assert text.count("Screenshot not available.") == 1 - drawn
    assert report_of(session, tmp_path, "demo", rollout_characters=100).num_rollouts == 0


def test_of_many_steps_it_has_the_last_and_thinner_curves(session: Session, tmp_path: Path) -> None:
    session.add(training_row("long"))
    session.add_all(step_row(f"long-{step}", "long", step) for step in range(1, 8))
    session.commit()
    text = report_of(session, tmp_path, "long", num_steps=3).html
    assert "The last 3 of 7 steps." in text
    assert re.findall(r">step (\d)</a>", text) == ["5", "6", "7"]
    assert re.findall(r"reward 0\.5 at step (\d)", text) == ["1", "4", "7"]
    assert "of 7 steps" not in report_of(session, tmp_path, "long", num_steps=7).html


def test_what_a_policy_wrote_stays_text(session: Session, tmp_path: Path) -> None:
    of_the_step(session)
    text = report_of(session, tmp_path, "demo").html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
