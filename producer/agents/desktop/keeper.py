"""The process that owns one desktop: it starts the display and ends everything at the end.

Run as a program, without site packages. It ends when its standard input or its parent ends, however
that happens. Everything started on the desktop is its descendant and is then killed. Requests and
answers are lines of JSON.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, NamedTuple

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
START_S: Final = 30.0
"""Time limit for the display to start."""
END_S: Final = 2.0
"""Time for the display to terminate by itself, which removes its socket."""
PARENT_S: Final = 1.0
"""Interval for checking that the parent is alive."""
LOCKS: Final = Path("/tmp")  # noqa: S108  # X's own
SOCKETS: Final = LOCKS / ".X11-unix"
OUTPUT_BYTES: Final = 1 << 20
LIBC: Final = ctypes.CDLL(None)


class Keeper:
    """Owns the processes of one desktop."""

    def __init__(self, setting: dict[str, Any]) -> None:
        """`setting` is written by `producer.agents.desktop.session`."""
        self._folder = Path(setting["folder"])
        self._env: dict[str, str] = setting["env"]
        self._size: str = setting["size"]
        self._limit_s: float = setting["limit_s"]
        self._window_manager: list[str] = setting["window_manager"]
        self._user: int | None = setting["user"]
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._number: int | None = None
        self._socket: Identity | None = None

    def start(self) -> int:
        """Start the display and the window manager.

        Returns the display's number. Raises OSError.
        """
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # An X server without root would create this folder as its own and warn about it forever.
        with contextlib.suppress(OSError):
            SOCKETS.mkdir()
            SOCKETS.chmod(0o1777)
        reading, writing = os.pipe()
        # Disable access control if the applications run as another user.
        access = [] if self._user is None else ["-ac"]
        self._children["Xvfb"] = self._spawn(
            [
                *("Xvfb", "-displayfd", str(writing), "-screen", "0", f"{self._size}x24"),
                *("-nolisten", "tcp", "-noreset", "-dpi", "96", *access),
            ],
            pass_fds=(writing,),
        )
        os.close(writing)
        if not select.select([reading], [], [], START_S)[0]:
            message = f"Xvfb did not start within {START_S:g} s"
            raise OSError(message)
        with os.fdopen(reading) as pipe:
            number = pipe.readline().strip()
        if not number:
            lines = (self._folder / "log").read_text(errors="replace").split("\n")
            said = next((line for line in reversed(lines) if line.strip()), "it said nothing")
            message = f"Xvfb did not start: {said.strip()}"
            raise OSError(message)
        self._number = int(number)
        self._socket = identity_of(socket_of(self._number))
        self._env["DISPLAY"] = f":{number}"
        self._children["window manager"] = self._spawn(self._window_manager)
        return self._number

    def serve(self, parent: int) -> None:
        """Run commands until standard input or the parent ends."""
        while os.getppid() == parent:
            if select.select([sys.stdin], [], [], PARENT_S)[0]:
                line = sys.stdin.readline()
                if not line:
                    return
                _say(self._run(json.loads(line)["run"]))

    def _run(self, command: str) -> dict[str, Any]:
        """Run a command: its exit status and output.

        Without a command, the ended parts in words.
        """
        if not command:
            return {"ended": self._ended()}
        process = self._spawn(["/bin/sh", "-c", command], stdout=subprocess.PIPE)
        try:
            output, _ = process.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"status": -1, "text": f"no end within {self._limit_s:g} s", "is_late": True}
        text = output[:OUTPUT_BYTES].decode(errors="replace")
        return {"status": process.returncode, "text": text}

    def _ended(self) -> list[str]:
        ended = [
            f"its {name} ended with {child.returncode}"
            for name, child in self._children.items()
            if child.poll() is not None
        ]
        with contextlib.suppress(OSError):
            ended += (self._folder / "ended").read_text(errors="replace").splitlines()
        return ended

    def _spawn(
        self, command: list[str], *, stdout: int | None = None, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log if stdout is None else subprocess.STDOUT,
                cwd=self._env["HOME"],
                env=self._env,
                pass_fds=pass_fds,
                start_new_session=True,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
                # If this process is killed, the display ends too, and with it the applications.
                preexec_fn=_die_with_parent,  # noqa: PLW1509  # this process has one thread
            )

    def end(self) -> None:
        """Kill every descendant, and remove the folder and the display's files."""
        display = self._children.get("Xvfb")
        if display is not None:
            display.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                display.wait(END_S)
        until_s = monotonic() + END_S
        while monotonic() < until_s:
            for child in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            try:
                # Children of a killed child become ours and are killed next.
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    sleep(0.01)
            except ChildProcessError:
                break
        if display is not None and self._number is not None:
            remove_files(self._number, display.pid, self._socket)
        shutil.rmtree(self._folder, ignore_errors=True)


class Identity(NamedTuple):
    """Identifies a file: another file at the same path has another identity."""

    inode: int
    made_ns: int


def identity_of(file: Path) -> Identity | None:
    """Identity of a file, such as a socket; None if it does not exist."""
    try:
        status = file.lstat()
    except OSError:
        return None
    return Identity(status.st_ino, status.st_mtime_ns)


def socket_of(number: int) -> Path:
    """Path of the socket that a display listens on."""
    return SOCKETS / f"X{number}"


def remove_files(number: int, display: int, socket: Identity | None) -> None:
    """Remove files left by a killed display, but not those of a later display with its number.

    `display` is the process id. Xvfb may reuse the number of an ended display at once, even ours.
    """
    if socket is not None and identity_of(socket_of(number)) == socket:
        socket_of(number).unlink(missing_ok=True)
    lock = LOCKS / f".X{number}-lock"
    # Most versions create no lock for a number that they choose themselves.
    with contextlib.suppress(OSError, ValueError):
        if int(lock.read_text()) == display:
            lock.unlink()


def _die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _children() -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                # The fields after the name in brackets are the state and the parent.
                stat = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if int(stat[1]) == os.getpid():
                    found.append(int(folder.name))
    return found


def _say(answer: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Own the desktop described by the first argument, for the parent given by the second."""
    keeper = Keeper(json.loads(sys.argv[1]))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        try:
            display = keeper.start()
        except OSError as error:
            _say({"error": str(error)})
            return
        _say({"display": display})
        keeper.serve(int(sys.argv[2]))
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
