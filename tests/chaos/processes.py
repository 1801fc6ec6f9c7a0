"""The processes of ours that are disturbed: emitters and projectors, restarted when they die."""

import ctypes
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.chaos.acknowledged import Reports
from tests.chaos.emitting import AGAIN, BROKEN, DONE, REPLACED
from tests.chaos.installation import LEFT_BYTES, Stage
from tests.support.paths import ROOT

PR_SET_PDEATHSIG = 1
UNREACHABLE = 5
STARTING_S = 60.0
"""A projector that cannot reach its database at its start exits 5, for whoever starts it again."""


class ChaosError(Exception):
    """Something that must not happen, happened."""


class Life(NamedTuple):
    """One process of an actor."""

    name: str
    process: subprocess.Popen[bytes]
    stderr: Path
    started_at: float

    @property
    def ended_early(self) -> bool:
        """Whether its last words are of its start; the driver may look much later."""
        return self.stderr.stat().st_mtime - self.started_at < STARTING_S

    def last_words(self) -> str:
        """The end of its stderr."""
        return self.stderr.read_text(errors="replace")[-1500:]


def start(stage: Stage, name: str, arguments: list[str]) -> Life:
    """A Python process of ours whose stderr is kept."""
    stderr = stage.logs / f"{name}.log"
    with stderr.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=stage.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  # this process has no threads here
        )
    return Life(name, process, stderr, time.time())


def _die_with_parent() -> None:
    """A driver that is killed leaves nobody behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Emitters:
    """Emitters by number; each is one process at a time, and those it replaced but which live."""

    def __init__(
        self,
        stage: Stage,
        reports: Reports,
        *,
        seed: int,
        shares: list[int],
        more: Sequence[str] = (),
    ) -> None:
        """`shares`: how many events each is to emit at least; `more`: further arguments."""
        self._more = more
        self._stage, self._reports, self._seed, self._shares = stage, reports, seed, shares
        self.lives: dict[int, Life] = {}
        self.replaced: list[Life] = []
        self._num_lives = 0
        self.finished: set[int] = set()
        self.num_fenced_exits = 0
        self.disk_is_full = False

    def gate(self, emitter: int) -> Path:
        """The file that says how far it may go."""
        return self._stage.folder / f"gate-{emitter}"

    def open_gates(self, share: float) -> None:
        """Let every emitter go on up to this share of its events."""
        for emitter, events in enumerate(self._shares):
            path = self.gate(emitter)
            # The last training goes beyond the share to its end.
            limit = int(events * share) if share < 1 else events + (1 << 30)
            unfinished = path.with_suffix(".new")
            unfinished.write_text(str(limit))
            unfinished.replace(path)

    def start(self, emitter: int) -> None:
        """Start it where its predecessor was."""
        self._reports.read()
        self._num_lives += 1
        arguments = ["-m", "tests.chaos.emitting", "--seed", str(self._seed)]
        arguments += ["--emitter", str(emitter), "--events", str(self._shares[emitter])]
        arguments += ["--report", str(self._reports.path(emitter, self._num_lives))]
        arguments += ["--gate", str(self.gate(emitter))]
        arguments += self._more
        begun = self._reports.trainings.get(emitter)
        if begun:
            number = max(begun)
            arguments += ["--training", str(number), "--at", str(begun[number])]
        self.lives[emitter] = start(self._stage, f"emitter-{emitter}-{self._num_lives}", arguments)

    def start_all(self) -> None:
        """Those that have not finished."""
        for emitter in range(len(self._shares)):
            if emitter not in self.finished:
                self.start(emitter)

    def running(self) -> list[int]:
        """Emitters with a process."""
        return [number for number, life in self.lives.items() if life.process.poll() is None]

    def tick(self) -> None:
        """Start again what has ended. ChaosError for an exit that nobody caused."""
        for emitter, life in list(self.lives.items()):
            code = life.process.poll()
            if code is None or emitter in self.finished:
                continue
            if code == DONE:
                self.finished.add(emitter)
            elif code == BROKEN and self.disk_is_full:
                continue  # once there is room
            elif code in {AGAIN, REPLACED, BROKEN, -signal.SIGKILL}:
                self._check_broken(life, code)
                self.start(emitter)
            else:
                message = f"{life.name} exited {code}: {life.last_words()}"
                raise ChaosError(message)
        for life in list(self.replaced):
            code = life.process.poll()
            if code is not None:
                self.replaced.remove(life)
                self.num_fenced_exits += code == REPLACED
                if code not in {DONE, AGAIN, REPLACED, BROKEN, -signal.SIGKILL}:
                    message = f"{life.name}, replaced, exited {code}: {life.last_words()}"
                    raise ChaosError(message)
                self._check_broken(life, code)

    def _check_broken(self, life: Life, code: int) -> None:
        words = life.last_words()
        if code == BROKEN and "full" not in words and "I/O error" not in words:
            message = f"{life.name} exited {code} without a full disk: {words}"
            raise ChaosError(message)

    def replace(self, emitter: int) -> Life:
        """Stop its process and start another one that takes over; the stopped one."""
        life = self.lives[emitter]
        life.process.send_signal(signal.SIGSTOP)
        self.replaced.append(life)
        self.start(emitter)
        return life

    def forbid_growth(self) -> None:
        """No file of theirs may grow any more: a full disk for processes that mount none."""
        for emitter in self.running():
            pid = self.lives[emitter].process.pid
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (LEFT_BYTES, LEFT_BYTES))

    def shipper(self) -> Life | None:
        """The process that ships the spool: it has the lock's file open for long."""
        for life in self.lives.values():
            if _holds(life.process.pid, "shipper.lock"):
                time.sleep(0.02)
                if _holds(life.process.pid, "shipper.lock"):
                    return life
        return None

    def kill_all(self) -> None:
        """Every process, at once."""
        lives = [*self.lives.values(), *self.replaced]
        for life in lives:
            life.process.kill()
        for life in lives:
            life.process.wait()


def _holds(pid: int, name: str) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    try:
        return any(link.readlink().name == name for link in folder.iterdir())
    except OSError:
        return False


class Projectors:
    """Several `cua-project run`: one projects, the others wait for its lease."""

    def __init__(self, stage: Stage, number: int) -> None:
        self._stage = stage
        self._num_lives = 0
        self.lives: list[Life] = []
        self._number = number

    def tick(self) -> None:
        """Start those that were killed. ChaosError when one ended by itself."""
        for life in list(self.lives):
            code = life.process.poll()
            if code is not None:
                self.lives.remove(life)
                is_refused = code == UNREACHABLE and life.ended_early
                if code != -signal.SIGKILL and not is_refused:
                    message = f"{life.name} exited {code}: {life.last_words()}"
                    raise ChaosError(message)
        while len(self.lives) < self._number:
            self._num_lives += 1
            name = f"projector-{self._num_lives}"
            self.lives.append(start(self._stage, name, ["-m", "consumers", "run"]))

    def kill_all(self) -> None:
        """Every process, at once."""
        for life in self.lives:
            life.process.kill()
        for life in self.lives:
            life.process.wait()

    def stop_all(self, timeout_s: float) -> None:
        """SIGTERM; ChaosError when one does not end with exit 0."""
        for life in self.lives:
            life.process.send_signal(signal.SIGCONT)
            life.process.terminate()
        for life in self.lives:
            try:
                code = life.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                code = None
            if code:
                message = f"{life.name} was asked to stop and exited {code}: {life.last_words()}"
                raise ChaosError(message)
        self.lives.clear()
