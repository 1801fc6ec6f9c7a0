"""A real PgBouncer for tests, in front of a PostgreSQL, on a free port."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import make_url

from tests.support.missing import skip_or_fail
from tests.support.ports import free_port

SBIN = "/usr/sbin"
START_TIMEOUT_S = 60.0


@contextlib.contextmanager
def running_pgbouncer(url: str, pool_mode: str, *settings: str) -> Iterator[str]:
    """The URL of the database `url` through a PgBouncer with these lines of configuration."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:{SBIN}")
    if program is None:
        skip_or_fail("there is no PgBouncer: apt-get install pgbouncer")
    server = make_url(url)
    port = free_port()
    lines = (
        "[databases]",
        f"* = host={server.host} port={server.port} user={server.username}"
        f" password='{server.password}'",
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        f"listen_port = {port}",
        "unix_socket_dir =",
        "auth_type = any",
        f"pool_mode = {pool_mode}",
        *settings,
    )
    folder = Path(tempfile.mkdtemp(prefix="cua-pgbouncer-"))
    # It refuses to run as root, and another user must read its configuration.
    folder.chmod(0o755)
    file = folder / "pgbouncer.ini"
    file.write_text("\n".join(lines) + "\n")
    as_user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, *as_user, str(file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        _wait(process, port, folder / "log")
        yield server.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    message = f"PgBouncer did not start:\n{log.read_text(errors='replace')[-2000:]}"
    raise RuntimeError(message)
