"""`NoisyOracle`: a scripted policy that knows the phone's true state and, now and then, does something else. It has no tokens."""

from collections.abc import Callable, Sequence
from random import Random
from uuid import UUID

from producer.codecs.compact import CompactCodec
from producer.environments.android_sim.device.sim import AndroidSim
from producer.environments.android_sim.oracle.oracles import oracle_action, random_action
from producer.policy.policy import Completion, SampleRequest


class NoisyOracle:
    """A Policy. `device_of` finds the phone of an episode.

    Whoever opens the environment keeps that (a dict's `__getitem__` does).

    With probability `noise` an action is drawn at random. Deterministic per (seed, request.seed)
    and state of the phone; blocks on nothing.
    """

    name = "oracle"
    version = 0

    def __init__(self, device_of: Callable[[UUID], AndroidSim], *, noise: float, seed: int) -> None:
        if not 0 <= noise <= 1:
            message = f"expected a noise from 0 to 1, found {noise}"
            raise ValueError(message)
        self._device_of = device_of
        self._noise = noise
        self._seed = seed
        self._codec = CompactCodec()

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One action per request."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """Nothing is kept."""

    def _sample(self, request: SampleRequest) -> Completion:
        sim = self._device_of(request.episode)
        random = Random(f"{self._seed}/{request.seed}")  # noqa: S311  # noise, not secrets
        width, height = request.screenshot.width_px, request.screenshot.height_px
        if random.random() < self._noise:
            text = self._codec.encode(random_action(random, sim), width, height)
        else:
            text, _ = oracle_action(request.task, sim, self._codec)
        return Completion(text=text, actions=self._codec.parse(text, width, height), tokens=None)
