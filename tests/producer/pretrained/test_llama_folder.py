"""A Llama of a GGUF file becomes a policy's folder with its values, or is refused by name."""

import json
from pathlib import Path

import pytest
import torch

from producer.errors import UsageError
from producer.policy.torch_policy.loading import open_base
from producer.pretrained.gguf import GgufFile
from producer.pretrained.llama_folder import check_convertible, write_folder
from tests.support.gguf_writer import TOKENS, small_llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    write_folder(GgufFile(memoryview(small_llama())), folder)
    return folder


def test_the_folder_loads_whole_with_the_file_s_values(folder: Path) -> None:
    base = open_base(str(folder))
    weights = base.network.state_dict()
    assert base.architecture.model_type == "llama"
    layer = "model.layers.0"
    assert weights[f"{layer}.self_attn.v_proj.weight"][0].tolist() == [5, 6, 7, 8, 9, 10, 11, 12]
    assert weights[f"{layer}.mlp.down_proj.weight"][1, :2].tolist() == [25, 26]
    assert weights[f"{layer}.input_layernorm.weight"][:2].tolist() == [2, 3]
    assert weights[f"{layer}.post_attention_layernorm.weight"][:2].tolist() == [3, 4]
    assert weights["model.norm.weight"][:2].tolist() == [1, 2]
    assert torch.equal(weights["lm_head.weight"], weights["model.embed_tokens.weight"])
    config = base.network.config
    assert (config.rms_norm_eps, config.rope_parameters["rope_theta"]) == (1e-5, 100000)


def test_rows_of_queries_and_keys_are_rotated_as_transformers_does(folder: Path) -> None:
    weights = open_base(str(folder)).network.state_dict()
    queries = weights["model.layers.0.self_attn.q_proj.weight"]
    keys = weights["model.layers.0.self_attn.k_proj.weight"]
    # A head's rows 0 1 2 3 are the pairs (0, 1) and (2, 3): their firsts, then their seconds.
    assert queries[:, 0].tolist() == [8 * row for row in (0, 2, 1, 3, 4, 6, 5, 7)]
    assert keys[:, 0].tolist() == [8 * row for row in (0, 2, 1, 3)]


def test_each_digit_is_a_token_and_the_end_of_a_turn_ends_and_pads(folder: Path) -> None:
    tokenizer = open_base(str(folder)).processor
    ids = tokenizer.encode("ab12  1<|im_end|>", add_special_tokens=False)
    assert [TOKENS[at] for at in ids] == ["ab", "1", "2", "Ġ", "Ġ", "1", "<|im_end|>"]
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.bos_token_id) == (2, 2, 1)
    asked = [{"role": "user", "content": "ab"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert text == "<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n"
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"general.architecture": "gemma3"}, "has the architecture 'gemma3', and only llama"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "('gpt2', 'llama-bpe')"),
    ],
)
def test_another_architecture_or_tokenizer_is_refused_by_name(
    changes: dict[str, str], expected: str
) -> None:
    with pytest.raises(UsageError) as refused:
        check_convertible(GgufFile(memoryview(small_llama(**changes))), "a.gguf")
    assert expected in str(refused.value)


def test_a_file_without_a_setting_is_refused_by_its_name(tmp_path: Path) -> None:
    file = GgufFile(memoryview(small_llama()))
    del file.settings["llama.block_count"]
    with pytest.raises(ValueError, match=r"it lacks llama\.block_count"):
        write_folder(file, tmp_path)
