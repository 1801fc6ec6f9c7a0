"""libpq's variables: which of a process's environment they are, and how to be rid of them."""

import os
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager

PREFIX = "PG"
"""Of every variable that libpq reads; psql's own begin with PSQL_."""

_hiding = threading.Lock()


def libpq_variables(environ: Mapping[str, str]) -> list[str]:
    """The names of libpq's variables that are set."""
    return sorted(name for name in environ if name.startswith(PREFIX) and "_COLOR" not in name)


def forget_libpq_variables(environ: MutableMapping[str, str]) -> None:
    """Remove libpq's variables; for processes of ours that use the embedded database."""
    for name in libpq_variables(environ):
        del environ[name]


@contextmanager
def without_libpq_variables() -> Iterator[None]:
    """Hide libpq's variables from this process's connections for a moment. Thread-safe."""
    with _hiding:
        hidden = {name: os.environ.pop(name) for name in libpq_variables(os.environ)}
        try:
            yield
        finally:
            os.environ.update(hidden)
