"""The state that the policy keeps of each running episode: its cache slot and where its tokens end.

State that was dropped (after an update or a restart, or for want of memory) is rebuilt from the
recorded turns. Episodes with the same tokens and screens so far share one prefill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from producer.errors import UsageError
from producer.policy.policy import SampledTokens, SampleRequest, Turn
from producer.policy.torch_policy.forward import Segment
from producer.policy.torch_policy.kv_cache import EpisodeCaches
from producer.policy.torch_policy.render import Grid, Renderer
from producer.policy.torch_policy.sampling import DecodedBatch, SampledCompletion
from producer.policy.torch_policy.screen_cache import ScreenFeatures
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.sequences import join_turns


def anchor_of(history: Sequence[Turn]) -> int:
    """Index of the first turn in the last turn's prompt. 0 without turns that have tokens."""
    for index in range(len(history) - 1, -1, -1):
        tokens = history[index].completion.tokens
        if tokens is not None and tokens.prompt_extends is None:
            return max(0, index + 1 - tokens.num_prompt_images)
    return 0


def next_anchor(anchor: int, num_turns: int, max_recent_turns: int | None) -> int:
    """Index of the first turn in the prompt after `num_turns` turns; `num_turns`: no past turn.

    At least `max_recent_turns` past turns are shown once there are as many, and fewer than twice
    that; None: all of them.
    """
    if max_recent_turns is None or num_turns - anchor < 2 * max_recent_turns:
        return anchor
    return num_turns - max_recent_turns


