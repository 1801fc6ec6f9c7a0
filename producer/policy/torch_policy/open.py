"""Opens a policy by name to sample and train in this process, with the format of its family."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from producer.codecs.compact import COMPACT_MARK, CompactCodec
from producer.codecs.format import Format
from producer.codecs.qwen import OWN_PROMPT, QwenCodec
from producer.codecs.qwen_tools import QwenToolCodec, Scale, ToolName, resized, tools_prompt
from producer.codecs.recipe import RECIPE_PROMPT, RecipeCodec
from producer.errors import UsageError
from producer.policy.compute_settings import DEFAULT_COMPUTE, ComputeSettings
from producer.policy.memory_demand import RunExtent
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.learned_advantages import LEARNED, LearnedSettings
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.memory_check import check_memory
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import choose_placement
from producer.policy.torch_policy.render import Grid, Renderer
from producer.policy.torch_policy.screen_encoder import num_screen_tokens
from producer.policy.torch_policy.threads import use_threads


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


def open_in_process(
    folder: str,
    *,
    lora_rank: int,
    renderer_name: str,
    seed: int,
    adapter: Path | None = None,
    compute: ComputeSettings = DEFAULT_COMPUTE,
    extent: RunExtent | None = None,
    lora_alpha: float | None = None,
    target_modules: tuple[str, ...] | None = None,
    screen_px: tuple[int, int] | None = (1, 1),
    text_format: Format | None = None,
    max_recent_turns: int | None = None,
    instructions: Sequence[str] = (),
    lora_dropout: float = 0.0,
    learned: LearnedSettings | None = None,
    trains_all: bool = False,
) -> InProcessPolicy:
    """The policy of a folder or hub id, with a fresh adapter or the saved `adapter`.

    `learned`: settings of an advantage that the update computes; of a saved adapter its weights are
    taken too, if there are any.
    `screen_px`: width and height of the environment's screen; None: it has none. `text_format`: of
    an environment without one; None: `renderer_name` decides. `trains_all`: all weights are
    trained, in float32, in place of an adapter.

    NotFoundError if there is no such policy or adapter; UsageError if it cannot be loaded whole,
    sees no screens although the environment has some, the renderer is unknown, the device is
    not there, or what `extent` asks for does not fit into its memory or, with one of the
    `instructions`, into its context (None: not checked).
    """
    # Updates of all weights are smaller than the steps of bfloat16.
    placement = choose_placement(compute.device, "float32" if trains_all else compute.dtype)
    if extent is not None:
        # Adapters of an advantage have the policy's size, and optimisers of their own.
        rank = lora_rank * (1 + (0 if learned is None else LEARNED[learned].num_adapters))
        check_memory(
            *(folder, rank, compute, extent, placement, target_modules), trains_all=trains_all
        )
    network = load_network(
        *(folder, lora_rank, seed, adapter, placement),
        lora_alpha=lora_alpha,
        target_modules=target_modules,
        lora_dropout=lora_dropout,
        trains_all=trains_all,
    )
    use_threads(folder, network.num_weights, network.device, compute.cpu_threads)
    if screen_px is not None and not network.architecture.sees_screens:
        message = (
            f"policy {folder!r} ({network.architecture.title}) sees no screens, which this"
            " environment shows; choose a model_name with a vision tower, such as Qwen3-VL"
        )
        raise UsageError(message)
    warmed_up_with = _own_format(folder)
    written = text_format or open_format(
        renderer_name, network, is_compact=warmed_up_with == "compact", screen_px=screen_px
    )
    if written.codec.name == warmed_up_with:
        # It was trained to know its actions.
        written = written._replace(system_prompt=None)
    if extent is not None:
        renderer = Renderer(network.processor, network.image_token, written.system_prompt)
        check_prompts(network, renderer, extent, instructions)
    policy = InProcessPolicy(
        network,
        written.codec,
        written.system_prompt,
        compute,
        max_recent_turns=max_recent_turns,
    )
    if learned is not None and adapter is not None:
        policy.load_learned(learned, adapter)
    return policy


def _own_format(folder: str) -> str | None:
    """Name of the format that a built-in policy was warmed up with; None of any other policy."""
    mark = Path(folder) / COMPACT_MARK
    if not mark.is_file():
        return None
    return str(json.loads(mark.read_text()).get("codec", "compact"))
