"""One sequence of a supervised training: tokens, and which of them are to be imitated."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A token sequence and which of its tokens are to be imitated."""

    tokens: tuple[int, ...]
    loss_mask: tuple[bool, ...]
    """As long as `tokens`; the first is False, because nothing predicts it."""

    def __post_init__(self) -> None:
        """ValueError if the mask does not fit or no token is a target."""
        if len(self.tokens) != len(self.loss_mask):
            message = f"{len(self.tokens)} tokens have a mask of {len(self.loss_mask)}"
            raise ValueError(message)
        if not any(self.loss_mask):
            message = "no token of the example is a target"
            raise ValueError(message)
        if self.loss_mask[0]:
            message = "the first token cannot be a target: nothing comes before it"
            raise ValueError(message)
