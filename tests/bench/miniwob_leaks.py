"""What episodes on pages of MiniWoB++ leave behind: windows, processes, files, memory.

    python -m tests.bench.miniwob_leaks [--episodes 1000] [--at-once 3]

Oracles solve the pages that have one, in turn, each time with another seed. The lines during the
run show the memory of Chromium and its driver; processes that share pages of memory divide them
(PSS). The last line is counted after the browsers ended.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psutil

from producer.agents.miniwob.browsers import Browsers
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.oracle_policy import oracle_action
from producer.agents.miniwob.pages import WebPage, web_pages
from producer.agents.miniwob.tasks import page_task
from producer.environments.environment import ActionRefusedError
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import Action

NUM_LINES = 10
ENDS_WITHIN_S = 10.0
"""Chromium's processes end shortly after its driver reports that it is closed."""
FOLDERS = (Path(tempfile.gettempdir()), Path("/dev/shm"))  # noqa: S108  # Chromium writes to it


class Left(NamedTuple):
    """What belongs to the browsers at one moment."""

    windows: int
    processes: int
    files: int
    """In the folders of temporary files, made since the start."""
    megabytes: float


class Leaks:
    """Counts what was not there at the start."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self._processes = {process.pid for process in _family()}
        self._files = _files()

    def now(self) -> Left:
        """Count. Processes of this one, and files of anybody."""
        processes = [one for one in _family() if one.pid not in self._processes]
        return Left(
            self._browsers.num_open,
            len(processes),
            len(_files() - self._files),
            sum(map(_megabytes, processes)),
        )


def _family() -> list[psutil.Process]:
    return [*psutil.Process().children(recursive=True)]


def _files() -> set[Path]:
    """Names directly in the folders of temporary files that are this user's."""
    found: set[Path] = set()
    for folder in FOLDERS:
        for entry in os.scandir(folder) if folder.is_dir() else ():
            try:
                if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    found.add(Path(entry.path))
            except FileNotFoundError:  # removed meanwhile
                continue
    return found


def _megabytes(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 2**20
    except psutil.Error:  # it has ended
        return 0.0


def run(browsers: Browsers, page: WebPage, seed: int) -> bool:
    """One episode of the page's oracle; whether it is solved."""
    environment, task = MiniWobEnvironment(browsers), page_task(page)
    try:
        shown, taken = environment.open(task, seed), list[Action]()
        while not shown.is_over and len(taken) < page.max_steps:
            action = oracle_action(environment, page.name, taken)
            if action is None:
                break
            taken.append(action)
            try:
                shown = environment.act(action)
            except ActionRefusedError:  # its target is outside the screen
                break
        return environment.judge(task, NO_EVIDENCE).success
    finally:
        environment.close()


def main() -> None:
    """Print a line now and then, and one at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=3)
    options = parser.parse_args()
    pages = [page for page in web_pages().values() if page.split]
    browsers = Browsers()
    leaks, lock, num_done = Leaks(browsers), threading.Lock(), 0
    every, begin = max(1, options.episodes // NUM_LINES), time.monotonic()

    def episode(number: int) -> bool:
        nonlocal num_done
        is_solved = run(browsers, pages[number % len(pages)], number // len(pages))
        with lock:
            num_done += 1
            if num_done % every == 0:
                _print(f"after {num_done} episodes", leaks.now())
        return is_solved

    try:
        with ThreadPoolExecutor(options.at_once) as pool:
            num_solved = sum(pool.map(episode, range(options.episodes)))
        _print("after the last episode", leaks.now())
    finally:
        browsers.stop()
    deadline = time.monotonic() + ENDS_WITHIN_S
    while (left := leaks.now()).processes and time.monotonic() < deadline:
        time.sleep(0.1)
    seconds = time.monotonic() - begin
    _print(
        f"{options.episodes} episodes, {num_solved} solved, {seconds:.0f} s; browsers ended", left
    )


def _print(moment: str, left: Left) -> None:
    sys.stdout.write(
        f"{moment}: {left.windows} windows, {left.processes} processes, {left.files} new temporary"
        f" files, {left.megabytes:.0f} MiB\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
