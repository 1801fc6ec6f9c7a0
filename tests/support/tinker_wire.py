"""The server's side of Tinker's wire format: chunks, tensors and answers."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tinker.proto import tinker_public_pb2 as wire

from producer.policy.torch_policy.sampling import SampledCompletion
from tests.support.tinker_trainer import Chunk, Example

NUMPY = {wire.DTYPE_FLOAT32: np.float32, wire.DTYPE_INT64: np.int64}


def chunks_of_json(chunks: Sequence[dict[str, Any]]) -> list[Chunk]:
    """Of a prompt."""
    return [
        base64.b64decode(chunk["data"]) if chunk["type"] == "image" else list(chunk["tokens"])
        for chunk in chunks
    ]


def examples_of(request: wire.ForwardBackwardRequest) -> list[Example]:
    """The data of a forward or backward pass."""
    return [
        Example(
            [_chunk(chunk) for chunk in datum.model_input],
            {name: _tensor(tensor) for name, tensor in datum.loss_fn_inputs.items()},
        )
        for datum in request.data
    ]


def forward_backward_output(logprobs: Sequence[NDArray[np.float32]]) -> bytes:
    """The answer to a forward or backward pass. SkyRL's has no metrics either."""
    answer = wire.ForwardBackwardOutput(loss_fn_output_type="ArrayRecord")
    record = answer.loss_fn_outputs.add()
    record.num_datums = len(logprobs)
    ends = np.cumsum([0, *(one.nbytes for one in logprobs)], dtype=np.int64)
    record.fields["logprobs"].CopyFrom(
        wire.BatchedTensor(
            data=b"".join(one.tobytes() for one in logprobs),
            offsets=ends.tobytes(),
            dtype=wire.DTYPE_FLOAT32,
        )
    )
    return bytes(answer.SerializeToString())


def sample_response(completions: Sequence[SampledCompletion]) -> bytes:
    """The answer to a request for samples."""
    answer = wire.SampleResponse()
    for one in completions:
        sequence = answer.sequences.add()
        stopped = one.stop_reason == "stop"
        sequence.stop_reason = wire.STOP_REASON_STOP if stopped else wire.STOP_REASON_LENGTH
        sequence.tokens = np.asarray(one.tokens, np.int32).tobytes()
        sequence.logprobs = np.asarray(one.logprobs, np.float32).tobytes()
    return bytes(answer.SerializeToString())


def _chunk(chunk: wire.Chunk) -> Chunk:
    if chunk.WhichOneof("chunk") == "image":
        return bytes(chunk.image.data)
    tokens: list[int] = np.frombuffer(chunk.encoded_text.tokens, np.int32).tolist()
    return tokens


def _tensor(tensor: wire.Tensor) -> NDArray[Any]:
    return np.frombuffer(tensor.dense, NUMPY[tensor.dtype]).copy()
