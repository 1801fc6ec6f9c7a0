"""Every success on a page has its temperature and its tasks; greedy and sampled are kept apart."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

import consumers.queries as q
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.pages import Pages
from consumers.tables import Base
from schemas.installation import read_installation
from tests.support.sample_rows import at, baseline_row, eval_row, named, training_row

pytestmark = pytest.mark.services

Write = Callable[..., None]
Read = Callable[[str], str]
GREEDY = {"temperature": 0.0, "split": "held_out", "num_tasks": 6, "task_source": "demo_eval"}
SAMPLED = {**GREEDY, "temperature": 1.0}
EASY = {"a": [3, 4], "b": [1, 4], "c": [2, 4], "d": [2, 4], "e": [3, 4], "f": [1, 4]}
"""Every task of `BETTER` is solved once more: a paired difference of 0.25 with an error of 0."""
BETTER = {task: [solved + 1, of] for task, (solved, of) in EASY.items()}
SOME_BETTER = EASY | {"b": [4, 4], "f": [4, 4]}
"""Also 0.25 better: gains 0.75 twice and 0 four times, an error of sqrt(6/5 * 0.75) / 6 = 0.158."""


def counts(by_task: dict[str, list[int]]) -> dict[str, object]:
    return {"metrics_json": {"counts_by_task": by_task, "standard_error": 0.5}}


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    engine = create_engine(migrated_url)
    yield engine
    engine.dispose()


@pytest.fixture
def write(engine: Engine) -> Write:
    def add(*rows: Base) -> None:
        with Session(engine) as session:
            session.add_all([training_row("demo", "completed"), *rows])
            session.commit()

    return add


@pytest.fixture
def read(engine: Engine, tmp_path: Path) -> Read:
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    pages = Pages(lambda: engine, store, lambda: at(1_000))
    return lambda path: pages.answer(path).content.decode()


def points(page: str) -> list[str]:
    return re.findall(r"<circle[^>]*><title>([^<]*success[^<]*)</title>", page)


def test_greedy_and_sampled_success_are_two_named_lines_and_evaluations_by_hand_no_point(
    write: Write, read: Read
) -> None:
    write(
        baseline_row("b", "demo", 0.5, **GREEDY),
        baseline_row("bs", "demo", 0.25, **SAMPLED),
        eval_row("e", "demo", 4, 0.75, **GREEDY),
        eval_row("es", "demo", 4, 0.4, **SAMPLED),
        eval_row("m", "demo", 4, 0.0, **GREEDY, kind="manual"),
    )
    page = read(f"/training/{named('demo')}")
    assert points(page) == [
        "greedy: success 0.5 at step 0",
        "greedy: success 0.75 at step 4",
        "sampled at temperature 1: success 0.25 at step 0",
        "sampled at temperature 1: success 0.4 at step 4",
    ]
    legend = re.findall(r'class="legend">.*?</span> ([^<]*)</span>', page)
    assert legend == ["greedy: success", "sampled at temperature 1: success"]
    assert f'href="/eval/{named("m")}"' in page


def test_every_evaluation_names_its_temperature_its_split_and_its_tasks(
    write: Write, read: Read
) -> None:
    own = {**SAMPLED, "split": "training_tasks_unseen_seeds", "num_tasks": 18}
    write(
        eval_row("e", "demo", 4, 0.75, **GREEDY, standard_error=0.125),
        eval_row("es", "demo", 4, 0.4, **own),
        eval_row("old", "demo", 2, 0.5),
    )
    page = read(f"/eval/{named('e')}")
    assert "<h1>Evaluation after step 4</h1>" in page
    assert "<dt>temperature</dt><dd>greedy</dd>" in page
    assert "6 held-out tasks (demo_eval)" in page
    assert "<strong>75.0 %</strong> ± 12.5 %" in page
    sampled = read(f"/eval/{named('es')}")
    assert "<h1>Evaluation after step 4, sampled at temperature 1</h1>" in sampled
    assert "18 training tasks on unseen seeds (demo_eval)" in sampled
    assert "<dd>temperature not recorded</dd>" in read(f"/eval/{named('old')}")
    training = read(f"/training/{named('demo')}")
    for text in ("6 held-out tasks", "18 training tasks on unseen seeds", "not recorded"):
        assert text in training


@pytest.mark.parametrize(
    ("after", "rate", "coloured", "words"),
    [
        (BETTER, 0.75, 'class="good"', "± 0.0 % paired by task, more than two standard errors"),
        (SOME_BETTER, 0.75, "", "± 15.8 % paired by task, within two standard errors"),
    ],
)
def test_only_a_gain_of_more_than_two_paired_standard_errors_is_coloured(
    write: Write, read: Read, after: dict[str, list[int]], rate: float, coloured: str, words: str
) -> None:
    write(
        baseline_row("b", "demo", 0.5, **GREEDY, **counts(EASY)),
        eval_row("e", "demo", 4, rate, **GREEDY, **counts(after)),
    )
    page = read(f"/training/{named('demo')}")
    assert f"<span{' ' if coloured else ''}{coloured}>+25.0 %</span> {words}" in page
    first = read("/")
    assert f"<span{' ' if coloured else ''}{coloured}>75.0 %</span>" in first
    assert "greedy, 6 held-out tasks" in first


def test_a_worse_success_is_coloured_as_such(write: Write, read: Read) -> None:
    write(
        baseline_row("b", "demo", 0.75, **GREEDY, **counts(BETTER)),
        eval_row("e", "demo", 4, 0.5, **GREEDY, **counts(EASY)),
    )
    assert '<span class="bad">50.0 %</span>' in read("/")


def test_success_at_two_temperatures_is_not_compared(
    write: Write, read: Read, engine: Engine
) -> None:
    write(
        baseline_row("b", "demo", 0.5, **SAMPLED, **counts(EASY)),
        eval_row("e", "demo", 4, 0.75, **GREEDY, **counts(BETTER)),
    )
    assert "<span>75.0 %</span>" in read("/")
    with Session(engine) as session:
        gain = q.list_gains(session, [named("demo")])[named("demo")]
    assert gain.before is not None
    assert gain.after is not None
    assert (gain.before.temperature, gain.after.temperature) == (1.0, 0.0)
    assert gain.difference is None


def test_of_two_evaluations_at_a_point_the_greedy_one_is_the_trainings(
    write: Write, engine: Engine
) -> None:
    write(
        baseline_row("bs", "demo", 0.25, **SAMPLED),
        baseline_row("b", "demo", 0.5, **GREEDY),
        eval_row("es", "demo", 4, 0.4, **SAMPLED),
        eval_row("e", "demo", 4, 0.75, **GREEDY),
        eval_row("m", "demo", 9, 0.0, **GREEDY, kind="manual"),
    )
    with Session(engine) as session:
        gain = q.list_gains(session, [named("demo")])[named("demo")]
        found = q.get_eval_by_training_and_step(session, named("demo"), 4)
    assert gain.before is not None
    assert gain.after is not None
    assert (gain.before.rate, gain.after.rate) == (0.5, 0.75)
    assert found is not None
    assert found.id == named("e")


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        [],
        {"counts_by_task": 3},
        {"counts_by_task": {"a": [2, 1], "b": [1], "c": [10**40] * 2}},
    ],
)
def test_counts_that_are_none_are_not_compared(write: Write, read: Read, recorded: object) -> None:
    write(
        baseline_row("b", "demo", 0.5, **GREEDY, metrics_json=recorded),
        eval_row("e", "demo", 4, 0.75, **GREEDY, **counts(BETTER)),
    )
    assert "not comparable task by task" in read(f"/training/{named('demo')}")
    assert "<span>75.0 %</span>" in read("/")


def test_an_evaluation_of_no_training_has_a_page_that_the_first_page_links_to(
    write: Write, read: Read
) -> None:
    by_hand = eval_row(
        "m", "demo", 0, 0.5, **GREEDY, kind="manual", model_path="m at http://server"
    )
    by_hand.training_id = by_hand.generation = by_hand.step = by_hand.split = None
    write(by_hand)
    first = read("/")
    assert f'<a href="/eval/{named("m")}">Evaluation by hand</a>' in first
    assert "m at http://server" in first
    page = read(f"/eval/{named('m')}")
    assert "<h1>Evaluation by hand</h1>" in page
    assert "6 tasks, no training recorded (demo_eval)" in page


def test_without_evaluations_by_hand_the_first_page_has_no_list_of_them(
    write: Write, read: Read
) -> None:
    write(eval_row("m", "demo", 4, 0.5, **GREEDY, kind="manual"))
    assert "of no training" not in read("/")
