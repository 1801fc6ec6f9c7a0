"""`NoisyOracle`: a scripted policy that reads the simulated phone's true state.

It exercises the whole system without torch: it has no tokens and no weights, so it learns nothing.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal
from uuid import UUID

from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import oracle_action, random_action
from producer.agents.android.sim.oracle.strategies import NoOracleError
from producer.codecs.compact import CompactCodec
from producer.policy.policy import Completion, SampleRequest
from producer.policy.scripted_learner import ScriptedLearner
from schemas.actions import Terminate

NUM_LOST_TURNS = 2
"""Random actions on a task whose goal is unknown, before the policy gives up."""


class NoisyOracle(ScriptedLearner):
    """A `Learner` that takes the oracle's action, or with probability `noise` a random one.

    A task whose goal it does not know (without a device query, or with one that has no strategy) it
    cannot solve: it acts at random for two turns, then ends with a report drawn at random.
    A completion depends on (`seed`, request.seed) and the phone's state alone. Never blocks.
    """

    def __init__(self, *, noise: float, seed: int) -> None:
        """`noise`: probability of a random action. ValueError if it is none."""
        super().__init__(noise=noise, seed=seed)
        self._devices: dict[UUID, AndroidSim] = {}
        self._codec = CompactCodec()

    def attach(self, episode: UUID, device: AndroidSim) -> None:
        """Let the oracle read this episode's phone until `forget`."""
        self._devices[episode] = device

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One action per request."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """Detach the episode's phone."""
        self._devices.pop(episode, None)

    def _sample(self, request: SampleRequest) -> Completion:
        sim = self._devices[request.episode]
        random = Random(f"{self._seed}/{request.seed}")  # noqa: S311  # noise, not secrets
        width, height = request.screen.width_px, request.screen.height_px
        if random.random() < self._noise:
            text = self._codec.encode(random_action(random, sim), width, height)
        else:
            text = self._best(request, sim, random)
        return Completion(text=text, actions=self._codec.parse(text, width, height), tokens=None)

    def _best(self, request: SampleRequest, sim: AndroidSim, random: Random) -> str:
        try:
            if request.task.validation_query is not None:
                return oracle_action(request.task, sim, self._codec)[0]
        except NoOracleError:
            pass
        width, height = request.screen.width_px, request.screen.height_px
        if len(request.history) < NUM_LOST_TURNS:
            return self._codec.encode(random_action(random, sim), width, height)
        status: Literal["success", "failure"] = random.choice(("success", "failure"))
        return self._codec.encode(Terminate(status=status), width, height)
