"""The state that the policy keeps of each running episode: its cache slot and where its tokens end.

State that was dropped (after an update or a restart, or for want of memory) is rebuilt from the
recorded turns. Episodes with the same tokens and screens so far share one prefill.
"""

from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from producer.policy.policy import SampledTokens, SampleRequest
from producer.policy.torch_policy.forward import Segment
from producer.policy.torch_policy.kv_cache import EpisodeCaches
from producer.policy.torch_policy.render import Grid, Renderer
from producer.policy.torch_policy.sampling import DecodedBatch, SampledCompletion
from producer.policy.torch_policy.screen_cache import ScreenFeatures
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.sequences import join_turns


@dataclass(frozen=True, slots=True)
class EpisodeState:
    """An episode between two turns."""

    slot: int
    num_cached: int
    next_position: int
    """Rope position of `last_token`."""
    last_token: int
    """Sampled last, not in the cache yet."""
    num_turns: int
    digest: bytes
    """Hash of all tokens and screens up to and including the last turn."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request as network input."""

    new_tokens: list[int]
    """The turn's own prompt tokens, as the log records them."""
    extends: int | None
    """Turn that the prompt extends; None: `new_tokens` is the whole prompt."""
    segment: Segment
    """What is not in the cache yet: `new_tokens`, and before them what the cache lacks."""
    slot: int | None
    num_cached: int
    digest: bytes
    """Equal digests: equal prompts, token by token and screen by screen."""


class Episodes:
    """Turns requests into prompts and keeps each episode's state. Not thread-safe."""

    def __init__(self, renderer: Renderer, encoder: ScreenEncoder, caches: EpisodeCaches) -> None:
        self._renderer = renderer
        self._encoder = encoder
        self._caches = caches
        self._states: dict[UUID, EpisodeState] = {}

    def prompt(self, request: SampleRequest, screen: ScreenFeatures | None) -> Prompt:
        """The request's prompt; `screen` is its screenshot, encoded.

        ValueError if the last turn has no tokens.
        """
        if not request.history:
            self.forget(request.episode)
            tokens = self._renderer.first_turn(
                request.task.description, _grid(screen), text=request.text
            )
            return Prompt(
                new_tokens=tokens,
                extends=None,
                segment=Segment(tokens, _shown(screen)),
                slot=None,
                num_cached=0,
                digest=_digest(b"", tokens, screen),
            )
        previous = request.history[-1].tokens
        if previous is None:
            message = (
                f"episode {request.episode} cannot continue: another policy took its last turn and"
                " recorded no tokens; continue it with that policy"
            )
            raise ValueError(message)
        tokens = self._renderer.next_turn(
            _grid(screen), stopped=previous.stop_reason == "stop", text=request.text
        )
        state = self._states.get(request.episode)
        if (
            state is None
            or state.num_turns != len(request.history)
            or not self._caches.holds(state.slot)
        ):
            return self._rebuilt_prompt(request, tokens, screen)
        return Prompt(
            new_tokens=tokens,
            extends=len(request.history),
            segment=Segment([state.last_token, *tokens], _shown(screen), state.next_position),
            slot=state.slot,
            num_cached=state.num_cached,
            digest=_digest(state.digest, tokens, screen),
        )

    def store(
        self, requests: list[SampleRequest], prompts: list[Prompt], decoded: DecodedBatch
    ) -> None:
        """Keep the state of every row after its turn."""
        slots, lengths = [], []
        for row, (request, prompt, completion) in enumerate(
            zip(requests, prompts, decoded.completions, strict=True)
        ):
            slots.append(self._caches.allocate() if prompt.slot is None else prompt.slot)
            num_appended = len(completion.tokens) - 1
            lengths.append(decoded.prefilled.num_cached[row] + num_appended)
            self._states[request.episode] = EpisodeState(
                slot=slots[-1],
                num_cached=lengths[-1],
                next_position=decoded.prefilled.next_positions[row] + num_appended,
                last_token=completion.tokens[-1],
                num_turns=len(request.history) + 1,
                digest=_digest(prompt.digest, list(completion.tokens), None),
            )
        self._caches.store(slots, lengths, decoded.cache)

    def forget(self, episode: UUID) -> None:
        """Free the episode's state, if there is any."""
        state = self._states.pop(episode, None)
        if state is not None:
            self._caches.release(state.slot)

    def forget_all(self) -> None:
        """Free every state: after an update they belong to the old weights."""
        for episode in list(self._states):
            self.forget(episode)

    def _rebuilt_prompt(
        self, request: SampleRequest, tokens: list[int], screen: ScreenFeatures | None
    ) -> Prompt:
        self.forget(request.episode)
        turns = [
            (turn.screenshot, turn.tokens) for turn in request.history if turn.tokens is not None
        ]
        sequence = join_turns(turns)[-1]
        past = self._encoder.encode(sequence.screenshots)
        digest = b""
        begins = [index for index, (_, one) in enumerate(turns) if one.prompt_extends is None]
        # The turn that begins a sequence may show more screens than its own; its own is the last.
        own = iter(past[max(0, turns[begins[-1]][1].num_prompt_images - 1) :])
        for screenshot, recorded in turns[begins[-1] :]:
            past_screen = None if screenshot is None else next(own)
            digest = _digest(digest, list(recorded.prompt_tokens), past_screen)
            digest = _digest(digest, list(recorded.completion_tokens), None)
        return Prompt(
            new_tokens=tokens,
            extends=len(request.history),
            segment=Segment([*sequence.tokens, *tokens], [*past, *_shown(screen)]),
            slot=None,
            num_cached=0,
            digest=_digest(digest, tokens, screen),
        )


def sampled_tokens(
    prompt: Prompt, completion: SampledCompletion, num_prompt_images: int
) -> SampledTokens:
    """A turn as the log records it."""
    return SampledTokens(
        prompt_extends=prompt.extends,
        prompt_tokens=tuple(prompt.new_tokens),
        num_prompt_images=num_prompt_images,
        completion_tokens=completion.tokens,
        completion_logprobs=completion.logprobs,
        stop_reason=completion.stop_reason,
    )


def _shown(screen: ScreenFeatures | None) -> list[ScreenFeatures]:
    return [] if screen is None else [screen]


def _grid(screen: ScreenFeatures | None) -> Grid | None:
    return None if screen is None else screen.grid


def _digest(previous: bytes, tokens: list[int], screen: ScreenFeatures | None) -> bytes:
    ref = "" if screen is None else screen.ref
    return sha256(previous + f"{tokens}{ref}".encode()).digest()
