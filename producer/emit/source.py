"""The name of a writer, `//host/pid/start`: one per process start, never the same twice."""

import os
import re
import secrets
import socket
from datetime import datetime


def new_source(now: datetime) -> str:
    """A new name. Host and pid are for people.

    The time and 32 random bits make it unique (containers share hosts and pids).

    Only letters, digits and `/._-` occur, so that it needs no escaping in JSON.
    """
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "host"
    return f"//{host}/{os.getpid()}/{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
