"""`cua-train` that kills itself at one place: `python -m tests.support.killed_run PLACE -- ARGS…`.

    emit TYPE N     the N-th event of a type is emitted, and may be on disk or not
    flushed TYPE N  the same, with that event and all before it on disk
    optimizer N     after the N-th step of an optimiser: in an update
    open NAME N     as the N-th file of that name is opened: a state or checkpoint half written
    rename NAME N   before the N-th file gets that name: a state without its manifest

SIGKILL, as `kill -9` does.
"""

import itertools
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from producer import cli
from producer.emit.stream import StreamWriter
from schemas.base import Payload
from tests.support.forked_process import ForkedProcess

_PATH_OF = {"open": ("open", 0), "rename": ("os.rename", 1)}
"""Kind of place -> audit event, and which of its arguments is the file's name."""
DYING = "killed at its place\n"
"""Its last words."""


def kill_at(kind: str, *what: str) -> None:
    """From now on this process ends where the place says."""
    *name, number = what
    calls = itertools.count(1)

    def count() -> None:
        if next(calls) == int(number):
            os.write(2, DYING.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    if kind == "optimizer":
        register_optimizer_step_post_hook(lambda *_: count())
    elif kind in _PATH_OF:
        sys.addaudithook(_on_file(*_PATH_OF[kind], name[0], count))
    else:
        _count_events(name[0], count, is_flushed=kind == "flushed")


def _on_file(
    event: str, argument: int, name: str, count: Callable[[], None]
) -> Callable[[str, tuple[object, ...]], None]:
    def hook(happened: str, arguments: tuple[object, ...]) -> None:
        if happened == event:
            path = arguments[argument]
            if isinstance(path, str | Path) and Path(path).name == name:
                count()

    return hook


def _count_events(type_: str, count: Callable[[], None], *, is_flushed: bool) -> None:
    def counting(method: Callable[..., object]) -> Callable[..., object]:
        def counted(stream: StreamWriter, payload: Payload) -> object:
            done = method(stream, payload)
            if type_ == payload.TYPE:
                if is_flushed:
                    stream._context.buffer.flush(None)
                count()
            return done

        return counted

    for name in ("emit", "ensure"):
        setattr(StreamWriter, name, counting(getattr(StreamWriter, name)))


def run_until_killed(
    place: Sequence[str], words: Sequence[str], environ: Mapping[str, str] | None = None
) -> None:
    """Run `cua-train` with these words in a process of its own, which must die at the place."""
    with NamedTemporaryFile("r") as said:
        killed = ("tests.support.killed_run", *place, "--", *words)
        with ForkedProcess(*killed, environ=environ, stderr=said.name) as process:
            process.wait()
        text = said.read()
    assert text.endswith(DYING), text[-2000:]


if __name__ == "__main__":
    torch.set_num_threads(1)
    split = sys.argv.index("--")
    kill_at(*sys.argv[1:split])
    sys.argv = ["cua-train", *sys.argv[split + 1 :]]
    cli.main()
