"""Calls a user's reward code within a time limit, and checks what it raises and returns.

Python cannot stop a thread: a call that hangs goes on until it returns or the process ends.
"""

import math
import sysconfig
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar, cast

Returned = TypeVar("Returned")

LIMIT_S: Final = 300.0
"""Of a call, unless configured otherwise."""
MAX_REWARD: Final = 1e12
"""Largest size of a reward: the squares of a million of them have a sum in float32."""
NOT_THE_USERS: Final = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    "<frozen",
)
"""Beginnings of the files of this package, of Python and of installed libraries."""
MAX_SHOWN: Final = 200
"""Characters of a returned value in a message."""


class RewardError(Exception):
    """A reward function failed or returned no finite number; its attempt fails."""


class UserCode:
    """One thread for all calls of a user's code, which need not bear several.

    Thread-safe: a call waits for those before it. While a call that took too long still runs, every
    further one fails at once.
    """

    def __init__(self, name: str, limit_s: float = LIMIT_S) -> None:
        """`name`: begins every message. `limit_s`: of one call, without the wait for others."""
        self._name = name
        self._limit_s = limit_s
        self._turn = threading.Lock()
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_started = False
        self._hanging: threading.Event | None = None

    def call(self, function: Callable[[], Returned]) -> Returned:
        """What the function returns. RewardError if it raises, or does not return in time."""
        returned: list[Returned] = []
        raised: list[BaseException] = []
        has_ended = threading.Event()

        def job() -> None:
            try:
                returned.append(function())
            except BaseException as error:  # noqa: BLE001  # whatever a user's code raises, SystemExit too
                raised.append(error)
            has_ended.set()

        with self._turn:
            self._await(job, has_ended)
        for error in raised:
            if isinstance(error, RewardError):
                raise error
            message = f"{self._name} raised {type(error).__name__}: {error}{_place(error)}"
            raise RewardError(message) from error
        return returned[0]

    def _await(self, job: Callable[[], None], has_ended: threading.Event) -> None:
        if self._hanging is not None and not self._hanging.is_set():
            message = (
                f"{self._name} still hangs in an earlier call, which took longer than"
                f" {self._limit_s:g} s; give what it waits for a time limit"
            )
            raise RewardError(message)
        if not self._is_started:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
            self._is_started = True
        self._jobs.put(job)
        if not has_ended.wait(self._limit_s):
            self._hanging = has_ended
            message = f"{self._name} did not return within {self._limit_s:g} s"
            raise RewardError(message)

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _place(error: BaseException) -> str:
    """` (FILE line 3, in FUNCTION)`: the last line of the user's own; empty if there is none."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(NOT_THE_USERS)
    ]
    if not frames:
        return ""
    return f" ({frames[-1].filename} line {frames[-1].lineno}, in {frames[-1].name})"


def finite_number(value: Any, name: str) -> float:  # noqa: ANN401  # whatever the code returned
    """The number that a user's code returned; RewardError names the code if it is none.

    A tensor or an array of one number is taken, as verl takes it.
    """
    number: Any = value
    if hasattr(value, "item"):
        with suppress(Exception):  # of several numbers: refused below
            number = value.item()
    size = abs(cast("float", number)) if isinstance(number, Real) else math.inf
    if not size <= MAX_REWARD:
        shown = repr(value)
        shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
        message = (
            f"{name} returned {shown}; it must return a finite number, at most {MAX_REWARD:g} in"
            " size"
        )
        raise RewardError(message)
    return float(number)
