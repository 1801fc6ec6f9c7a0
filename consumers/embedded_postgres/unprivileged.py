"""How a server is started that cannot outlive its parent and is never root: by setpriv.

PostgreSQL refuses to run as root, so root becomes `nobody`. If `nobody` cannot pass a folder above
the data or the programs (/root, a temporary folder of mode 0700), the process keeps the single
capability to pass folders; their modes stay as they are, and PostgreSQL can still write only where
`nobody` may. setpriv comes with util-linux; it changes the process between fork and exec, where a
threaded parent must not run Python.
"""

import os
import pwd
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from consumers.errors import UnreachableError

CAPABILITIES = {2: "dac_read_search", 1: "dac_override"}
"""Number -> name of those that let a process pass folders; the weaker one first."""


class _User(NamedTuple):
    uid: int
    gid: int


def may_enter(path: Path, user: _User) -> bool:
    """Whether the mode bits of every folder above `path` let this user pass."""
    for folder in path.resolve().parents:
        status = folder.stat()
        bit = (
            stat.S_IXUSR
            if status.st_uid == user.uid
            else stat.S_IXGRP
            if status.st_gid == user.gid
            else stat.S_IXOTH
        )
        if not status.st_mode & bit:
            return False
    return True


def unprivileged(program: Path, arguments: Sequence[str], uid: int) -> list[str]:
    """The words that run a program as this user, to end when the calling thread does.

    UnreachableError without setpriv, or when the user cannot pass a folder and root cannot let it.
    """
    setpriv = shutil.which("setpriv", path=f"{os.environ.get('PATH', '')}:{os.defpath}")
    if setpriv is None:
        message = (
            "the embedded database needs setpriv, which is not installed; install the system's"
            " package `util-linux`, or set DATABASE_URL to a server of yours"
        )
        raise UnreachableError(message)
    # SIGINT is PostgreSQL's fast shutdown, which disconnects clients and leaves the data clean.
    words = [setpriv, "--pdeathsig", "INT"]
    if uid != os.geteuid():
        user = _User(uid, pwd.getpwuid(uid).pw_gid)
        words += ["--reuid", str(uid), "--regid", str(user.gid), "--clear-groups"]
        places = [program, *(Path(argument) for argument in arguments if argument.startswith("/"))]
        if not all(may_enter(place, user) for place in places):
            words += _passing_folders(uid)
    return [*words, "--", str(program), *arguments]


def _passing_folders(uid: int) -> list[str]:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    permitted = int(status.partition("CapPrm:")[2].split()[0], 16)
    capability = next((name for bit, name in CAPABILITIES.items() if permitted >> bit & 1), None)
    if capability is None:
        message = (
            f"user {uid} cannot enter a folder above the database or PostgreSQL's programs, and"
            " root has no capability to pass it here; set CUA_HOME to a folder that other users can"
            " enter, or run as a plain user"
        )
        raise UnreachableError(message)
    # Without no_setuid_fixup access(2) disregards the capabilities of a user who is not root, and
    # PostgreSQL's programs ask access(2) for themselves when they start.
    kept = ["--inh-caps", f"+{capability}", "--ambient-caps", f"+{capability}"]
    return ["--securebits", "+no_setuid_fixup", *kept]
