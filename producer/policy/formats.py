"""The format of a policy's prompts and actions, by name and family. Imports no torch."""

import json
from collections.abc import Callable
from pathlib import Path

from producer.codecs.codec import Format
from producer.codecs.compact import COMPACT_MARK, CompactCodec
from producer.codecs.qwen import QwenToolCodec
from producer.codecs.qwen_tools import Scale, ToolName, tools_prompt
from producer.codecs.recipe import RECIPE_PROMPT, RecipeCodec
from producer.errors import UsageError
from producer.policy.compute_settings import PolicySettings

IN_PIXELS = frozenset({"qwen2_vl", "qwen2_5_vl"})
"""Architectures that write coordinates in pixels of the resized screenshot; later ones write
thousandths."""
TOOLS: dict[str, ToolName] = {"qwen_mobile": "mobile_use", "qwen_computer": "computer_use"}


def named_format(
    renderer_name: str,
    model_type: str,
    image_scale: Callable[[], Scale],
    *,
    is_compact: bool,
    screen_px: tuple[int, int] | None,
    official: str = "qwen_mobile",
) -> Format:
    """The format with this name; `auto` chooses by the policy. Raises UsageError.

    `official`: what `auto` is for policies other than the demo policy. `image_scale`: the size to
    which the policy's own image processor resizes a screenshot; called only for a policy that
    writes pixels. `screen_px`: the device's width and height, which the
    prompt tells Qwen2.5-VL; None if there is no screen.
    """
    if renderer_name == "auto":
        renderer_name = "compact" if is_compact else official
    match renderer_name:
        case "compact":
            return Format(CompactCodec(), None)
        case "recipe":
            return Format(RecipeCodec(), RECIPE_PROMPT)
        case "qwen_mobile" | "qwen_computer":
            tool = TOOLS[renderer_name]
            if screen_px is None or model_type not in IN_PIXELS:
                return Format(QwenToolCodec(tool), tools_prompt(tool))
            scale = image_scale()
            width, height = scale(*screen_px)
            return Format(QwenToolCodec(tool, scale), tools_prompt(tool, f"{width}x{height}"))
        case "openai":
            message = "renderer_name: openai is the format of a policy of base_url; use another"
            raise UsageError(message)
        case _:
            choices = "auto, compact, qwen_mobile, qwen_computer or recipe"
            message = f"unknown renderer_name {renderer_name!r}; choose {choices}"
            raise UsageError(message)


def warmed_up_format(folder: str | Path) -> str | None:
    """Format that a built-in policy was warmed up with; None for any other policy."""
    mark = Path(folder) / COMPACT_MARK
    if not mark.is_file():
        return None
    return str(json.loads(mark.read_text()).get("codec", "compact"))


def fitting_format(
    settings: PolicySettings, folder: str | Path, model_type: str, image_scale: Callable[[], Scale]
) -> Format:
    """The format that the settings ask for, for a policy whose files are in `folder`.

    It has no system prompt if the policy was trained to know its actions. Raises UsageError.
    """
    own = warmed_up_format(folder)
    written = settings.text_format or named_format(
        settings.renderer_name,
        model_type,
        image_scale,
        is_compact=own == "compact",
        screen_px=settings.screen_px,
        official=settings.official_renderer,
    )
    return written._replace(system_prompt=None) if written.codec.name == own else written


def sees_no_screens(name: str, title: str) -> str:
    """The message for a policy without a vision tower in an environment with screens."""
    return (
        f"policy {name!r} ({title}) sees no screens, which this environment shows; choose a"
        " model_name with a vision tower, such as Qwen3-VL"
    )
