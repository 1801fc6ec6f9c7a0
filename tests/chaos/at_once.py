"""Runs at once, a process each: while one waits for its Kafka, the other computes."""

import ctypes
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeVar

from tests.chaos.processes import PR_SET_PDEATHSIG, ChaosError

T = TypeVar("T")
ENDING_S = 60.0
"""For a process that is told to end: its servers stop, its small disk is unmounted."""


class _Failed(NamedTuple):
    """What a process says instead of a result."""

    sentence: str


def terminate(*_: object) -> None:
    """Unwind as Ctrl-C does, once: servers end, the small disk is unmounted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + signal.SIGTERM)


def at_once(calls: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """The result of each call, made in a process of its own; calls and results are pickled.

    ChaosError, once all have ended, names those that failed. Whatever ends this process, their
    processes unwind.
    """
    context = get_context("spawn")
    started = []
    try:
        for name, call in calls.items():
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_make, args=(sender, call), name=name)
            process.start()
            started.append((name, process, receiver))
            sender.close()
        results = {name: _received(receiver) for name, _, receiver in started}
    except BaseException:
        for _, process, _ in started:
            process.terminate()
        raise
    finally:
        for _, process, _ in started:
            process.join(ENDING_S)
    failed = [
        f"{name}: {one.sentence}" for name, one in results.items() if isinstance(one, _Failed)
    ]
    if failed:
        raise ChaosError("\n".join(failed))
    return results


def _received(receiver: Connection) -> Any:
    try:
        return receiver.recv()
    except EOFError:
        return _Failed("its process ended without a word")


def _make(sender: Connection, call: Callable[[], object]) -> None:
    """In the new process."""
    signal.signal(signal.SIGTERM, terminate)
    # Ctrl-C reaches whoever started this one, and ends it once, as everything else does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    try:
        sender.send(call())
    except ChaosError as error:
        sender.send(_Failed(str(error)))
    except Exception:  # noqa: BLE001  # whatever it is, who waits is told
        sender.send(_Failed(traceback.format_exc()))
