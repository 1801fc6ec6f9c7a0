"""Facts about one environment (a simulated or real device), written by whoever made it, stream `environment/<id>`."""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import Payload, UtcTime


class EnvironmentRequested(Payload):
    """Somebody wants an environment."""

    TYPE: ClassVar[str] = "cua.environment.requested"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    env_type: str
    """android_sim, gbox, browser ..."""
    box_type: str
    """android, linux."""
    config: dict[str, JsonValue]


class EnvironmentCreationStarted(Payload):
    """It is being made."""

    TYPE: ClassVar[str] = "cua.environment.creation_started"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "creating"


class EnvironmentStarted(Payload):
    """It answers."""

    TYPE: ClassVar[str] = "cua.environment.started"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "running"

    gbox_id: str
    """The provider's name for it."""
    started_at: UtcTime


class EnvironmentTerminated(Payload):
    """It is gone, as wished."""

    TYPE: ClassVar[str] = "cua.environment.terminated"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "terminated"

    terminated_at: UtcTime
    status_message: str | None = None


class EnvironmentFailed(Payload):
    """It died, or never came up."""

    TYPE: ClassVar[str] = "cua.environment.failed"
    ENTITY: ClassVar[str | None] = "environment"
    STATUS: ClassVar[str | None] = "error"

    error_message: str
    terminated_at: UtcTime
