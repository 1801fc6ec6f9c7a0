"""One pass of a loaded policy over a small prompt, before anything is trained or recorded.

What a configuration or the weights have wrong although every tensor has its place ends here as one
sentence: dimensions that do not fit each other, weights that are not numbers.
"""

import io

import torch
from PIL import Image

from producer.environments.environment import Screenshot
from producer.errors import UsageError
from producer.policy.torch_policy.forward import (
    Segment,
    compute_logits,
    hidden_states,
    pad_segments,
)
from producer.policy.torch_policy.hub import first_line
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.render import Renderer
from producer.policy.torch_policy.screen_encoder import ScreenEncoder

_SIDE_PX = 64


@torch.no_grad()
def check_runs(network: Network, encoder: ScreenEncoder, renderer: Renderer) -> None:
    """UsageError if the policy cannot compute finite logits of a first turn."""
    try:
        screens = encoder.encode([_blank()]) if network.visual is not None else []
        tokens = renderer.first_turn("Try", screens[0].grid if screens else None)
        hidden_1TD = hidden_states(network, pad_segments([Segment(tokens, screens)], network))
        logits_V = compute_logits(network, hidden_1TD[0, -1])
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
        message = (
            f"policy {network.name!r} cannot compute ({first_line(error)}); check that its"
            " config.json belongs to its weights"
        )
        raise UsageError(message) from error
    if not torch.isfinite(logits_V).all():
        message = (
            f"policy {network.name!r} computes logits that are not numbers; its weights are damaged"
            " or too large for this dtype, download it again"
        )
        raise UsageError(message)


def _blank() -> Screenshot:
    buffer = io.BytesIO()
    Image.new("RGB", (_SIDE_PX, _SIDE_PX)).save(buffer, "PNG")
    return Screenshot(buffer.getvalue(), _SIDE_PX, _SIDE_PX)
