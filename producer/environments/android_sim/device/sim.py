"""`AndroidSim`: the simulated phone as an Environment.

Same task, seed and actions: the same screens, byte for byte.
"""

import secrets
import time

from PIL import Image

from producer.environments.android_sim.device import gestures, shell
from producer.environments.android_sim.painting import paint
from producer.environments.android_sim.screens import scene
from producer.environments.android_sim.screens.widget import (
    HEIGHT_PX,
    WIDTH_PX,
    Element,
    Scene,
    Widget,
)
from producer.environments.android_sim.state.phone import Phone
from producer.environments.android_sim.state.variation import fresh_phone
from producer.environments.environment import EnvironmentFailedError, Screenshot
from producer.task import Task
from schemas.actions import Action

MIN_SHARE_VISIBLE = 0.4
"""A part that is covered more than this is no element: nobody could tell what it is."""


class AndroidSim:
    """One simulated phone for one episode.

    Not thread-safe, blocks only in `hang_s`; after a failure every call but `close` fails; `close`
    twice is once.

    For tests of what happens when devices fail: `fail_on_open` never comes up;
    `fail_after_actions=n` dies during action n + 1; `hang_after_actions=n` blocks for `hang_s`
    seconds in action n + 1 and then goes on as if nothing had been.
    """

    env_type = "android_sim"
    box_type = "android"

    def __init__(
        self,
        *,
        fail_on_open: bool = False,
        fail_after_actions: int | None = None,
        hang_after_actions: int | None = None,
        hang_s: float = 0.0,
    ) -> None:
        self._fail_on_open = fail_on_open
        self._fail_after_actions = fail_after_actions
        self._hang_after_actions = hang_after_actions
        self._hang_s = hang_s
        self._phone: Phone | None = None
        self._provider_id = ""
        self._num_actions = 0

    @property
    def provider_id(self) -> str:
        """`sim-<seed>-<random>`; empty before `open`."""
        return self._provider_id

    @property
    def phone(self) -> Phone:
        """The true state, for oracles and tests.

        EnvironmentFailedError when the phone is not up.
        """
        if self._phone is None:
            message = (
                "the simulated phone is not running; call open() first, and nothing after close()"
                " or a failure"
            )
            raise EnvironmentFailedError(message)
        return self._phone

    def open(self, task: Task, seed: int) -> Screenshot:
        """A fresh phone for this seed with the task's set-up done.

        EnvironmentFailedError when a set-up command fails.
        """
        self.start(task, seed)
        return self.look()

    def start(self, task: Task, seed: int) -> None:
        """`open` without a screenshot, for who asks for `picture`."""
        if self._fail_on_open:
            message = "the simulated phone did not come up (fail_on_open)"
            raise EnvironmentFailedError(message)
        self._phone = fresh_phone(seed)
        self._provider_id = f"sim-{seed}-{secrets.token_hex(4)}"
        self._num_actions = 0
        for command in task.setup:
            printed = shell.run(self._phone, command)
            if printed.status != 0:
                self._phone = None
                message = (
                    f"set-up of {task.task_id} failed: {command!r} printed {printed.text.strip()!r}"
                )
                raise EnvironmentFailedError(message)

    def act(self, action: Action) -> Screenshot:
        """Do it and show the screen after it. ActionRefusedError: the screen is unchanged."""
        self.perform(action)
        return self.look()

    def perform(self, action: Action) -> None:
        """`act` without a screenshot."""
        phone = self.phone
        if self._num_actions == self._hang_after_actions:
            time.sleep(self._hang_s)
        if self._num_actions == self._fail_after_actions:
            self._phone = None
            message = (
                f"the simulated phone died after {self._num_actions} actions (fail_after_actions)"
            )
            raise EnvironmentFailedError(message)
        self._num_actions += 1
        gestures.perform(phone, action)

    def shell(self, command: str) -> str:
        """What the phone's shell prints."""
        return shell.run(self.phone, command).text

    def close(self) -> None:
        """Forget the phone."""
        self._phone = None

    def look(self) -> Screenshot:
        """The screen as it is."""
        return Screenshot(png=paint.png(scene(self.phone)), width_px=WIDTH_PX, height_px=HEIGHT_PX)

    def picture(self) -> Image.Image:
        """The screen as an RGB picture, the same pixels as `look` without the detour over PNG."""
        return paint.draw(scene(self.phone))

    def visible_elements(self) -> list[Element]:
        """Ground truth: everything that is drawn now and can be touched.

        For supervised warm-up and oracles, never for rollouts.
        """
        shown = scene(self.phone)
        return [
            element
            for index, widget in enumerate(shown.widgets)
            if (element := _element(shown, index, widget)) is not None
        ]


def _element(shown: Scene, index: int, widget: Widget) -> Element | None:
    if not widget.name or widget.effect is None:
        return None
    look, above = widget.look, shown.widgets[index + 1 :]
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
    """Top and bottom of what the bars above a list leave of it, and the screen."""
    top, bottom = max(0, widget.y), min(HEIGHT_PX, widget.y + widget.look.height)
    for other in above:
        if other.look.width == WIDTH_PX and other.x == 0:
            end = other.y + other.look.height
            if other.y <= top < end:
                top = end
            if other.y < bottom <= end:
                bottom = other.y
    return top, bottom
