"""Lists the devices that exist at providers, and those that no running training uses any more."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import JsonValue

from producer.agents import AGENTS
from producer.agents.agent import RentedDevice
from producer.environments.environment import EnvironmentFailedError
from producer.resume.training_lock import ENDED
from producer.training.kept_trainings import INTERRUPTED, LoggedTraining, logged_trainings
from schemas.installation import Installation

UNKNOWN = "unknown"
LEFT = ENDED | {INTERRUPTED}
"""Statuses of a training that uses no devices."""
CLOCKS_DIFFER = timedelta(minutes=1)
"""Largest assumed difference between the provider's clock and ours."""


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A device and its training."""

    environment: str
    """The agent that rents the device."""
    device: RentedDevice
    training_status: str
    """Status in the log; `unknown` if this log lacks the training, which may run elsewhere."""
    is_left: bool
    """Whether its training has ended, was interrupted, or was resumed by a later process."""
    age_s: float

    def as_json(self) -> dict[str, JsonValue]:
        """The device as JSON, for scripts."""
        device = self.device
        expires_at = device.expires_at
        return {
            "device": device.device_id,
            "environment": self.environment,
            "box_type": device.box_type,
            "status": device.status,
            "training": device.training,
            "training_status": self.training_status,
            "is_left": self.is_left,
            "age_s": self.age_s,
            "expires_at": None if expires_at is None else expires_at.isoformat(timespec="seconds"),
        }


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of closing a device."""

    listed: ListedDevice
    failure: str | None
    """Why the device may still be running; None if it was closed."""

    def as_json(self) -> dict[str, JsonValue]:
        """The result as JSON, for scripts."""
        return {**self.listed.as_json(), "failure": self.failure}


def list_devices(installation: Installation, now: datetime) -> list[ListedDevice]:
    """Devices, oldest first. Raises the providers' errors; UnreachableError without the log."""
    found = [(name, device) for name, agent in AGENTS.items() for device in agent.rented_devices()]
    names = {device.training for _, device in found if device.training is not None}
    logged = logged_trainings(installation, names)
    listed = [
        _listed(name, device, logged.get(device.training or ""), now) for name, device in found
    ]
    return sorted(listed, key=lambda item: (item.device.created_at, item.device.device_id))


def _listed(
    environment: str, device: RentedDevice, training: LoggedTraining | None, now: datetime
) -> ListedDevice:
    is_left = training is not None and (
        training.status in LEFT or device.created_at < training.process_began_at - CLOCKS_DIFFER
    )
    status = UNKNOWN if training is None else training.status
    age_s = max(0.0, (now - device.created_at).total_seconds())
    return ListedDevice(environment, device, status, is_left, age_s)


def sweep(listed: Sequence[ListedDevice]) -> list[Swept]:
    """Close the devices."""
    swept = []
    for item in listed:
        failure = None
        try:
            AGENTS[item.environment].release(item.device.device_id)
        except EnvironmentFailedError as error:
            failure = str(error)
        swept.append(Swept(item, failure))
    return swept
