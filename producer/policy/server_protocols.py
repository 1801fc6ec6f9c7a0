"""How vLLM and SGLang differ in loading and naming adapters; all else is handled alike.

From the documentation and sources of vLLM 0.32 and SGLang 0.5.23. `cua-train serve` does as vLLM.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from pydantic import JsonValue

from producer.chat_answer import ChatFailedError, ListedModel

HTTP_BAD_REQUEST: Final = 400
HTTP_NOT_FOUND: Final = 404


class ServerProtocol(NamedTuple):
    """One make of server."""

    loads_below_v1: bool
    """Whether adapters are loaded at /v1/load_lora_adapter rather than /load_lora_adapter."""
    adapter_field: str | None
    """Field of a request that names the adapter, besides `model`; None: `model` is enough."""
    needs: str
    """What it must be started with. Part of a message rather than of its `ways`, from which a
    command drops flags it lacks."""

    def load_root(self, url: str) -> str:
        """URL whose /load_lora_adapter and /unload_lora_adapter it answers."""
        return url if self.loads_below_v1 else url.removesuffix("/v1")

    def names_of(self, adapter: str | None) -> dict[str, JsonValue]:
        """The fields of a request that name its adapter."""
        named: dict[str, JsonValue] = {"model": adapter}
        return named if self.adapter_field is None else {**named, self.adapter_field: adapter}


VLLM: Final = ServerProtocol(
    loads_below_v1=True,
    adapter_field=None,
    needs=(
        "vLLM needs --enable-lora, a --max-lora-rank of at least lora_rank, and"
        " VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment"
    ),
)
SGLANG: Final = ServerProtocol(
    loads_below_v1=False,
    # Whatever the name in `model`, it samples from the policy without an adapter and repeats the
    # name. It refuses an adapter that it does not have only in this field.
    adapter_field="lora_path",
    needs=(
        "SGLang needs --enable-lora, a --max-lora-rank of at least lora_rank, and"
        " --lora-target-modules all"
    ),
)
BY_OWNER: Final[Mapping[str, ServerProtocol]] = MappingProxyType({"sglang": SGLANG})
"""`owned_by` of a listed model -> its server."""


def protocol_of(listed: Sequence[ListedModel]) -> ServerProtocol:
    """The protocol of a server that lists these models; that of vLLM for other makes."""
    known = (BY_OWNER.get(model.owner or "") for model in listed)
    return next(filter(None, known), VLLM)


def lacks_adapter(error: ChatFailedError) -> bool:
    """Whether the server refused a request because it has no such adapter, as after a restart."""
    is_refused = error.status == HTTP_BAD_REQUEST and "never been loaded" in str(error)  # SGLang
    return is_refused or error.status == HTTP_NOT_FOUND
