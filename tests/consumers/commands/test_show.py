"""`cua-project show`: one training by its name."""

import json
import os
import subprocess
from collections.abc import Callable

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from tests.support.forked_command import run_command
from tests.support.sample_rows import named, training_row, write_sample

pytestmark = pytest.mark.services
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def call(migrated_url: str) -> Call:
    engine = create_engine(migrated_url)
    with Session(engine) as session:
        write_sample(session)
        session.add(training_row("odd", status_message="two\nlines \x1b[31m"))
        session.commit()
    engine.dispose()
    environ = {**os.environ, "DATABASE_URL": migrated_url}
    return lambda *arguments: run_command("consumers", *arguments, environ=environ)


def test_show_has_status_success_and_the_last_step(call: Call) -> None:
    assert call("show", "demo").stdout.splitlines() == [
        "training     demo",
        "status       running",
        "progress     step 2 of 3, 50 %",
        "policy       policies/demo, rl in android",
        "success      temperature not recorded: 0.500 -> 1.000, tasks",
        "last step    2: reward 0.5, loss 0.25, kl 0.001, gradient 1.5",
        "began        2026-11-21 12:00:00 UTC",
    ]


def test_show_as_json_is_what_the_monitor_answers(call: Call) -> None:
    facts = json.loads(call("show", "demo", "--json").stdout)
    assert (facts["id"], facts["run_name"]) == (str(named("demo")), "demo")
    assert (facts["success_before"], facts["success_after"]) == (0.5, 1.0)
    assert [step["step"] for step in facts["steps"]] == [1, 2, 3]


def test_show_obeys_nothing_that_a_message_says(call: Call) -> None:
    lines = call("show", "odd").stdout.splitlines()
    assert "message      two\ufffdlines \ufffd[31m" in lines


def test_an_unknown_name_is_not_found_and_a_similar_one_is_named(call: Call) -> None:
    done = call("show", "dmeo")
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: the tables have no training 'dmeo'. Did you mean 'demo'?")
