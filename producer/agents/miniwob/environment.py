"""One page of MiniWoB++ as an environment: screenshots and the page's instruction."""

from contextlib import suppress
from uuid import uuid4

from producer.agents.miniwob.browsers import Browsers, shared_browsers
from producer.agents.miniwob.episode_page import HEIGHT_PX, WIDTH_PX, EpisodePage, PageState
from producer.agents.miniwob.page_files import page_url
from producer.environments.environment import EnvironmentFailedError, Screenshot
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Action

QUERY = "raw reward"
"""The query name in verdicts."""


class MiniWobEnvironment:
    """A page for one episode. Used by one thread at a time."""

    env_type = "miniwob"
    box_type = "linux"
    is_simulated = True
    ends_on_parse_error = False

    def __init__(self, browsers: Browsers | None = None) -> None:
        """`browsers` defaults to the browsers of this process."""
        self._browsers = browsers
        self._page: EpisodePage | None = None
        self._provider_id = ""

    @property
    def provider_id(self) -> str:
        """An id that is new for each `open`; empty before it."""
        return self._provider_id

    def open(self, task: Task, seed: int) -> Screenshot:
        """Load the page and start its episode. The screenshot's text is the instruction.

        The same task and seed give the same screenshot. Raises EnvironmentFailedError.
        """
        self.close()
        browsers = self._browsers = self._browsers or shared_browsers()
        page = browsers.call(EpisodePage.open(browsers, page_url(task.task_id), seed))
        self._page = page
        self._provider_id = f"page-{uuid4().hex[:12]}"
        return self._shown(browsers.call(page.utterance()))

    def restart(self, seed: int) -> Screenshot:
        """Start another episode on the open page, which is faster than to load it again.

        For demonstrations. Raises EnvironmentFailedError.
        """
        browsers, page = self._open()
        browsers.call(page.start(seed))
        return self._shown(browsers.call(page.utterance()))

    def act(self, action: Action) -> Screenshot:
        """Act with mouse and keyboard. Raises ActionRefusedError, EnvironmentFailedError."""
        browsers, page = self._open()
        browsers.call(page.act(action))
        return self._shown(None)

    def judge(self, task: Task, evidence: Evidence) -> Verdict:  # noqa: ARG002  # the page judges
        """The task is solved if the page gave a positive reward. Raises EnvironmentFailedError."""
        state = self._state()
        return Verdict(
            success=state.is_done and state.raw_reward > 0,
            query=QUERY,
            expected=None,
            actual=f"{state.raw_reward:g}" if state.is_done else None,
            details={"is_done": state.is_done, "reason": state.reason},
        )

    def failure_facts(self, evidence: Evidence, reason: str) -> None:
        """None: a failed episode has no environment-specific events."""

    def evaluate(self, script: str, argument: object = None) -> object:
        """Call a JavaScript function in the page and return its result. For oracles and tests."""
        browsers, page = self._open()
        return browsers.call(page.evaluate(script, argument))

    def close(self) -> None:
        """Close the page. Idempotent."""
        page, self._page = self._page, None
        if page is not None and self._browsers is not None:
            with suppress(EnvironmentFailedError):
                self._browsers.call(page.close())

    def _shown(self, text: str | None) -> Screenshot:
        browsers, page = self._open()
        is_over = self._state().is_done
        png = browsers.call(page.screenshot())
        return Screenshot(png, WIDTH_PX, HEIGHT_PX, text=text, is_over=is_over)

    def _state(self) -> PageState:
        browsers, page = self._open()
        return browsers.call(page.state())

    def _open(self) -> tuple[Browsers, EpisodePage]:
        if self._page is None or self._browsers is None:
            message = "the page is not open"
            raise EnvironmentFailedError(message)
        return self._browsers, self._page
