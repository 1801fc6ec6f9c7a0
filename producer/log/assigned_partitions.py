"""How many partitions the keys of each topic are assigned to, as one process has found out.

A process opens Kafka twice at its start, to send and to read. Finding out costs as much as all else
of that, so the second caller waits for the first one's result.
"""

import threading
from collections.abc import Callable, Collection, Mapping

WAIT_S = 10.0
"""For another thread's answer: as long as Kafka is waited for."""


class AssignedPartitions:
    """The number of each topic, found once. Thread-safe."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        """`wait_s`: how long to wait for another thread, before finding out oneself."""
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._found: dict[tuple[str, int], int] = {}
        """(Topic's id, size) -> number: a topic that is made anew or grows is another."""

    def of(
        self,
        topics: Mapping[str, tuple[str, int]],
        find: Callable[[Collection[str]], Mapping[str, int]],
    ) -> dict[str, int]:
        """The number of each topic, given by name with its id and size.

        `find`: the numbers of some of them; asked for those that are not known. Raises what it
        raises; nothing is remembered then.
        """
        has_lock = self._lock.acquire(timeout=self._wait_s)
        try:
            missing = [name for name, topic in topics.items() if topic not in self._found]
            if missing:
                self._found |= {topics[name]: number for name, number in find(missing).items()}
            return {name: self._found[topic] for name, topic in topics.items()}
        finally:
            if has_lock:
                self._lock.release()
