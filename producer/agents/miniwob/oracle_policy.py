"""`PageOracle`: a scripted policy that reads the page's DOM and acts with mouse and keys.

It exercises the whole system without torch. It has no tokens and no weights, so it learns nothing.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from random import Random
from uuid import UUID

from pydantic import TypeAdapter

from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.episode_page import HEIGHT_PX, WIDTH_PX
from producer.codecs.openai import OpenAICodec
from producer.policy.policy import Completion, SampleRequest
from producer.policy.scripted_learner import ScriptedLearner
from schemas.actions import Action, Click, Terminate

_ACTION: TypeAdapter[Action] = TypeAdapter(Action)
NEXT_ACTION = """([name, taken]) => {
  const oracle = ORACLES[name];
  return oracle ? oracle(taken) : null;
}"""


@lru_cache(maxsize=1)
def oracle_script() -> str:
    """JavaScript that defines ORACLES, a map from page names to functions of the actions so far.

    Each function returns the next action, or null if it knows none.
    """
    folder = files("producer.agents.miniwob").joinpath("oracles")
    scripts = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".js")), key=lambda file: file.name
    )
    return "\n".join(file.read_text(encoding="utf-8") for file in scripts)


def oracle_action(
    environment: MiniWobEnvironment, name: str, taken: Sequence[Action]
) -> Action | None:
    """The next action of the page's oracle; None if it knows none, or the page has no oracle."""
    if not environment.evaluate("() => 'ORACLES' in window"):
        environment.evaluate("script => { (0, eval)(script) }", oracle_script())
    found = environment.evaluate(NEXT_ACTION, [name, [one.model_dump() for one in taken]])
    return None if found is None else _ACTION.validate_python(found)


class PageOracle(ScriptedLearner):
    """A `Learner` that takes the oracle's action, or with probability `noise` a random click.

    On a page without an oracle it gives up. A completion depends only on (`seed`, request.seed),
    the page and the episode's earlier actions. Never blocks.
    """

    def __init__(self, *, noise: float, seed: int) -> None:
        """`noise` is the probability of a random click; raises ValueError if it is invalid."""
        super().__init__(noise=noise, seed=seed)
        self._pages: dict[UUID, MiniWobEnvironment] = {}
        self._codec = OpenAICodec()

    def attach(self, episode: UUID, page: MiniWobEnvironment) -> None:
        """Let the oracle read this episode's page until `forget`."""
        self._pages[episode] = page

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One action per request."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """Detach the episode's page."""
        self._pages.pop(episode, None)

    def _sample(self, request: SampleRequest) -> Completion:
        random = Random(f"{self._seed}/{request.seed}")  # noqa: S311  # noise, not secrets
        if random.random() < self._noise:
            action: Action = Click(x=random.randrange(WIDTH_PX), y=random.randrange(HEIGHT_PX))
        else:
            action = self._best(request)
        text = self._codec.encode(action, WIDTH_PX, HEIGHT_PX)
        return Completion(text, self._codec.parse(text, WIDTH_PX, HEIGHT_PX), tokens=None)

    def _best(self, request: SampleRequest) -> Action:
        taken = [
            call.action
            for turn in request.history
            for call in turn.completion.actions
            if call.action is not None
        ]
        page = self._pages[request.episode]
        found = oracle_action(page, request.task.task_id, taken)
        return found or Terminate(status="failure")
