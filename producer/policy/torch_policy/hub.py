"""Finds the files of a policy: a folder, the local Hugging Face cache or the Hugging Face hub."""

import os
from pathlib import Path
from typing import Final

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError
from transformers.utils import cached_file

from producer.errors import NotFoundError
from producer.http_environment import HUB_URL, check_http_environment
from producer.pretrained.known import KNOWN

HUB_TIMEOUT_S: Final = 10.0
"""Time limit of the one request that asks whether the hub is reachable and has the policy."""
_SETTINGS: Final = ("*.json", "*.jinja", "*.txt")
_WEIGHTS: Final = ("*.safetensors",)


def policy_folder(name: str, *, local_files_only: bool) -> Path:
    """The local folder with the policy's files; downloads them unless `local_files_only`.

    Raises OSError if it has no config.json.
    """
    if Path(name).is_dir():
        if not (Path(name) / "config.json").is_file():
            message = "it has no config.json"
            raise FileNotFoundError(message)
        return Path(name)
    if local_files_only:
        return Path(cached_file(name, "config.json", local_files_only=True)).parent
    return Path(snapshot_download(name, allow_patterns=[*_SETTINGS, *_WEIGHTS]))


def download_settings(name: str) -> Path:
    """Download everything except the weights; returns the folder. Raises OSError on failure."""
    folder = Path(snapshot_download(name, allow_patterns=list(_SETTINGS)))
    if not (folder / "config.json").is_file():
        message = "it has no config.json"
        raise FileNotFoundError(message)
    return folder


def hub_shapes(name: str) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor, from headers on the hub; downloads no weights.

    Raises OSError if the hub serves no headers.
    """
    try:
        metadata = HfApi().get_safetensors_metadata(name)
    except Exception as error:  # the hub's HTTP client is not part of its interface
        raise OSError(first_line(error)) from error
    return {
        tensor: tuple(info.shape)
        for file in metadata.files_metadata.values()
        for tensor, info in file.tensors.items()
    }


def is_path(name: str) -> bool:
    """Whether the name can only be a folder."""
    return Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1


def check_hub_has(name: str) -> None:
    """Raises NotFoundError unless the hub confirms that it has this policy.

    Sends one request without retries, since a download would retry for every missing file. Sends
    none for a policy made by `cua-train models get`, as the hub has other policies with such names.
    Raises UsageError if the HTTP settings of the environment are unusable.
    """
    if (model := KNOWN.get(name)) is not None:
        raise NotFoundError(model.not_made)
    check_http_environment(os.environ.get("HF_ENDPOINT") or HUB_URL)
    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
    except HFValidationError as error:
        message = (
            f"policy {name!r} is neither an existing folder nor a Hugging Face id such as"
            " 'Qwen/Qwen3-VL-2B-Instruct'; check model_name"
        )
        raise NotFoundError(message) from error
    except GatedRepoError as error:
        message = f"policy {name!r} is gated; request access on the Hugging Face hub and log in"
        raise NotFoundError(message) from error
    except RepositoryNotFoundError as error:
        message = (
            f"policy {name!r} is neither an existing folder nor on the Hugging Face hub; check"
            " model_name (a private policy needs a login)"
        )
        raise NotFoundError(message) from error
    except Exception as error:  # the hub's HTTP client is not part of its interface
        message = (
            f"policy {name!r} is not in the local Hugging Face cache and the Hugging Face hub"
            f" cannot be reached ({first_line(error)}); pass a folder, or connect and run again"
        )
        raise NotFoundError(message) from error


def first_line(error: Exception) -> str:
    """The message of an error, without its details."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
