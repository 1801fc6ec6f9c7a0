"""The format of a policy's prompts and actions: a codec, and the system prompt that explains it."""

from typing import Any

from producer.codecs.compact import CompactCodec
from producer.codecs.format import Format
from producer.codecs.qwen import OWN_PROMPT, QwenCodec
from producer.codecs.qwen_tools import QwenToolCodec, Scale, ToolName, resized, tools_prompt
from producer.codecs.recipe import RECIPE_PROMPT, RecipeCodec
from producer.errors import UsageError
from producer.policy.torch_policy.network import Network

IN_PIXELS = frozenset({"qwen2_vl", "qwen2_5_vl"})
"""Architectures that write pixels of the resized screenshot; later ones write thousandths."""
TOOLS: dict[str, ToolName] = {"qwen_mobile": "mobile_use", "qwen_computer": "computer_use"}


def open_format(
    renderer_name: str, network: Network, *, is_compact: bool, screen_px: tuple[int, int] | None
) -> Format:
    """The format of this name; `auto` chooses by the policy. UsageError.

    `screen_px`: the device's width and height, which Qwen2.5-VL is told; None: there is no screen.
    """
    if renderer_name == "auto":
        renderer_name = "compact" if is_compact else "qwen_mobile"
    match renderer_name:
        case "compact":
            return Format(CompactCodec(), None)
        case "qwen":
            return Format(QwenCodec(), OWN_PROMPT)
        case "recipe":
            return Format(RecipeCodec(), RECIPE_PROMPT)
        case "qwen_mobile" | "qwen_computer":
            return _official(TOOLS[renderer_name], network, screen_px)
        case "openai":
            message = "renderer_name: openai is the format of a policy of base_url; use another"
            raise UsageError(message)
        case _:
            choices = "auto, compact, qwen_mobile, qwen_computer, qwen or recipe"
            message = f"unknown renderer_name {renderer_name!r}; choose {choices}"
            raise UsageError(message)


def _official(tool: ToolName, network: Network, screen_px: tuple[int, int] | None) -> Format:
    if screen_px is None or network.base.config.model_type not in IN_PIXELS:
        return Format(QwenToolCodec(tool), tools_prompt(tool))
    scale = _resized(network.processor.image_processor)
    width, height = scale(*screen_px)
    return Format(QwenToolCodec(tool, scale), tools_prompt(tool, f"{width}x{height}"))


def _resized(images: Any) -> Scale:
    """The size that the policy's own image processor gives a screenshot."""
    size = images.size
    return resized(
        images.patch_size * images.merge_size, size["shortest_edge"], size["longest_edge"]
    )
