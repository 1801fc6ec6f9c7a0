"""The name of a writer, `//host/pid/start`: unique per emitter."""

import os
import re
import secrets
import socket
from datetime import datetime


def new_source(now: datetime) -> str:
    """A new name, of letters, digits and `/._-` only: it needs no escaping in JSON.

    Host and pid are for people; containers share them, so time and 32 random bits make it unique.
    """
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "host"
    return f"//{host}/{os.getpid()}/{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
