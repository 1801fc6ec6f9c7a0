"""OpenEnv servers: ours as a process of its own, and any other on a thread of the test's."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn


@contextmanager
def served_by_command(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`cua-train env serve` on a free port: its URL and its process, which is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "producer", "env", "serve", "--json", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={name: value for name, value in os.environ.items() if not name.startswith("CUA_")},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield json.loads(line)["url"], process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@contextmanager
def served_here(app: Any) -> Iterator[str]:
    """The URL of this application, served by a thread."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)
