"""Calls a user's reward code within a time limit, and checks what it raises and returns.

Python cannot stop a thread: a hanging call continues until it returns or the process ends.
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
"""Default time limit of one call."""
MAX_REWARD: Final = 1e12
"""Largest absolute reward: the sum of the squares of a million such rewards fits in float32."""
NOT_THE_USERS: Final = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    "<frozen",
)
"""Path prefixes of this package, of Python and of installed libraries."""
MAX_SHOWN: Final = 200
"""Maximum characters of a returned value that a message shows."""


class RewardError(Exception):
    """A reward function failed or did not return a finite number. The attempt then fails."""


class UserCode:
    """Runs all calls of a user's code on one thread, because the code may not be thread-safe.

    Thread-safe: a call waits for those before it. While a call that exceeded its limit is still
    running, every further call fails at once.
    """

    def __init__(self, name: str, limit_s: float = LIMIT_S) -> None:
        """`name` begins every message. `limit_s` limits one call, without the wait for others."""
        self._name = name
        self._limit_s = limit_s
        self._turn = threading.Lock()
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_started = False
        self._hanging: threading.Event | None = None

    def call(self, function: Callable[[], Returned]) -> Returned:
        """Call the function and return its result.

        Raises RewardError if it raises or takes too long.
        """
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
    """The last line of the user's code, as ` (FILE line 3, in FUNCTION)`, or empty if unknown."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(NOT_THE_USERS)
    ]
    if not frames:
        return ""
    return f" ({frames[-1].filename} line {frames[-1].lineno}, in {frames[-1].name})"


def finite_number(value: Any, name: str) -> float:  # noqa: ANN401  # whatever the code returned
    """The number that a user's code returned.

    Raises RewardError, which names the code, if the value is not a number. A tensor or an array of
    one number is accepted, as in verl.
    """
    number: Any = value
    if hasattr(value, "item"):
        with suppress(Exception):  # an array of several numbers is refused below
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
