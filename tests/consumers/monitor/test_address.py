"""Where the monitor listens: on loopback, or where the user says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consumers.errors import UsageError
from consumers.monitor.start import Listening, open_monitor
from schemas.installation import Installation, read_installation


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return read_installation({"CUA_HOME": str(tmp_path)})


@pytest.mark.parametrize(("address", "is_loopback"), [("127.0.0.1", True), ("0.0.0.0", False)])  # noqa: S104
def test_it_listens_where_it_is_told(
    installation: Installation, address: str, is_loopback: bool
) -> None:
    with open_monitor({}, installation, Listening(0, address)) as server:
        assert server.url == f"http://{address}:{server.server_port}/"
        assert server.is_loopback is is_loopback


@pytest.mark.parametrize("port", [None, 0])
def test_an_address_that_is_not_ours_is_a_usage_error(
    installation: Installation, port: int | None
) -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1"):
        open_monitor({}, installation, Listening(port, "192.0.2.1"))


def test_a_database_that_does_not_answer_is_told_before_the_first_page() -> None:
    away = "postgresql://me@127.0.0.1:1/nowhere"
    process = subprocess.Popen(
        [sys.executable, "-m", "consumers", "monitor", "--port", "0"],
        env={**os.environ, "DATABASE_URL": away},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = process.stderr.readline()
        assert told.startswith(f"warning: cannot connect to PostgreSQL at {away}: ")
        assert told.endswith("The monitor serves all the same, and each page tries again\n")
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.terminate()
    assert process.returncode == 0
