"""Opens a policy by name to sample and train in this process, with the format of its family."""

import json
from collections.abc import Sequence
from pathlib import Path

from producer.codecs.compact import COMPACT_MARK
from producer.codecs.format import Format
from producer.errors import UsageError
from producer.policy.compute_settings import DEFAULT_COMPUTE, ComputeSettings
from producer.policy.memory_demand import RunExtent
from producer.policy.torch_policy.formats import open_format
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.learned_advantages import LEARNED, LearnedSettings
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.memory_check import check_memory
from producer.policy.torch_policy.placement import choose_placement
from producer.policy.torch_policy.prompt_check import check_prompts
from producer.policy.torch_policy.render import Renderer
from producer.policy.torch_policy.threads import use_threads


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
