"""Runs a server that cannot outlive its parent and is never root.

`python unprivileged.py PARENT_PID UID PROGRAM ARGUMENT ...`.

A program of its own, because it changes the process between fork and exec, where a threaded parent
must not run Python. It imports nothing of ours. PostgreSQL refuses to run as root, so root becomes
`nobody`. If `nobody` cannot pass a folder above the data or the programs (/root, a temporary folder
of mode 0700), the process keeps the single capability to pass folders; their modes stay as they
are, and PostgreSQL can still write only where `nobody` may.
"""

import ctypes
import os
import pwd
import signal
import stat
import sys
from pathlib import Path
from typing import NamedTuple

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_SECUREBITS = 1, 8, 28
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
SECBIT_NO_SETUID_FIXUP = 4
"""Without it access(2) disregards the capabilities of a user who is not root, and PostgreSQL's
programs ask access(2) for themselves when they start."""
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
CAPABILITY_VERSION_3 = 0x20080522


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


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


def _fail(what: str) -> None:
    error = os.strerror(ctypes.get_errno())
    sys.exit(f"{what}: {error}")


def _permitted_capabilities(libc: ctypes.CDLL) -> int:
    header, data = _CapHeader(CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    if libc.capget(ctypes.byref(header), data):
        _fail("reading capabilities")
    return int(data[0].permitted)


def _become(user: _User, libc: ctypes.CDLL, *, through_folders: bool) -> None:
    """Give up root for good, except the capability to pass folders with `through_folders`."""
    capability = None
    if through_folders:
        permitted = _permitted_capabilities(libc)
        capability = next(
            (c for c in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE) if permitted >> c & 1), None
        )
        if capability is None:
            sys.exit(
                f"user {user.uid} cannot enter a folder above the database or PostgreSQL's"
                " programs, and root has no capability to pass it here; set CUA_HOME to a folder"
                " that other users can enter, or run as a plain user"
            )
        libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
        libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    if capability is not None:
        bit = 1 << capability
        header, data = _CapHeader(CAPABILITY_VERSION_3, 0), (_CapData * 2)()
        data[0] = _CapData(bit, bit, bit)
        if libc.capset(ctypes.byref(header), data) or libc.prctl(
            PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0
        ):
            _fail("keeping the capability to pass through folders")


def main(arguments: list[str]) -> None:
    """Become unprivileged, die with the parent, run the program; never returns."""
    parent_pid, uid, program, rest = (
        int(arguments[0]),
        int(arguments[1]),
        Path(arguments[2]),
        arguments[3:],
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if uid != os.geteuid():
        user = _User(uid, pwd.getpwuid(uid).pw_gid)
        places = [program, *(Path(argument) for argument in rest if argument.startswith("/"))]
        _become(user, libc, through_folders=not all(may_enter(place, user) for place in places))
    # After the change of user, which clears it. SIGINT is PostgreSQL's fast shutdown, which
    # disconnects clients and leaves the data clean.
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0):
        _fail("setting the parent-death signal")
    if os.getppid() != parent_pid:
        sys.exit("the supervisor exited before the server started")
    os.umask(0o077)
    try:
        os.execv(program, [str(program), *rest])  # noqa: S606  # no shell wanted
    except OSError as error:
        sys.exit(f"{program} cannot be executed: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
