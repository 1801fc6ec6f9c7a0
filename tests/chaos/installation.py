"""The folder of a run: one CUA_HOME on a disk that can be filled, reports and logs beside it."""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from schemas.installation import Installation, read_installation
from tests.conftest import CONFIGURATION
from tests.support.paths import ROOT

BYTES_PER_EVENT = 4_000
"""Of a home's disk: record, indexes, WAL, each several times over."""
FILL_ATTEMPTS = 50
LEFT_BYTES = 64 << 10
"""How far files may still grow on a full disk."""
SMALLEST_DISK_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Stage:
    """Where everything of a run lies."""

    folder: Path
    kafka: str | None
    """Bootstrap servers; None: the local log is the log."""
    database_url: str

    @property
    def home(self) -> Path:
        """CUA_HOME, on its own small disk where one can be mounted."""
        return self.folder / "home"

    @property
    def reports(self) -> Path:
        """What was acknowledged."""
        return self.folder / "reports"

    @property
    def logs(self) -> Path:
        """Stderr of every process."""
        return self.folder / "stderr"

    @property
    def environment(self) -> dict[str, str]:
        """For every process of ours."""
        kept = {name: text for name, text in os.environ.items() if not is_ours(name)}
        kafka = {"KAFKA_BOOTSTRAP_SERVERS": self.kafka} if self.kafka else {}
        ours = {"CUA_HOME": str(self.home), "DATABASE_URL": self.database_url}
        return {**kept, **ours, **kafka, "PYTHONPATH": str(ROOT)}

    @property
    def installation(self) -> Installation:
        """The same for code of this process."""
        return read_installation(self.environment)


def is_ours(name: str) -> bool:
    """Whether a variable describes some installation of the developer's."""
    return name.startswith(CONFIGURATION) and not name.startswith("CUA_TEST_")


class Disk:
    """A tmpfs at CUA_HOME that can be full, where this user may mount one.

    Elsewhere `is_mounted` is False, and files that may grow no more stand for it.
    """

    def __init__(self, home: Path, events: int, *, mount: bool = True) -> None:
        """`mount` False: do not even try."""
        self._home = home
        self._size = max(SMALLEST_DISK_BYTES, events * BYTES_PER_EVENT)
        home.mkdir(parents=True)
        self.is_mounted = mount and self._mount(f"size={self._size}")

    def fill(self) -> None:
        """Hardly a page is left."""
        for _ in range(FILL_ATTEMPTS):
            status = os.statvfs(self._home)
            used = (status.f_blocks - status.f_bfree) * status.f_frsize
            # Refused when somebody wrote meanwhile.
            if self._mount(f"remount,size={used + LEFT_BYTES}"):
                return

    def make_room(self) -> None:
        """As at the beginning."""
        self._mount(f"remount,size={self._size}")

    def close(self, *, keep: bool) -> None:
        """Unmount; `keep`: what lies in it is copied to where it was mounted."""
        if not self.is_mounted:
            return
        copy = self._home.with_name("home.copy")
        if keep:
            subprocess.run(["cp", "-a", self._home, copy], check=False)
        if not subprocess.run(["umount", "-l", self._home], check=False).returncode:
            self.is_mounted = False
            if keep:
                with contextlib.suppress(OSError):
                    self._home.rmdir()
                    copy.rename(self._home)

    def _mount(self, options: str) -> bool:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self._home)],
            capture_output=True,
            check=False,
        )
        return done.returncode == 0
