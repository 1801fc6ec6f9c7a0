"""The files of a remotely computed policy: tokenizer, chat template and image sizes.

Reads the policy's files from the hub except the weights. Needs transformers for its tokenizers, but
not torch.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from transformers import AutoTokenizer

from producer.codecs.qwen_tools import Scale, resized
from producer.environments.environment import Screenshot
from producer.errors import NotFoundError, UsageError
from producer.policy.torch_policy.hub import (
    check_hub_has,
    download_settings,
    first_line,
    policy_folder,
)

SIGHTED: Final = frozenset({"qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"})
BLIND: Final = frozenset({"qwen2", "qwen3"})
TEMPLATES: Final = ("chat_template.jinja", "chat_template.json")


@dataclass(frozen=True, slots=True)
class ImageSizes:
    """How many tokens an image takes."""

    scale: Scale
    """Computes the size that a screenshot is resized to."""
    token_px: int
    """Side of the square of pixels that becomes one token."""

    def num_tokens(self, screenshot: Screenshot) -> int:
        """Number of tokens of this screenshot."""
        size = self.scale(screenshot.width_px, screenshot.height_px)
        return (size.width // self.token_px) * (size.height // self.token_px)


class TextProcessor:
    """The part of a processor that a `Renderer` needs."""

    def __init__(self, tokenizer: Any, chat_template: str | None) -> None:
        self.tokenizer = tokenizer
        self._template = chat_template

    def apply_chat_template(self, messages: list[dict[str, Any]], **options: Any) -> str:
        """Render the dialogue as text."""
        return str(
            self.tokenizer.apply_chat_template(messages, chat_template=self._template, **options)
        )


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """A policy's properties that can be read without its weights."""

    name: str
    """Folder or hub id."""
    folder: Path
    model_type: str
    processor: TextProcessor
    image_token: int | None
    """Id of the placeholder for one image feature; None if the policy sees no screens."""
    images: ImageSizes | None
    end_tokens: tuple[int, ...]
    """Tokens that end a completion, ascending."""
    max_context_tokens: int | None

    @property
    def tokenizer(self) -> Any:
        """The tokenizer."""
        return self.processor.tokenizer

    @property
    def sees_screens(self) -> bool:
        """Whether it has a vision tower."""
        return self.image_token is not None

    def image_scale(self) -> Scale:
        """Computes the size to which its image processor resizes a screenshot."""
        assert self.images is not None  # noqa: S101  # asked only of policies with a tower
        return self.images.scale

    def num_image_tokens(self, screenshot: Screenshot) -> int:
        """Number of placeholders for the screenshot in a prompt."""
        assert self.images is not None  # noqa: S101  # a policy without screens is given none
        return self.images.num_tokens(screenshot)


def read_policy_files(name: str) -> PolicyFiles:
    """Read from a folder, the local cache or the hub. Raises NotFoundError, UsageError."""
    folder = _folder(name)
    config = _read(folder / "config.json")
    model_type = str(config.get("model_type"))
    if model_type not in SIGHTED | BLIND:
        known = ", ".join(sorted(SIGHTED | BLIND))
        message = (
            f"policy {name!r} is of the family {model_type!r}, whose prompts are not known here;"
            f" use one of {known}"
        )
        raise UsageError(message)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    text = config.get("text_config", config)
    assert isinstance(text, dict)  # noqa: S101  # its loader read it
    sees = model_type in SIGHTED
    image_token = config.get("image_token_id")
    if sees and not isinstance(image_token, int):
        message = f"policy {name!r}: its config.json has no image_token_id; use the hub's files"
        raise UsageError(message)
    longest = text.get("max_position_embeddings")
    return PolicyFiles(
        name=name,
        folder=folder,
        model_type=model_type,
        processor=TextProcessor(tokenizer, _chat_template(folder)),
        image_token=image_token if sees and isinstance(image_token, int) else None,
        images=_image_sizes(name, folder) if sees else None,
        end_tokens=_end_tokens(folder, int(tokenizer.eos_token_id)),
        max_context_tokens=longest if isinstance(longest, int) else None,
    )


def _folder(name: str) -> Path:
    try:
        return policy_folder(name, local_files_only=True)
    except OSError as error:
        if Path(name).is_dir():
            message = f"folder {name} is not a policy ({first_line(error)})"
            raise NotFoundError(message) from error
    check_hub_has(name)
    try:
        return download_settings(name)
    except OSError as error:
        message = f"the tokenizer of {name!r} could not be downloaded ({first_line(error)})"
        raise NotFoundError(message, ways=("run again",)) from error


def _chat_template(folder: Path) -> str | None:
    """The processor's chat template; None if the tokenizer's own applies."""
    for path in (folder / template for template in TEMPLATES):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            return text if path.suffix == ".jinja" else str(json.loads(text)["chat_template"])
    return None


def _image_sizes(name: str, folder: Path) -> ImageSizes:
    """Read from the image processor's settings, as transformers does."""
    nested = _read(folder / "processor_config.json").get("image_processor")
    images: Mapping[str, Any] = (
        nested if isinstance(nested, dict) else _read(folder / "preprocessor_config.json")
    )
    size = images.get("size")
    bounds: Mapping[str, Any] = size if isinstance(size, dict) else {}
    lowest = bounds.get("shortest_edge", images.get("min_pixels"))
    highest = bounds.get("longest_edge", images.get("max_pixels"))
    listed = (lowest, highest, images.get("patch_size"), images.get("merge_size"))
    found = [number for number in listed if isinstance(number, int)]
    if len(found) != len(listed):
        message = (
            f"policy {name!r}: its image processor's settings lack size, patch_size or merge_size;"
            " use the hub's files"
        )
        raise UsageError(message)
    lowest, highest, patch, merge = found
    return ImageSizes(resized(patch * merge, lowest, highest), patch * merge)


def _end_tokens(folder: Path, eos: int) -> tuple[int, ...]:
    configured = _read(folder / "generation_config.json").get("eos_token_id")
    listed = configured if isinstance(configured, list) else [configured]
    return tuple(sorted({eos, *(token for token in listed if isinstance(token, int))}))


def _read(path: Path) -> dict[str, JsonValue]:
    """Read a JSON object; empty if the file is missing."""
    if not path.is_file():
        return {}
    return dict(json.loads(path.read_text(encoding="utf-8")))
