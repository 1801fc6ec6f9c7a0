"""Whether a policy's tokenizer and image processor belong to its weights."""

from typing import Any

from transformers import PreTrainedModel

from producer.errors import UsageError
from producer.policy.torch_policy.architectures import Architecture


def check_processor(
    name: str, architecture: Architecture, network: PreTrainedModel, processor: Any
) -> None:
    """UsageError for another policy's tokenizer or image processor, which would be wrong inputs."""
    problems = _tokenizer_problems(architecture, network, processor)
    if architecture.sees_screens:
        problems += _image_problems(network, processor)
    if problems:
        message = (
            f"policy {name!r} has files of another policy: {'; '.join(problems)}; copy its"
            " tokenizer and processor files from the folder that has its weights"
        )
        raise UsageError(message)


def _tokenizer_problems(
    architecture: Architecture, network: PreTrainedModel, processor: Any
) -> list[str]:
    tokenizer = processor.tokenizer if architecture.sees_screens else processor
    num_rows = network.get_input_embeddings().weight.shape[0]
    problems = []
    if len(tokenizer) > num_rows:
        problems.append(f"its tokenizer has {len(tokenizer)} tokens for {num_rows} embeddings")
    if tokenizer.eos_token_id is None:
        problems.append("its tokenizer has no end token (eos_token)")
    if processor.chat_template is None:
        problems.append("it has no chat template")
    if architecture.sees_screens:
        for token, expected in (
            ("<|image_pad|>", network.config.image_token_id),
            ("<|video_pad|>", network.config.video_token_id),
        ):
            found = tokenizer.convert_tokens_to_ids(token)
            if found != expected:
                problems.append(f"its tokenizer has {token} as {found}, config.json as {expected}")
    return problems


def _image_problems(network: PreTrainedModel, processor: Any) -> list[str]:
    images, vision = processor.image_processor, network.config.vision_config
    return [
        f"its image processor has {field} {getattr(images, field)}, config.json {expected}"
        for field, expected in (
            ("patch_size", vision.patch_size),
            ("temporal_patch_size", vision.temporal_patch_size),
            ("merge_size", vision.spatial_merge_size),
        )
        if getattr(images, field) != expected
    ]
