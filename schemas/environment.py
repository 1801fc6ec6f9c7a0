"""Events of one environment (a simulated or real device, a database); stream `environment/<id>`."""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import Payload, UtcTime


class EnvironmentRequested(Payload):
    """An environment was requested."""

    TYPE: ClassVar[str] = "cua.environment.requested"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    env_type: str
    """Implementation: android_sim, dbbench, text_to_sql, gbox ..."""
    box_type: str
    """Operating system: android, linux; `database` of environments without one."""
    config: dict[str, JsonValue]
    """Settings of the environment. `is_simulated`: whether it ends with its process."""


class EnvironmentCreationStarted(Payload):
    """The device is being created."""

    TYPE: ClassVar[str] = "cua.environment.creation_started"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "creating"


class EnvironmentStarted(Payload):
    """The device is running."""

    TYPE: ClassVar[str] = "cua.environment.started"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "running"

    gbox_id: str
    """The provider's id of the device."""
    started_at: UtcTime
    """When it was ready."""


class EnvironmentTerminated(Payload):
    """The device was released."""

    TYPE: ClassVar[str] = "cua.environment.terminated"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "terminated"

    terminated_at: UtcTime
    """When it was released."""
    status_message: str | None = None
    """Why; None: its rollout ended."""


class EnvironmentFailed(Payload):
    """The device failed or did not start."""

    TYPE: ClassVar[str] = "cua.environment.failed"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "error"

    error_message: str
    """What went wrong."""
    terminated_at: UtcTime
    """When the failure was noticed."""


class EnvironmentLeaked(Payload):
    """The device's rollout is over, and the device was not released: it may still run."""

    TYPE: ClassVar[str] = "cua.environment.leaked"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "error"

    error_message: str
    """Why it was not released."""
    leaked_at: UtcTime
    """When it was given up."""


class EnvironmentReleased(Payload):
    """A leaked device was released after all. Changes no status."""

    TYPE: ClassVar[str] = "cua.environment.released"
    ENTITY: ClassVar[str | None] = "environment"

    released_at: UtcTime
    """When it was released."""
