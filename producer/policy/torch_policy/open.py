"""Opens a policy by name to sample and train in this process, with the format of its family."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from producer.codecs.qwen_tools import Scale, resized
from producer.errors import UsageError
from producer.policy.compute_settings import PolicySettings
from producer.policy.formats import fitting_format, sees_no_screens
from producer.policy.memory_demand import RunExtent
from producer.policy.policy import SampleRequest
from producer.policy.torch_policy.cpu_parallel import use_threads
from producer.policy.torch_policy.in_process import LEARNED, InProcessPolicy, LearnedSettings
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.memory_check import check_memory
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import choose_placement
from producer.policy.torch_policy.ranks import current_ranks
from producer.policy.torch_policy.render import Grid, Renderer
from producer.policy.torch_policy.screen_encoder import blank_screenshot, num_screen_tokens
from producer.task import Task

if TYPE_CHECKING:
    from producer.policy.sampling_servers import SamplingServers
    from producer.policy.torch_policy.server_sampler import ServerSampler

CHECKED_TOKENS: Final = 8
"""Length of the completion used to compare the servers' weights with these."""


def check_prompts(
    network: Network,
    renderer: Renderer,
    settings: PolicySettings,
    max_tokens: int,
    instructions: Sequence[str],
) -> None:
    """Raises UsageError if an instruction, the screen and a completion exceed the context.

    Also if an instruction contains the image placeholder. Only first turns are checked, as later
    prompts drop their oldest turns.
    """
    grid = _grid(network, settings.screen_px)
    num_tokens = max(
        (len(renderer.first_turn(instruction, grid)) for instruction in {*instructions}), default=0
    )
    limit = network.max_context_tokens
    if limit is not None and num_tokens + max_tokens > limit:
        message = (
            f"max_tokens: policy {network.name!r} takes {limit:,} tokens, but the longest first"
            f" prompt has {num_tokens:,} and max_tokens is {max_tokens:,}; choose a smaller"
            " max_tokens or another policy"
        )
        raise UsageError(message)


def _grid(network: Network, screen_px: tuple[int, int] | None) -> Grid | None:
    """A grid with as many tokens as the screen; their arrangement does not matter here."""
    if network.visual is None or screen_px is None:
        return None
    return Grid(1, num_screen_tokens(network.processor.image_processor, screen_px))


def image_scale(images: Any) -> Scale:
    """Computes the size to which the policy's image processor resizes a screenshot."""
    size = images.size
    return resized(
        images.patch_size * images.merge_size, size["shortest_edge"], size["longest_edge"]
    )


def open_in_process(
    settings: PolicySettings,
    *,
    extent: RunExtent | None = None,
    instructions: Sequence[str] = (),
    learned: LearnedSettings | None = None,
    servers: "SamplingServers | None" = None,
    temperature: float = 1.0,
) -> InProcessPolicy:
    """Open the policy of these settings.

    `learned`: settings of an advantage that the update computes; its weights are loaded from a
    saved adapter if that has them. `servers` sample instead of this process, after a completion at
    `temperature` has shown that they have the same weights; raises as
    `InProcessPolicy.check_servers`.

    Raises NotFoundError if there is no such policy or adapter. Raises UsageError if the policy
    cannot be loaded completely, sees no screens although the environment has some, the renderer is
    unknown, the device does not exist, or the work of `extent` (None: not checked) does not fit
    into its memory or, with one of the `instructions`, into its context.
    """
    folder, compute, screen_px = settings.folder, settings.compute, settings.screen_px
    if extent is not None and extent.is_training and current_ranks() is not None:
        _check_ranks(learned, settings.lora_dropout)
    # When all weights are trained, updates are smaller than a step of bfloat16.
    dtype = "float32" if settings.trains_all else compute.dtype
    placement = choose_placement(compute.device, dtype)
    # An advantage's adapters have the policy's size and their own optimisers.
    num_adapters = 1 + (0 if learned is None else LEARNED[learned].num_adapters)
    estimated_bytes = (
        None if extent is None else check_memory(settings, extent, placement, num_adapters)
    )
    network = load_network(
        *(folder, settings.lora_rank, settings.seed, settings.adapter, placement),
        lora_alpha=settings.lora_alpha,
        target_modules=settings.target_modules,
        lora_dropout=settings.lora_dropout,
        trains_all=settings.trains_all,
    )
    network = replace(network, estimated_bytes=estimated_bytes)
    use_threads(folder, network.num_weights, network.device, compute.cpu_threads)
    if screen_px is not None and not network.architecture.sees_screens:
        raise UsageError(sees_no_screens(folder, network.architecture.title))
    written = fitting_format(
        settings,
        folder,
        network.base.config.model_type,
        lambda: image_scale(network.processor.image_processor),
    )
    if extent is not None:
        renderer = Renderer(network.processor, network.image_token, written.system_prompt)
        check_prompts(network, renderer, settings, extent.max_tokens, instructions)
    policy = InProcessPolicy(
        network,
        written.codec,
        written.system_prompt,
        compute,
        max_recent_turns=settings.max_recent_turns,
        server_sampler=_server_sampler(servers, network, written.system_prompt),
    )
    policy.opening = replace(settings, adapter=None, text_format=None)
    if servers is not None:
        policy.check_servers(_first_request(instructions, screen_px, temperature))
    if learned is not None and settings.adapter is not None:
        policy.load_learned(learned, settings.adapter)
    return policy


def _check_ranks(learned: LearnedSettings | None, lora_dropout: float) -> None:
    """Raises UsageError for features that several processes would compute differently from one."""
    for field, is_given in (
        ("advantage", learned is not None),
        ("lora_dropout", lora_dropout > 0),
    ):
        if is_given:
            message = f"{field}: not with several processes of torchrun; omit it, or start one"
            raise UsageError(message)


def _server_sampler(
    servers: "SamplingServers | None", network: Network, system_prompt: str | None
) -> "ServerSampler | None":
    if servers is None:
        return None
    from producer.policy.torch_policy.server_sampler import ServerSampler

    return ServerSampler(servers, network, system_prompt)


def _first_request(
    instructions: Sequence[str], screen_px: tuple[int, int] | None, temperature: float
) -> SampleRequest:
    """A short first turn of the first task, on a blank screen."""
    instruction = next(iter(instructions), "Try")
    task = Task("check", "check", instruction, None, None, 1, None, None)
    shot = None if screen_px is None else blank_screenshot(screen_px)
    return SampleRequest(UUID(int=0), task, (), shot, temperature, CHECKED_TOKENS, seed=0)
