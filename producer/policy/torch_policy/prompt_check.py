"""The first prompt of every task, rendered before anything is recorded: one too long is refused."""

from collections.abc import Sequence

from producer.errors import UsageError
from producer.policy.memory_demand import RunExtent
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.render import Grid, Renderer
from producer.policy.torch_policy.screen_encoder import num_screen_tokens


def check_prompts(
    network: Network, renderer: Renderer, extent: RunExtent, instructions: Sequence[str]
) -> None:
    """UsageError if an instruction, the screen and a completion exceed the policy's context.

    Also if an instruction contains the image placeholder. Later turns drop the oldest instead.
    """
    grid = _grid(network, extent)
    num_tokens = max(
        (len(renderer.first_turn(instruction, grid)) for instruction in {*instructions}), default=0
    )
    limit = network.max_context_tokens
    if limit is not None and num_tokens + extent.max_tokens > limit:
        message = (
            f"max_tokens: policy {network.name!r} takes {limit:,} tokens, but the longest first"
            f" prompt has {num_tokens:,} and max_tokens is {extent.max_tokens:,}; choose a smaller"
            " max_tokens or another policy"
        )
        raise UsageError(message)


def _grid(network: Network, extent: RunExtent) -> Grid | None:
    """As many tokens as the screen has; their arrangement is not counted."""
    if network.visual is None or extent.screen_px is None:
        return None
    return Grid(1, num_screen_tokens(network.processor.image_processor, extent.screen_px))
