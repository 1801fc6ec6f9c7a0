"""`AndroidSim`: the simulated phone as an Environment.

Deterministic: the same task, seed and actions give the same screens, byte for byte.
"""

import secrets

from PIL import Image

from producer.agents.android.shell_judge import JudgedByShell
from producer.agents.android.sim.device import gestures, shell
from producer.agents.android.sim.painting import render_image, render_png
from producer.agents.android.sim.screens import scene
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX, Element, Scene, Widget
from producer.agents.android.sim.state.phone import Phone
from producer.agents.android.sim.state.variation import fresh_phone
from producer.environments.environment import EnvironmentFailedError, Screenshot
from producer.task import Task
from schemas.actions import Action

MIN_SHARE_VISIBLE = 0.4
"""Widgets with a smaller visible share are not elements, because they cannot be recognized."""


class AndroidSim(JudgedByShell):
    """One simulated phone for one episode.

    Not thread-safe. Never blocks. Before `open`, after a failed set-up and after `close`, every
    other call raises EnvironmentFailedError. `close` is idempotent.
    """

    env_type = "android_sim"
    box_type = "android"
    is_simulated = True

    def __init__(self) -> None:
        self._phone: Phone | None = None
        self._provider_id = ""

    @property
    def provider_id(self) -> str:
        """`sim-<seed>-<random>`; empty before `open`."""
        return self._provider_id

    @property
    def phone(self) -> Phone:
        """The true state, for oracles and tests. Raises EnvironmentFailedError if not running."""
        if self._phone is None:
            message = "the simulated phone is not running: it was not opened, or was closed"
            raise EnvironmentFailedError(message)
        return self._phone

    def open(self, task: Task, seed: int) -> Screenshot:
        """Start a phone for this seed, run `task.setup` and return the first screenshot.

        Raises EnvironmentFailedError if a set-up command fails.
        """
        self.start(task, seed)
        return self.screenshot()

    def start(self, task: Task, seed: int) -> None:
        """`open` without rendering a screenshot."""
        self._phone = fresh_phone(seed)
        self._provider_id = f"sim-{seed}-{secrets.token_hex(4)}"
        for command in task.setup:
            printed = shell.run(self._phone, command)
            if printed.status != 0:
                self._phone = None
                message = (
                    f"set-up of {task.task_id} failed: {command!r} printed {printed.text.strip()!r}"
                )
                raise EnvironmentFailedError(message)

    def act(self, action: Action) -> Screenshot:
        """Apply the action and return the resulting screenshot.

        Raises ActionRefusedError, EnvironmentFailedError.
        """
        self.perform(action)
        return self.screenshot()

    def perform(self, action: Action) -> None:
        """`act` without rendering a screenshot."""
        gestures.perform(self.phone, action)

    def shell(self, command: str) -> str:
        """Run a shell command and return its output. Raises EnvironmentFailedError."""
        return shell.run(self.phone, command).text

    def close(self) -> None:
        """Shut the phone down. Idempotent."""
        self._phone = None

    def screenshot(self) -> Screenshot:
        """The current screen as PNG."""
        return Screenshot(png=render_png(scene(self.phone)), width_px=WIDTH_PX, height_px=HEIGHT_PX)

    def picture(self) -> Image.Image:
        """The current screen as an RGB image: the pixels of `screenshot` without encoding a PNG."""
        return render_image(scene(self.phone))

    def visible_elements(self) -> list[Element]:
        """Ground truth: the widgets that are visible and can be touched.

        For supervised warm-up and oracles; not available to policies in rollouts.
        """
        drawn = scene(self.phone)
        return [
            element
            for index, widget in enumerate(drawn.widgets)
            if (element := _element(drawn, index, widget)) is not None
        ]


def _element(drawn: Scene, index: int, widget: Widget) -> Element | None:
    if not widget.name or widget.effect is None:
        return None
    look, above = widget.look, drawn.widgets[index + 1 :]
    top, bottom = _visible_part(widget, above)
    if (bottom - top) < MIN_SHARE_VISIBLE * look.height:
        return None
    middle = (widget.x + look.width // 2, (top + bottom) // 2)
    if any(other.contains(*middle) for other in above):
        return None
    return Element(
        widget.name,
        look.label,
        (widget.x, top, widget.x + look.width, bottom),
        look.state if look.state not in {"", "drawer"} else None,
    )


def _visible_part(widget: Widget, above: tuple[Widget, ...]) -> tuple[int, int]:
    """Top and bottom, in px, of the part that bars and the screen's edges leave visible."""
    top, bottom = max(0, widget.y), min(HEIGHT_PX, widget.y + widget.look.height)
    for other in above:
        if other.look.width == WIDTH_PX and other.x == 0:
            end = other.y + other.look.height
            if other.y <= top < end:
                top = end
            if other.y < bottom <= end:
                bottom = other.y
    return top, bottom
