"""Opens a policy by name to sample and train in this process, with the codec of its family."""

from pathlib import Path

from producer.codecs.codec import Codec
from producer.codecs.compact import COMPACT_MARK, CompactCodec
from producer.codecs.qwen import QwenCodec
from producer.errors import UsageError
from producer.policy.compute_settings import DEFAULT_COMPUTE, ComputeSettings
from producer.policy.memory_demand import RunExtent
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.memory_check import check_memory
from producer.policy.torch_policy.placement import choose_placement

QWEN_SYSTEM_PROMPT = """\
You operate a phone by its screenshots. Each turn you see the screen and answer with one tool call:
<tool_call>
{"name": "mobile_use", "arguments": {"action": ACTION, ...}}
</tool_call>
Actions: click, long_press (coordinate [x, y]; long_press also time in seconds); \
swipe (coordinate, coordinate2); type (text);
system_button (button: Back, Home, Menu); open (text: package name); wait (time); \
answer (text); terminate (status: success or failure).
Coordinates run from 0 to 1000 on each axis, from the top left. \
Call terminate when the task is done or cannot be done."""


def open_in_process(
    folder: str,
    *,
    lora_rank: int,
    renderer_name: str,
    seed: int,
    adapter: Path | None = None,
    compute: ComputeSettings = DEFAULT_COMPUTE,
    extent: RunExtent | None = None,
    max_recent_turns: int | None = None,
) -> InProcessPolicy:
    """The policy of a folder or hub id, with a fresh adapter or the saved `adapter`.

    NotFoundError if there is no such policy or adapter, UsageError if it is not a Qwen3-VL policy,
    the renderer is unknown, the device is not there, or what `extent` asks for does not fit into
    its memory (None: not checked).
    """
    placement = choose_placement(compute.device, compute.dtype)
    if extent is not None:
        check_memory(folder, lora_rank, compute, extent, placement)
    network = load_network(folder, lora_rank, seed, adapter, placement)
    codec = _codec(renderer_name, is_compact=(Path(folder) / COMPACT_MARK).is_file())
    return InProcessPolicy(
        network,
        codec,
        QWEN_SYSTEM_PROMPT if isinstance(codec, QwenCodec) else None,
        compute,
        max_recent_turns=max_recent_turns,
    )


def _codec(renderer_name: str, *, is_compact: bool) -> Codec:
    match renderer_name:
        case "auto":
            return CompactCodec() if is_compact else QwenCodec()
        case "compact":
            return CompactCodec()
        case "qwen":
            return QwenCodec()
        case _:
            message = f"unknown renderer_name {renderer_name!r}; choose auto, compact or qwen"
            raise UsageError(message)
