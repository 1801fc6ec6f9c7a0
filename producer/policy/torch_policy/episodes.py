"""Where each running episode stands in the policy.

Its cache slot, what was said last, and how it goes on with a new screen.

What was not kept (an update made it stale, the process is new) is built again from the recorded
turns. Episodes that said and saw the same so far share one prefill.
"""

from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from producer.policy.policy import SampledTokens, SampleRequest
from producer.policy.torch_policy.forward import Chunk
from producer.policy.torch_policy.kv_cache import EpisodeCaches, WorkingCache
from producer.policy.torch_policy.render import Renderer
from producer.policy.torch_policy.sample import Drawn, Prefilled
from producer.policy.torch_policy.screen_encoder import ScreenEncoder, ScreenFeatures
from producer.policy.torch_policy.sequences import join_turns


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of an episode between two turns."""

    slot: int
    num_cached: int
    next_position: int
    """Rope position of `last_token`."""
    last_token: int
    """Drawn last and not in the cache yet."""
    num_turns: int
    said_so_far: bytes
    """Digest of all tokens and screens up to and with the last turn."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request ready to be run."""

    new_tokens: list[int]
    """The turn's own prompt tokens, as they are recorded."""
    extends: int | None
    chunk: Chunk
    """What the network has yet to see: more than `new_tokens`."""
    slot: int | None
    num_cached: int
    digest: bytes
    """Same digest: same prompt, token by token and screen by screen."""


class Episodes:
    """Turns requests into prompts and keeps what was computed. Not thread-safe."""

    def __init__(self, renderer: Renderer, encoder: ScreenEncoder, caches: EpisodeCaches) -> None:
        self._renderer = renderer
        self._encoder = encoder
        self._caches = caches
        self._kept: dict[UUID, Kept] = {}

    def prompt(self, request: SampleRequest, seen: ScreenFeatures) -> Prompt:
        """How this request's prompt continues what is kept; `seen` is its screenshot."""
        if not request.history:
            self.forget(request.episode)
            tokens = self._renderer.first_turn(request.task.description, seen.grid)
            return Prompt(tokens, None, Chunk(tokens, [seen]), None, 0, _digest(b"", tokens, seen))
        previous = request.history[-1].tokens
        if previous is None:
            message = (
                f"episode {request.episode} has a turn without tokens, so another policy began it;"
                " only that one can go on with it"
            )
            raise ValueError(message)
        tokens = self._renderer.next_turn(seen.grid, stopped=previous.stop_reason == "stop")
        kept = self._kept.get(request.episode)
        if kept is None or kept.num_turns != len(request.history):
            return self._from_records(request, tokens, seen)
        chunk = Chunk([kept.last_token, *tokens], [seen], kept.next_position)
        digest = _digest(kept.said_so_far, tokens, seen)
        return Prompt(tokens, len(request.history), chunk, kept.slot, kept.num_cached, digest)

    def keep(
        self,
        requests: list[SampleRequest],
        prompts: list[Prompt],
        drawn: list[Drawn],
        after: Prefilled,
        working: WorkingCache,
    ) -> None:
        """Remember the batch, row by row.

        `after` is where each stood when its prompt was run, `working` what its cache holds now.
        """
        slots = []
        for row, (request, prompt, said) in enumerate(zip(requests, prompts, drawn, strict=True)):
            slots.append(self._caches.allocate() if prompt.slot is None else prompt.slot)
            num_said = len(said.tokens) - 1
            self._kept[request.episode] = Kept(
                slot=slots[-1],
                num_cached=after.num_cached[row] + num_said,
                next_position=after.ends[row] + num_said,
                last_token=said.tokens[-1],
                num_turns=len(request.history) + 1,
                said_so_far=_digest(prompt.digest, list(said.tokens), None),
            )
        self._caches.put(slots, working)

    def forget(self, episode: UUID) -> None:
        """Free what is kept of it."""
        kept = self._kept.pop(episode, None)
        if kept is not None:
            self._caches.release(kept.slot)

    def forget_all(self) -> None:
        """The weights changed: what is kept belongs to the old ones."""
        for episode in list(self._kept):
            self.forget(episode)

    def _from_records(
        self, request: SampleRequest, tokens: list[int], seen: ScreenFeatures
    ) -> Prompt:
        self.forget(request.episode)
        turns = [
            (turn.screenshot, turn.tokens) for turn in request.history if turn.tokens is not None
        ]
        said = join_turns(turns)[-1]
        past = self._encoder.encode(said.screenshots)
        digest = b""
        for (_, recorded), screen in zip(turns[-len(past) :], past, strict=True):
            digest = _digest(
                _digest(digest, list(recorded.prompt_tokens), screen),
                list(recorded.completion_tokens),
                None,
            )
        chunk = Chunk([*said.tokens, *tokens], [*past, seen])
        return Prompt(tokens, len(request.history), chunk, None, 0, _digest(digest, tokens, seen))


def sampled_tokens(prompt: Prompt, drawn: Drawn, num_images: int) -> SampledTokens:
    """A turn as the log records it."""
    return SampledTokens(
        prompt.extends,
        tuple(prompt.new_tokens),
        num_images,
        drawn.tokens,
        drawn.logprobs,
        drawn.stop_reason,
    )


def _digest(so_far: bytes, tokens: list[int], seen: ScreenFeatures | None) -> bytes:
    screen = "" if seen is None else seen.key
    return sha256(so_far + f"{tokens}{screen}".encode()).digest()
