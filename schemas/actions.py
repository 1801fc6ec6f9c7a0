"""Actions of an agent on a device, named as in OpenAI computer use, plus what phones need.

Coordinates are pixels from the top left corner of the screen. `type` selects the class in the
union `Action`. Codecs (`producer.codecs`) map actions to each policy family's format.
"""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Items, Value

Pixel = Annotated[int, Field(ge=0)]


class Click(Value):
    """Tap or click."""

    type: Literal["click"] = "click"
    x: Pixel
    """Column."""
    y: Pixel
    """Row."""
    button: Literal["left", "right", "wheel", "back", "forward"] = "left"
    """Mouse button; a touch screen has the left one only."""


class DoubleClick(Value):
    """Tap or click twice."""

    type: Literal["double_click"] = "double_click"
    x: Pixel
    """Column."""
    y: Pixel
    """Row."""


class LongPress(Value):
    """Touch and hold."""

    type: Literal["long_press"] = "long_press"
    x: Pixel
    """Column."""
    y: Pixel
    """Row."""
    duration_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    """How long to hold."""


class Drag(Value):
    """Press at the first point, move along the path, release at the last."""

    type: Literal["drag"] = "drag"
    path: Annotated[Items[tuple[Pixel, Pixel]], Field(min_length=2)]
    """(x, y) points."""


class Swipe(Value):
    """Move a finger quickly in a straight line."""

    type: Literal["swipe"] = "swipe"
    x: Pixel
    """Column of the start."""
    y: Pixel
    """Row of the start."""
    to_x: Pixel
    """Column of the end."""
    to_y: Pixel
    """Row of the end."""


class Scroll(Value):
    """Scroll the content at a position."""

    type: Literal["scroll"] = "scroll"
    x: Pixel
    """Column of the pointer."""
    y: Pixel
    """Row of the pointer."""
    scroll_x: int = 0
    """Pixels; positive shows what is further right."""
    scroll_y: int = 0
    """Pixels; positive shows what is further down."""


class Move(Value):
    """Move the pointer (desktops)."""

    type: Literal["move"] = "move"
    x: Pixel
    """Column."""
    y: Pixel
    """Row."""


class KeyPress(Value):
    """Press keys together."""

    type: Literal["keypress"] = "keypress"
    keys: Annotated[Items[str], Field(min_length=1)]
    """Names of keys (`enter`, `ctrl`) or single characters."""


class Type(Value):
    """Type text into the focused field."""

    type: Literal["type"] = "type"
    text: str
    """What to type; a line break submits."""


class SystemButton(Value):
    """Press a button of the phone."""

    type: Literal["system_button"] = "system_button"
    button: Literal["home", "back", "recents", "power", "volume_up", "volume_down"]
    """Which button."""


class OpenApp(Value):
    """Start an app as an intent would; not in the action space of every preset."""

    type: Literal["open_app"] = "open_app"
    package: str
    """Android package name."""


class Wait(Value):
    """Do nothing for a while."""

    type: Literal["wait"] = "wait"
    duration_s: Annotated[float, Field(ge=0, le=60)] = 1.0
    """How long."""


class Screenshot(Value):
    """Only take a screenshot."""

    type: Literal["screenshot"] = "screenshot"


class Answer(Value):
    """Answer the user; the episode continues."""

    type: Literal["answer"] = "answer"
    text: str
    """The answer."""


class ExecuteSql(Value):
    """Execute SQL in the session's database."""

    type: Literal["execute_sql"] = "execute_sql"
    sql: str
    """As the agent wrote it."""


class Terminate(Value):
    """End the episode. Whether the task is solved is decided by its validator."""

    type: Literal["terminate"] = "terminate"
    status: Literal["success", "failure"] = "success"
    """The agent's own opinion."""


Action = Annotated[
    Click
    | DoubleClick
    | LongPress
    | Drag
    | Swipe
    | Scroll
    | Move
    | KeyPress
    | Type
    | SystemButton
    | OpenApp
    | Wait
    | Screenshot
    | Answer
    | ExecuteSql
    | Terminate,
    Field(discriminator="type"),
]
