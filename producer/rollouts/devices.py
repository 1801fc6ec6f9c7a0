"""Records how each device really ended: released in time, released late, or leaked.

The end of an episode is recorded at once. Whether its device is gone is known only once `close`
has returned, which for a hung device may be much later, or never.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from producer.bounded_text import cut
from producer.emit import StreamWriter
from producer.environments.environment import Environment
from producer.errors import CuaTrainError
from schemas.environment import (
    EnvironmentFailed,
    EnvironmentLeaked,
    EnvironmentReleased,
    EnvironmentTerminated,
)

logger = logging.getLogger(__name__)


class LeftDevices:
    """Devices of a process that outlived their rollouts. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Device] = []
        self._num_left = 0
        self._is_sealed = False

    @property
    def num_late(self) -> int:
        """Devices that outlived their rollouts and were released later."""
        return self._num_left - len(self._running)

    @property
    def num_leaked(self) -> int:
        """Devices that may still be running."""
        return len(self._running)

    def seal(self) -> None:
        """Stop recording late releases and report the leaks. Call before the emitter closes."""
        with self._lock:
            self._is_sealed = True
            leaked = list(self._running)
        if leaked:
            logger.warning(
                "%d devices were not released and may still run: %s. Release them at their"
                " provider",
                len(leaked),
                "; ".join(device.description for device in leaked),
            )

    def add(self, device: "Device") -> None:
        """Add a device that outlived its rollout."""
        with self._lock:
            self._running.append(device)
            self._num_left += 1

    def release(self, device: "Device", record: Callable[[], None]) -> None:
        """Remove a device that was released after all; calls `record` unless sealed."""
        with self._lock:
            if not self._is_sealed and device in self._running:
                self._running.remove(device)
                record()


class Device:
    """Records how one device ends, exactly once, on its stream. Thread-safe; never blocks."""

    def __init__(
        self,
        environment: Environment,
        stream: StreamWriter,
        clock: Callable[[], datetime],
        left: LeftDevices,
        rollout_name: str,
    ) -> None:
        self._environment = environment
        self._stream = stream
        self._clock = clock
        self._left = left
        self._rollout_name = rollout_name
        self._lock = threading.RLock()
        self._is_leaked = self._is_over = False
        self.failure: str | None = None
        """Why the device failed; set before its end is recorded."""
        self.status_message: str | None = None
        """Why the device ends; None: its rollout ended."""

    @property
    def description(self) -> str:
        """Readable description: the provider's id and the rollout."""
        name = self._environment.provider_id or f"a {self._environment.env_type} without an id yet"
        return f"{name} (of rollout {self._rollout_name})"

    @property
    def is_over(self) -> bool:
        """Whether its release or leak has been recorded."""
        return self._is_over or self._is_leaked

    def released(self) -> None:
        """Record the release, after `close` has returned."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            if self._is_leaked:
                self._left.release(self, self._record_late)
                return
            now = self._clock()
            self._stream.emit(
                EnvironmentTerminated(terminated_at=now, status_message=self.status_message)
                if self.failure is None
                else EnvironmentFailed(error_message=self.failure, terminated_at=now)
            )
            self._stream.close()

    def leak(self, reason: str) -> None:
        """Record that its rollout is over and the device was not released."""
        with self._lock:
            if self._is_over or self._is_leaked:
                return
            self._is_leaked = True
            self._stream.emit(EnvironmentLeaked(error_message=cut(reason), leaked_at=self._clock()))
            self._left.add(self)

    def _record_late(self) -> None:
        # If the process is ending, the recorded leak stands, which is what a reader must assume.
        with suppress(CuaTrainError, ValueError):
            self._stream.emit(EnvironmentReleased(released_at=self._clock()))
            self._stream.close()