def anchors_of_shorter_prompts(anchor: int, num_turns: int) -> Sequence[int]:
    """Where a prompt that is too long may begin instead, the first choice first.

    At least half of the past turns go, or else the next prompt would be too long again.
    """
    return range(anchor + (num_turns - anchor + 1) // 2, num_turns + 1)


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
    num_images: int
    """Screens in the whole prompt."""

    @property
    def num_tokens(self) -> int:
        """Of the whole prompt."""
        return self.num_cached + len(self.segment.tokens)


class PromptTooLongError(UsageError):
    """The prompt and its completion exceed the policy's context."""


class Episodes:
    """Turns requests into prompts and keeps each episode's state. Not thread-safe."""

    def __init__(
        self,
        renderer: Renderer,
        encoder: ScreenEncoder,
        caches: EpisodeCaches,
        *,
        max_recent_turns: int | None = None,
        max_context_tokens: int | None = None,
    ) -> None:
        """`max_recent_turns`: as in `context.next_anchor`.

        `max_context_tokens`: of a prompt and its completion; None: no limit.
        """
        self._renderer = renderer
        self._encoder = encoder
        self._caches = caches
        self._max_recent_turns = max_recent_turns
        self._max_context_tokens = max_context_tokens
        self._states: dict[UUID, EpisodeState] = {}

    def prompt(self, request: SampleRequest, screen: ScreenFeatures | None) -> Prompt:
        """The request's prompt; `screen` is its screenshot, encoded.

        A prompt that would be too long drops its oldest turns. ValueError if the last turn has no
        tokens, PromptTooLongError if the screen alone is too long, or without screens the prompt.
        """
        num_turns = len(request.history)
        before = anchor_of(request.history)
        # Without a screen every turn is kept: a turn does not repeat earlier observations.
        anchor = (
            before if screen is None else next_anchor(before, num_turns, self._max_recent_turns)
        )
        if screen is None or anchor == before:
            prompt = self._extended_prompt(request, screen)
        else:
            prompt = self._anchored_prompt(request, screen, anchor)
        if self._fits(prompt, request):
            return prompt
        if screen is not None:
            for shorter in anchors_of_shorter_prompts(anchor, num_turns):
                prompt = self._anchored_prompt(request, screen, shorter)
                if self._fits(prompt, request):
                    return prompt
        what = "the prompt has" if screen is None else "instruction and screen have"
        message = (
            f"the policy takes {self._max_context_tokens:,} tokens, but {what}"
            f" {prompt.num_tokens:,} and max_tokens is {request.max_tokens:,}; choose a smaller"
            " max_tokens or another policy"
        )
        raise PromptTooLongError(message)

    def _fits(self, prompt: Prompt, request: SampleRequest) -> bool:
        limit = self._max_context_tokens
        return limit is None or prompt.num_tokens + request.max_tokens <= limit

    def _extended_prompt(self, request: SampleRequest, screen: ScreenFeatures | None) -> Prompt:
        """The prompt that extends the last turn's; the first prompt of an episode without turns."""
        if not request.history:
            self.forget(request.episode)
            tokens = self._renderer.first_turn(
                request.task.description, _grid(screen), text=request.text
            )
            if request.prefix:
                tokens = [*tokens, *self._renderer.tokens(request.prefix)]
            return Prompt(
                new_tokens=tokens,
                extends=None,
                segment=Segment(tokens, _shown(screen)),
                slot=None,
                num_cached=0,
                digest=_digest(b"", tokens, _shown(screen)),
                num_images=len(_shown(screen)),
            )
        previous = request.history[-1].completion.tokens
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
            digest=_digest(state.digest, tokens, _shown(screen)),
            num_images=(
                0 if screen is None else request.num_screenshots - anchor_of(request.history)
            ),
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
                digest=_digest(prompt.digest, list(completion.tokens), []),
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
            (turn.screenshot, turn.tokens)
            for turn in request.history
            if turn.completion.tokens is not None
        ]
        sequence = join_turns(turns)[-1]
        past = self._encoder.encode(sequence.screenshots)
        first = max(
            index for index, (_, recorded) in enumerate(turns) if recorded.prompt_extends is None
        )
        digest, num_digested = b"", 0
        for screenshot, recorded in turns[first:]:
            # The turn that begins a sequence may show more screens than its own.
            num_images = recorded.num_prompt_images if num_digested == 0 else 1
            if screenshot is None:
                num_images = 0
            screens = past[num_digested : num_digested + num_images]
            digest = _digest(digest, list(recorded.prompt_tokens), screens)
            digest = _digest(digest, list(recorded.completion_tokens), [])
            num_digested += num_images
        return Prompt(
            new_tokens=tokens,
            extends=len(request.history),
            segment=Segment([*sequence.tokens, *tokens], [*past, *_shown(screen)]),
            slot=None,
            num_cached=0,
            digest=_digest(digest, tokens, _shown(screen)),
            num_images=len(past) + len(_shown(screen)),
        )

    def _anchored_prompt(
        self, request: SampleRequest, screen: ScreenFeatures, anchor: int
    ) -> Prompt:
        """The whole prompt from turn `anchor` (from 0) on, instruction first: a new sequence."""
        self.forget(request.episode)
        shown = [(turn.screen, turn.tokens) for turn in request.history[anchor:]]
        screens = [*self._encoder.encode([shot for shot, _ in shown]), screen]
        tokens = self._renderer.first_turn(request.task.description, screens[0].grid)
        for (_, recorded), following in zip(shown, screens[1:], strict=True):
            tokens += recorded.completion_tokens
            tokens += self._renderer.next_turn(
                following.grid, stopped=recorded.stop_reason == "stop"
            )
        return Prompt(
            new_tokens=tokens,
            extends=None,
            segment=Segment(tokens, screens),
            slot=None,
            num_cached=0,
            digest=_digest(b"", tokens, screens),
            num_images=len(screens),
        )


def sampled_tokens(prompt: Prompt, completion: SampledCompletion) -> SampledTokens:
    """A turn as the log records it."""
    return SampledTokens(
        prompt_extends=prompt.extends,
        prompt_tokens=tuple(prompt.new_tokens),
        num_prompt_images=prompt.num_images,
        completion_tokens=completion.tokens,
        completion_logprobs=completion.logprobs,
        stop_reason=completion.stop_reason,
    )


def _shown(screen: ScreenFeatures | None) -> list[ScreenFeatures]:
    return [] if screen is None else [screen]


def _grid(screen: ScreenFeatures | None) -> Grid | None:
    return None if screen is None else screen.grid


def _digest(previous: bytes, tokens: list[int], screens: Sequence[ScreenFeatures]) -> bytes:
    refs = "".join(screen.ref for screen in screens)
    return sha256(previous + f"{tokens}{refs}".encode()).digest()
