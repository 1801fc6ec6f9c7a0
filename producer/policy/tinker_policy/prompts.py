"""Builds whole prompts of episodes, because the service keeps no state of them.

The same turns give the same tokens as in process (`torch_policy.episodes`).
"""

from dataclasses import dataclass

from producer.environments.environment import Screenshot
from producer.policy.policy import SampleRequest
from producer.policy.prompts import PromptLimits, anchor_of, fitting_prompt
from producer.policy.sequences import TokenSequence, join_turns
from producer.policy.tinker_policy.policy_files import PolicyFiles
from producer.policy.torch_policy.render import Grid, Renderer


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request as tokens."""

    new_tokens: list[int]
    """The turn's own prompt tokens, as the log records them."""
    extends: int | None
    """The turn that the prompt extends; None if `new_tokens` is the whole prompt."""
    whole: TokenSequence
    num_images: int
    """Number of screens in the whole prompt, as the log records it."""

    @property
    def num_tokens(self) -> int:
        """Number of tokens of the whole prompt."""
        return len(self.whole.tokens)


class Prompts:
    """Turns requests into prompts. Not thread-safe."""

    def __init__(
        self,
        files: PolicyFiles,
        renderer: Renderer,
        limits: PromptLimits,
    ) -> None:
        self._files = files
        self._renderer = renderer
        self._limits = limits

    def prompt(self, request: SampleRequest) -> Prompt:
        """The request's prompt; if it would be too long, its oldest turns are dropped.

        Raises PromptTooLongError if the screen alone is too long or, without screens, the prompt.
        """
        return fitting_prompt(
            request,
            self._limits,
            lambda: self._extended(request),
            lambda anchor: self._anchored(request, anchor),
        )

    def first_length(self, instruction: str, screen_px: tuple[int, int] | None) -> int:
        """Number of tokens of an episode's first prompt. Raises as `Renderer.first_turn`."""
        shot = None if screen_px is None else Screenshot(b"", *screen_px)
        return len(self._renderer.first_turn(instruction, self._grid(shot)))

    def _extended(self, request: SampleRequest) -> Prompt:
        """The prompt that extends the last turn's, or the first prompt of the episode."""
        shot = request.screenshot
        shots = [] if shot is None else [shot]
        if not request.history:
            tokens = self._renderer.first_turn(
                request.task.description, self._grid(shot), text=request.text
            )
            if request.prefix:
                tokens = [*tokens, *self._renderer.tokens(request.prefix)]
            return Prompt(tokens, None, TokenSequence(list(tokens), shots), len(shots))
        last = request.history[-1].tokens
        tokens = self._renderer.next_turn(
            self._grid(shot), stopped=last.stop_reason == "stop", text=request.text
        )
        turns = [(turn.screenshot, turn.tokens) for turn in request.history]
        whole = join_turns(turns)[-1]
        whole.tokens += tokens
        whole.screenshots += shots
        num_images = 0 if shot is None else request.num_screenshots - anchor_of(request.history)
        return Prompt(tokens, len(request.history), whole, num_images)

    def _anchored(self, request: SampleRequest, anchor: int) -> Prompt:
        """The whole prompt from turn `anchor` (from 0) on, instruction first: a new sequence."""
        shots = [(turn.screen, turn.tokens) for turn in request.history[anchor:]]
        screens = [*(screen for screen, _ in shots), request.screen]
        whole = TokenSequence(screenshots=screens)
        whole.tokens += self._renderer.first_turn(
            request.task.description,
            self._grid(screens[0]),
            text=request.text_after_description(anchor),
        )
        texts = request.texts[anchor + 1 :]
        for (_, recorded), following, text in zip(shots, screens[1:], texts, strict=True):
            completion = recorded.completion_tokens
            whole.sampled_at += range(len(whole.tokens), len(whole.tokens) + len(completion))
            whole.tokens += completion
            whole.tokens += self._renderer.next_turn(
                self._grid(following), stopped=recorded.stop_reason == "stop", text=text
            )
        return Prompt(list(whole.tokens), None, whole, len(screens))

    def _grid(self, shot: Screenshot | None) -> Grid | None:
        """A grid with as many tokens as the screen; the service decides their arrangement."""
        return None if shot is None else Grid(1, self._files.num_image_tokens(shot))
