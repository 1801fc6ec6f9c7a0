"""A policy is loaded whole or refused, with the tensors named that are missing or left over."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from producer.errors import CuaTrainError, NotFoundError, UsageError
from producer.policy.torch_policy.loading import open_base
from tests.support.checkpoints import (
    ARCHITECTURES,
    change_json,
    hub_weights,
    write_checkpoint,
    write_json,
    write_shards,
)

LAYER = {
    "qwen2": "model.layers.1.",
    "qwen3": "model.layers.1.",
    "qwen2_5_vl": "model.layers.1.",
    "qwen3_vl": "model.language_model.layers.1.",
    "qwen3_vl_moe": "model.language_model.layers.1.",
}


@pytest.fixture(params=ARCHITECTURES)
def model_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def checkpoint(folder: Path, model_type: str, *, tied: bool = False) -> Path:
    write_checkpoint(folder, model_type, tied=tied)
    return folder


def rewrite(
    folder: Path, model_type: str, change: Callable[[dict[str, torch.Tensor]], object]
) -> None:
    weights = hub_weights(folder, model_type)
    change(weights)
    write_shards(folder, weights)


def change_text(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    config.get("text_config", config).update(changes)
    write_json(folder / "config.json", config)


def embeddings_key(weights: dict[str, torch.Tensor]) -> str:
    return next(key for key in weights if key.endswith("embed_tokens.weight"))


def assert_output_layer_is_the_embeddings(folder: Path) -> None:
    network = open_base(str(folder)).network
    assert network.lm_head.weight is network.get_input_embeddings().weight


def refusal(folder: Path, kind: type[CuaTrainError] = UsageError) -> str:
    with pytest.raises(CuaTrainError) as caught:
        open_base(str(folder))
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


def test_a_missing_tensor_is_named(tmp_path: Path, model_type: str) -> None:
    folder = checkpoint(tmp_path, model_type)
    key = LAYER[model_type] + "self_attn.k_proj.weight"
    rewrite(folder, model_type, lambda weights: weights.pop(key))
    message = refusal(folder)
    assert "cannot be loaded whole" in message
    assert "1 missing: " in message
    assert "layers.1.self_attn.k_proj.weight" in message
    assert "unexpected" not in message


def test_a_left_over_tensor_is_named(tmp_path: Path, model_type: str) -> None:
    folder = checkpoint(tmp_path, model_type)
    rewrite(folder, model_type, lambda weights: weights.update(extra=torch.zeros(3)))
    message = refusal(folder)
    assert "1 unexpected: extra" in message
    assert "missing" not in message


def test_a_tensor_of_another_shape_is_named_with_both_shapes(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    key = LAYER[model_type] + "self_attn.o_proj.weight"

    def cut(weights: dict[str, torch.Tensor]) -> None:
        weights[key] = weights[key][:, :-1]

    rewrite(folder, model_type, cut)
    rows = hub_weights(folder, model_type)[key].shape
    message = refusal(folder)
    assert "1 of another shape: " in message
    assert f"(stored ({rows[0]}, {rows[1] - 1}), expected ({rows[0]}, {rows[1]}))" in message


def test_more_layers_in_the_config_than_in_the_weights_are_missing(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    change_text(folder, num_hidden_layers=4)
    message = refusal(folder)
    assert "missing" in message
    assert "layers.3." in message


def test_fewer_layers_in_the_config_than_in_the_weights_are_left_over(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    change_text(folder, num_hidden_layers=2)
    message = refusal(folder)
    assert "unexpected" in message
    assert "layers.2." in message


@pytest.mark.parametrize("num_experts", [5, 7])
def test_another_number_of_experts_is_refused(tmp_path: Path, num_experts: int) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl_moe")
    change_text(folder, num_experts=num_experts)
    message = refusal(folder)
    assert "of another shape" in message
    assert "mlp.experts.gate_up_proj" in message
    assert "mlp.gate.weight" in message


def test_experts_one_by_one_as_older_layouts_have_them_are_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl_moe")
    key = LAYER["qwen3_vl_moe"] + "mlp.experts."

    def split(weights: dict[str, torch.Tensor]) -> None:
        for expert, weight in enumerate(weights.pop(key + "down_proj")):
            weights[f"{key}{expert}.down_proj.weight"] = weight.T

    rewrite(folder, "qwen3_vl_moe", split)
    message = refusal(folder)
    assert "1 missing: model.language_model.layers.1.mlp.experts.down_proj" in message
    assert "6 unexpected: " in message


def test_a_dense_policy_named_as_a_mixture_of_experts_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl")
    mixture = checkpoint(tmp_path / "moe", "qwen3_vl_moe")
    shutil.copy(mixture / "config.json", folder / "config.json")
    message = refusal(folder)
    assert "as Qwen3-VL-MoE" in message
    assert "mlp.experts.gate_up_proj" in message
    assert "mlp.gate_proj.weight" in message


def test_qwen3_vl_weights_under_the_config_of_qwen2_5_vl_are_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl")
    other = checkpoint(tmp_path / "other", "qwen2_5_vl")
    shutil.copy(other / "config.json", folder / "config.json")
    message = refusal(folder)
    assert "as Qwen2.5-VL" in message
    assert "missing" in message
    assert "unexpected" in message


def test_an_untied_output_layer_without_its_weight_is_missing(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    rewrite(folder, model_type, lambda weights: weights.pop("lm_head.weight"))
    assert "1 missing: lm_head.weight" in refusal(folder)


def test_a_tied_output_layer_is_the_embeddings(tmp_path: Path, model_type: str) -> None:
    folder = checkpoint(tmp_path, model_type, tied=True)
    assert "lm_head.weight" not in hub_weights(folder, model_type)
    assert_output_layer_is_the_embeddings(folder)


def test_a_tied_output_layer_that_is_stored_too_is_loaded_when_equal(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type, tied=True)

    def repeat(weights: dict[str, torch.Tensor]) -> None:
        weights["lm_head.weight"] = weights[embeddings_key(weights)].clone()

    rewrite(folder, model_type, repeat)
    assert_output_layer_is_the_embeddings(folder)


def test_a_tied_output_layer_that_is_stored_otherwise_is_refused(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type, tied=True)

    def differ(weights: dict[str, torch.Tensor]) -> None:
        weights["lm_head.weight"] = weights[embeddings_key(weights)] + 1

    rewrite(folder, model_type, differ)
    assert "tie_word_embeddings" in refusal(folder)


def test_tied_weights_without_embeddings_and_output_layer_are_missing(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type, tied=True)
    rewrite(folder, model_type, lambda weights: weights.pop(embeddings_key(weights)))
    assert "embed_tokens.weight" in refusal(folder)


def test_a_missing_shard_is_named_with_its_tensors(tmp_path: Path, model_type: str) -> None:
    folder = checkpoint(tmp_path, model_type)
    shard = folder / "model-00002-of-00003.safetensors"
    held = len(load_file(shard))
    shard.unlink()
    message = refusal(folder)
    assert f"lacks model-00002-of-00003.safetensors, and with it {held} of" in message


@pytest.mark.parametrize("keep", [4, 100, -1])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, keep: int) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    shard = folder / "model-00003-of-00003.safetensors"
    shard.write_bytes(shard.read_bytes()[:keep])
    message = refusal(folder)
    assert "model-00003-of-00003.safetensors" in message
    assert "download it again" in message


@pytest.mark.parametrize("content", ["", "[]", '{"weight_map": 3}', '{"weight_map": {"a": 1}}'])
def test_an_index_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    (folder / "model.safetensors.index.json").write_text(content)
    assert "model.safetensors.index.json is not an index" in refusal(folder)


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    first, second = (folder / f"model-0000{n}-of-00003.safetensors" for n in (1, 2))
    tensors = load_file(second)
    key = next(iter(load_file(first)))
    save_file({**tensors, key: load_file(first)[key] + 1}, second, metadata={"format": "pt"})
    assert f"stores {key} twice" in refusal(folder)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_of_another_float_type_are_loaded_as_they_are(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    stored = {key: one.to(dtype) for key, one in hub_weights(folder, "qwen3").items()}
    write_shards(folder, stored)
    loaded = open_base(str(folder)).network.state_dict()
    assert all(torch.equal(loaded[key], one.float()) for key, one in stored.items())


def test_weights_of_an_integer_or_8_bit_type_are_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    key = "model.layers.0.mlp.up_proj.weight"
    weights = hub_weights(folder, "qwen3")
    for dtype, name in ((torch.int8, "I8"), (torch.float8_e4m3fn, "F8_E4M3")):
        write_shards(folder, weights | {key: weights[key].to(dtype)})
        assert f"stores {key} as {name}" in refusal(folder)


@pytest.mark.parametrize("method", ["fp8", "gptq", "awq", "bitsandbytes", "compressed-tensors"])
def test_a_quantised_policy_is_refused_by_its_method(
    tmp_path: Path, model_type: str, method: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    change_json(folder / "config.json", quantization_config={"quant_method": method, "bits": 4})
    assert f"is quantised ({method})" in refusal(folder)


def test_buffers_that_are_computed_are_not_loaded_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = checkpoint(tmp_path, "qwen2")
    key = "model.layers.0.self_attn.rotary_emb.inv_freq"
    rewrite(folder, "qwen2", lambda weights: weights.update({key: torch.ones(6)}))
    with caplog.at_level(logging.INFO):
        open_base(str(folder))
    assert f"not loaded: {key}" in caplog.text


@pytest.mark.parametrize("folder_of", ["qwen2", "qwen3", "qwen2_5_vl"])
def test_sliding_windows_are_refused(tmp_path: Path, folder_of: str) -> None:
    folder = checkpoint(tmp_path, folder_of)
    change_json(
        folder / "config.json", use_sliding_window=True, sliding_window=8, max_window_layers=1
    )
    assert "sliding_attention" in refusal(folder)


def test_a_rotary_embedding_that_changes_with_the_length_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    change_json(folder / "config.json", rope_scaling={"rope_type": "dynamic", "factor": 2.0})
    assert "'dynamic'" in refusal(folder)


@pytest.mark.parametrize("stored_by", ["hub", "transformers"])
def test_square_experts_are_loaded_where_their_layout_is_known(
    tmp_path: Path, stored_by: str
) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl_moe")
    change_text(folder, moe_intermediate_size=24)  # 2 x 24 is the hidden size: a square gate_up
    weights = hub_weights(folder, "qwen3_vl_moe")
    if stored_by == "transformers":
        weights = {
            key: one.transpose(1, 2) if ".experts." in key else one for key, one in weights.items()
        }
        write_shards(folder, weights)
        loaded = open_base(str(folder)).network.state_dict()
        assert all(torch.equal(loaded[key], one) for key, one in weights.items())
    else:
        write_shards(folder, weights)
        assert "gate_up_proj is square" in refusal(folder)


def test_square_down_projections_stored_as_on_the_hub_are_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl_moe")
    change_text(folder, moe_intermediate_size=48)
    write_shards(folder, hub_weights(folder, "qwen3_vl_moe"))
    assert "down_proj is square" in refusal(folder)


def test_the_image_processor_of_another_policy_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl")
    change_json(folder / "preprocessor_config.json", patch_size=14)
    assert "its image processor has patch_size 14, config.json 16" in refusal(folder)


def test_the_tokenizer_of_another_policy_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3_vl")
    image = json.loads((folder / "config.json").read_text())["image_token_id"]
    change_json(folder / "config.json", image_token_id=image + 1)
    assert f"has <|image_pad|> as {image}, config.json as {image + 1}" in refusal(folder)


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    change_text(folder, vocab_size=300)
    write_shards(folder, hub_weights(folder, "qwen3"))
    assert "tokens for 300 embeddings" in refusal(folder)


def test_a_policy_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    change_json(folder / "tokenizer_config.json", chat_template=None)
    assert "no chat template" in refusal(folder)


def test_pickled_weights_are_not_loaded(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    torch.save(hub_weights(folder, "qwen3"), folder / "pytorch_model.bin")
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    assert "model.safetensors" in refusal(folder, NotFoundError)


@pytest.mark.parametrize("changed", [{"hidden_size": "many"}, {"num_attention_heads": 0}])
def test_nonsense_in_the_config_is_one_sentence(
    tmp_path: Path, model_type: str, changed: dict[str, object]
) -> None:
    folder = checkpoint(tmp_path, model_type)
    change_text(folder, **changed)
    assert "\n" not in refusal(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "{}"])
def test_a_config_that_is_none_is_not_found(tmp_path: Path, content: str) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    (folder / "config.json").write_text(content)
    assert "config.json" in refusal(folder, NotFoundError)


def test_the_fingerprint_is_that_of_the_weights_however_they_are_split(tmp_path: Path) -> None:
    one = checkpoint(tmp_path / "one", "qwen3")
    two = checkpoint(tmp_path / "two", "qwen3")
    for path in two.glob("*.safetensors"):
        path.unlink()
    write_shards(two, hub_weights(two, "qwen3"), num_shards=2)
    other = tmp_path / "other"
    write_checkpoint(other, "qwen3", seed=1)
    first, second, third = (open_base(str(folder)).fingerprint for folder in (one, two, other))
    assert first == second
    assert first != third
