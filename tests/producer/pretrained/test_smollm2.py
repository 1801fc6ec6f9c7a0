"""SmolLM2-135M-Instruct itself: weights, tokens and answers."""

import struct
import zipfile
from pathlib import Path
from uuid import UUID

import pytest
from safetensors import safe_open

from producer.agents.dbbench.codec import SYSTEM_PROMPT as DBBENCH_PROMPT
from producer.agents.dbbench.codec import DbBenchCodec
from producer.agents.text_to_sql.codec import SYSTEM_PROMPT as SQL_PROMPT
from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.codecs.codec import Format
from producer.policy.policy import SampledTokens, SampleRequest
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network, open_base
from producer.policy.torch_policy.network import Network
from producer.pretrained.gguf import GgufFile
from producer.pretrained.known import KNOWN
from producer.task import Task

pytestmark = pytest.mark.pretrained

NAME = "blk.7.attn_k.weight"
"""A quantised matrix whose rows are put back in order: 192 x 576 in blocks of 20 bytes."""


def test_a_matrix_is_what_loops_over_its_bytes_give(smollm2: Path, smollm2_wheel: Path) -> None:
    with zipfile.ZipFile(smollm2_wheel) as archive:
        data = archive.read(KNOWN["smollm2-135m"].member)
    start = GgufFile(memoryview(data)).tensors[NAME].start
    rows: list[list[float]] = []
    for row in range(192):
        weights: list[float] = []
        for block in range(18):
            at = start + 20 * (18 * row + block)
            scale, minimum = struct.unpack("<ee", data[at : at + 4])
            nibbles = data[at + 4 : at + 20]
            weights += [scale * (byte & 15) + minimum for byte in nibbles]
            weights += [scale * (byte >> 4) + minimum for byte in nibbles]
        rows.append(weights)
    with safe_open(smollm2 / "model.safetensors", framework="numpy") as file:
        ours = file.get_tensor("model.layers.7.self_attn.k_proj.weight")
    for head in range(3):
        for at in range(64):
            # Of a head's 64 rows, llama.cpp has row 0 beside row 32, 1 beside 33 ...
            theirs = rows[64 * head + (2 * at if at < 32 else 2 * (at - 32) + 1)]
            assert ours[64 * head + at].tolist() == pytest.approx(theirs, rel=1e-6, abs=1e-7)


def test_digits_are_single_tokens_after_two_spaces_too_and_texts_come_back(smollm2: Path) -> None:
    tokenizer = open_base(str(smollm2)).processor
    ids = tokenizer.encode("x  2024", add_special_tokens=False)
    assert [tokenizer.decode([at]) for at in ids][-4:] == ["2", "0", "2", "4"]
    text = "SELECT `größe` FROM t\n  WHERE n >= 10.50; -- 東京 🙂"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.bos_token_id) == (2, 2, 1)


@pytest.fixture(scope="module")
def network(smollm2: Path) -> Network:
    return load_network(str(smollm2), lora_rank=2, seed=0)


def _answer(network: Network, written: Format, said: str, max_tokens: int) -> SampledTokens:
    """Greedy, at the first turn of a task that says this."""
    policy = InProcessPolicy(network, written.codec, written.system_prompt)
    task = Task("asked", "asked", said, None, None, 1, None, None)
    tokens = policy.sample([SampleRequest(UUID(int=1), task, (), None, 0.0, max_tokens, seed=0)])
    assert tokens[0].tokens is not None
    return tokens[0].tokens


def test_it_knows_what_a_pretrained_model_knows(network: Network) -> None:
    said = "What is the capital of France? Answer in one word."
    found = _answer(network, Format(TextToSqlCodec(), None), said, 8)
    assert "Paris" in network.tokenizer.decode(found.completion_tokens)


@pytest.mark.parametrize(
    "written",
    [Format(TextToSqlCodec(), SQL_PROMPT), Format(DbBenchCodec(), DBBENCH_PROMPT)],
    ids=["text_to_sql", "dbbench"],
)
def test_it_takes_the_prompts_of_the_environments_of_databases(
    network: Network, written: Format
) -> None:
    found = _answer(network, written, "How many orders are there?", 2)
    assert 0 < len(found.completion_tokens) <= 2
    assert network.tokenizer.decode(found.prompt_tokens) == (
        f"<|im_start|>system\n{written.system_prompt}<|im_end|>\n"
        "<|im_start|>user\nHow many orders are there?<|im_end|>\n<|im_start|>assistant\n"
    )
