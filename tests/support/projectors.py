"""Real projectors as processes of their own, and moments at which they hold locks."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import eventually
from tests.support.paths import ROOT
from tests.support.postgres import execute, one

DEADLINE_S = 60.0

SLOW_TRIGGER = """
CREATE TABLE public.slow (is_slow boolean);
INSERT INTO public.slow VALUES (true);
CREATE FUNCTION public.slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT is_slow FROM public.slow) THEN PERFORM pg_sleep(3); END IF; RETURN NULL; END $$;
CREATE TRIGGER slowly AFTER INSERT OR UPDATE ON {table} FOR EACH STATEMENT
    EXECUTE FUNCTION public.slowly();
"""


class Projector:
    """A projecting process in a process group of its own."""

    def __init__(
        self, url: str, log: Path, how: str = "single", launcher: Sequence[str] = ()
    ) -> None:
        """`launcher`: the command that runs a command elsewhere, in place of itself."""
        self.log = log
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*launcher, sys.executable, "-m", "tests.support.projecting_process", how],
                env=os.environ | {"DATABASE_URL": url},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self.pid, number)

    def says(self, text: str) -> bool:
        return text in self.log.read_text()

    def has_started(self) -> bool:
        """Whether it has asked for the lease: it says who has it, or had it."""
        return self.log.stat().st_size > 0

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
        self._process.wait(10)


@contextmanager
def projector(
    url: str, log: Path, how: str = "single", launcher: Sequence[str] = ()
) -> Iterator[Projector]:
    process = Projector(url, log, how, launcher)
    try:
        yield process
    finally:
        process.end()


def sleeping(url: str, application: str) -> bool:
    """Whether such a session sleeps in the trigger."""
    return bool(
        one(
            url,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
            f" application_name = '{application}' AND wait_event = 'PgSleep'",
        )
    )


def no_longer_sleeping(url: str, application: str) -> None:
    execute(url, "UPDATE public.slow SET is_slow = false")
    eventually(lambda: not sleeping(url, application))


def holder(url: str) -> str:
    return str(one(url, "SELECT holder FROM cua_ops.lease")).split("/")[-2]
