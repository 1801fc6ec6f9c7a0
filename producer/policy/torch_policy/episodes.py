"""The policy's state of each running episode: its cache slot and the position after its tokens.

State that was dropped (after an update, after a restart, or to save memory) is rebuilt from the
recorded turns. Episodes whose tokens and screens are equal so far share one prefill.
"""

from dataclasses import dataclass
from uuid import UUID

from producer.policy.policy import SampledTokens, SampleRequest
from producer.policy.prompts import PromptLimits, anchor_of, fitting_prompt
from producer.policy.sequences import join_turns
from producer.policy.torch_policy.forward import (
    EpisodeCaches,
    Prompt,
    Segment,
    new_prompt,
    prompt_digest,
)
from producer.policy.torch_policy.render import Grid, Renderer
from producer.policy.torch_policy.sampling import DecodedBatch, SampledCompletion
from producer.policy.torch_policy.screen_encoder import ScreenEncoder, ScreenFeatures


@dataclass(frozen=True, slots=True)
class EpisodeState:
    """State of an episode between two turns."""

    slot: int
    num_cached: int
    next_position: int
    """Rope position of `last_token`."""
    last_token: int
    """The token sampled last, which is not in the cache yet."""
    num_turns: int
    digest: bytes
    """Hash of all tokens and screens up to and including the last turn."""


class Episodes:
    """Turns requests into prompts and keeps each episode's state. Not thread-safe."""

    def __init__(
        self,
        renderer: Renderer,
        encoder: ScreenEncoder,
        caches: EpisodeCaches,
        limits: PromptLimits,
    ) -> None:
        self._renderer = renderer
        self._encoder = encoder
        self._caches = caches
        self._limits = limits
        self._states: dict[UUID, EpisodeState] = {}

    def prompt(self, request: SampleRequest, screen: ScreenFeatures | None) -> Prompt:
        """The request's prompt; `screen` is its encoded screenshot.

        If the prompt would be too long, its oldest turns are dropped. Raises ValueError if the last
        turn has no tokens, PromptTooLongError if the screen alone is too long or, without screens,
        the prompt.
        """
        return fitting_prompt(
            request,
            self._limits,
            lambda: self._extended_prompt(request, screen),
            lambda anchor: self._anchored_prompt(request, screen, anchor),
        )

    def _extended_prompt(self, request: SampleRequest, screen: ScreenFeatures | None) -> Prompt:
        """The prompt that extends the last turn's, or the first prompt of the episode."""
        if not request.history:
            self.forget(request.episode)
            tokens = self._renderer.first_turn(
                request.task.description, _grid(screen), text=request.text
            )
            if request.prefix:
                tokens = [*tokens, *self._renderer.tokens(request.prefix)]
            return new_prompt(tokens, _shown(screen))
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
            digest=prompt_digest(state.digest, tokens, _shown(screen)),
            num_images=(
                0 if screen is None else request.num_screenshots - anchor_of(request.history)
            ),
        )

    def store(
        self, requests: list[SampleRequest], prompts: list[Prompt], decoded: DecodedBatch
    ) -> None:
        """Keep the state of each row after its turn."""
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
                digest=prompt_digest(prompt.digest, list(completion.tokens), []),
            )
        self._caches.store(slots, lengths, decoded.cache)

    def forget(self, episode: UUID) -> None:
        """Free the episode's state, if there is any."""
        state = self._states.pop(episode, None)
        if state is not None:
            self._caches.release(state.slot)

    def forget_all(self) -> None:
        """Free all states, which belong to the old weights after an update."""
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
            # The first turn of a sequence may show more screens than its own.
            num_images = recorded.num_prompt_images if num_digested == 0 else 1
            if screenshot is None:
                num_images = 0
            screens = past[num_digested : num_digested + num_images]
            digest = prompt_digest(digest, list(recorded.prompt_tokens), screens)
            digest = prompt_digest(digest, list(recorded.completion_tokens), [])
            num_digested += num_images
        return Prompt(
            new_tokens=tokens,
            extends=len(request.history),
            segment=Segment([*sequence.tokens, *tokens], [*past, *_shown(screen)]),
            slot=None,
            num_cached=0,
            digest=prompt_digest(digest, tokens, _shown(screen)),
            num_images=len(past) + len(_shown(screen)),
        )

    def _anchored_prompt(
        self, request: SampleRequest, screen: ScreenFeatures | None, anchor: int
    ) -> Prompt:
        """The whole prompt from turn `anchor` (from 0) on, instruction first: a new sequence."""
        self.forget(request.episode)
        shown = [(turn.screen, turn.tokens) for turn in request.history[anchor:]]
        screens = [*self._encoder.encode([shot for shot, _ in shown]), *_shown(screen)]
        tokens = self._renderer.first_turn(
            request.task.description, screens[0].grid, text=request.text_after_description(anchor)
        )
        texts = request.texts[anchor + 1 :]
        for (_, recorded), following, text in zip(shown, screens[1:], texts, strict=True):
            tokens += recorded.completion_tokens
            tokens += self._renderer.next_turn(
                following.grid, stopped=recorded.stop_reason == "stop", text=text
            )
        return new_prompt(tokens, screens)


def sampled_tokens(prompt: Prompt, completion: SampledCompletion) -> SampledTokens:
    """The record of a turn's tokens for the log."""
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
