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

CONFIG = "config.json"
SLIDING = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
METHODS = ("fp8", "gptq", "awq", "bitsandbytes", "compressed-tensors", "mxfp4")
Weights = dict[str, torch.Tensor]


@pytest.fixture(params=ARCHITECTURES)
def model_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def checkpoint(folder: Path, model_type: str, *, tied: bool = False) -> Path:
    write_checkpoint(folder, model_type, tied=tied)
    return folder


def stored(folder: Path) -> Weights:
    return {
        key: one for path in folder.glob("*.safetensors") for key, one in load_file(path).items()
    }


def rewrite(folder: Path, change: Callable[[Weights], object]) -> None:
    weights = stored(folder)
    change(weights)
    write_shards(folder, weights)


def layer_key(weights: Weights, name: str) -> str:
    return next(key for key in weights if key.endswith(f"layers.1.self_attn.{name}.weight"))


def change_text(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    config.get("text_config", config).update(changes)
    write_json(folder / "config.json", config)


def embeddings_key(weights: Weights) -> str:
    return next(key for key in weights if key.endswith("embed_tokens.weight"))


def assert_output_layer_is_the_embeddings(folder: Path) -> None:
    network = open_base(str(folder)).network
    assert network.lm_head.weight is network.get_input_embeddings().weight


def refusal(folder: Path, kind: type[CuaTrainError] = UsageError) -> str:
    with pytest.raises(CuaTrainError) as caught:
        open_base(str(folder))
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda weights: weights.pop(layer_key(weights, "k_proj")), "k_proj.weight"),
        (lambda weights: weights.pop("lm_head.weight"), ": lm_head.weight"),
    ],
)
def test_a_missing_tensor_is_named(
    tmp_path: Path, model_type: str, change: Callable[[Weights], object], named: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    rewrite(folder, change)
    message = refusal(folder)
    assert "cannot be loaded whole" in message
    assert "1 missing: " in message
    assert named in message
    assert "unexpected" not in message


def test_a_left_over_tensor_is_named(tmp_path: Path, model_type: str) -> None:
    folder = checkpoint(tmp_path, model_type)
    rewrite(folder, lambda weights: weights.update(extra=torch.zeros(3)))
    message = refusal(folder)
    assert "1 unexpected: extra" in message
    assert "missing" not in message


def test_a_tensor_of_another_shape_is_named_with_both_shapes(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    weights = stored(folder)
    key = layer_key(weights, "o_proj")
    rows, columns = weights[key].shape
    write_shards(folder, weights | {key: weights[key][:, :-1]})
    message = refusal(folder)
    assert "1 of another shape: " in message
    assert f"(stored ({rows}, {columns - 1}), expected ({rows}, {columns}))" in message


@pytest.mark.parametrize(
    ("num_layers", "what", "named"), [(4, "missing", "layers.3."), (2, "unexpected", "layers.2.")]
)
def test_another_number_of_layers_in_the_config_than_in_the_weights_is_refused(
    tmp_path: Path, model_type: str, num_layers: int, what: str, named: str
) -> None:
    folder = checkpoint(tmp_path, model_type)
    change_text(folder, num_hidden_layers=num_layers)
    message = refusal(folder)
    assert what in message
    assert named in message


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
    key = "model.language_model.layers.1.mlp.experts."

    def split(weights: Weights) -> None:
        for expert, weight in enumerate(weights.pop(key + "down_proj")):
            weights[f"{key}{expert}.down_proj.weight"] = weight.T

    rewrite(folder, split)
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


def test_a_tied_output_layer_is_the_embeddings(tmp_path: Path, model_type: str) -> None:
    folder = checkpoint(tmp_path, model_type, tied=True)
    assert "lm_head.weight" not in stored(folder)
    assert_output_layer_is_the_embeddings(folder)


@pytest.mark.parametrize("difference", [0, 1])
def test_a_tied_output_layer_that_is_stored_too_is_loaded_when_equal_and_else_refused(
    tmp_path: Path, model_type: str, difference: int
) -> None:
    folder = checkpoint(tmp_path, model_type, tied=True)
    weights = stored(folder)
    head = weights[embeddings_key(weights)] + difference
    write_shards(folder, weights | {"lm_head.weight": head})
    if difference:
        assert "tie_word_embeddings" in refusal(folder)
    else:
        assert_output_layer_is_the_embeddings(folder)


def test_tied_weights_without_embeddings_and_output_layer_are_missing(
    tmp_path: Path, model_type: str
) -> None:
    folder = checkpoint(tmp_path, model_type, tied=True)
    rewrite(folder, lambda weights: weights.pop(embeddings_key(weights)))
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
    kept = {key: one.to(dtype) for key, one in stored(folder).items()}
    write_shards(folder, kept)
    loaded = open_base(str(folder)).network.state_dict()
    assert all(torch.equal(loaded[key], one.float()) for key, one in kept.items())


def test_weights_of_an_integer_or_8_bit_type_are_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "qwen3")
    key = "model.layers.0.mlp.up_proj.weight"
    weights = stored(folder)
    for dtype, name in ((torch.int8, "I8"), (torch.float8_e4m3fn, "F8_E4M3")):
        write_shards(folder, weights | {key: weights[key].to(dtype)})
        assert f"stores {key} as {name}" in refusal(folder)


def test_buffers_that_are_computed_are_not_loaded_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = checkpoint(tmp_path, "qwen2")
    key = "model.layers.0.self_attn.rotary_emb.inv_freq"
    rewrite(folder, lambda weights: weights.update({key: torch.ones(6)}))
    with caplog.at_level(logging.INFO):
        open_base(str(folder))
    assert f"not loaded: {key}" in caplog.text


@pytest.mark.parametrize(
    ("of", "file", "changes", "expected"),
    [
        *[
            (kind, CONFIG, SLIDING, "sliding_attention")
            for kind in ("qwen2", "qwen3", "qwen2_5_vl")
        ],
        *[
            (kind, CONFIG, {"quantization_config": {"quant_method": method, "bits": 4}}, method)
            for kind, method in zip(ARCHITECTURES, METHODS, strict=True)
        ],
        ("qwen3", CONFIG, {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "'dynamic'"),
        (
            "qwen3_vl",
            "preprocessor_config.json",
            {"patch_size": 14},
            "patch_size 14, config.json 16",
        ),
        ("qwen3", "tokenizer_config.json", {"chat_template": None}, "no chat template"),
    ],
)
def test_settings_that_are_not_supported_or_of_another_policy_are_refused_by_name(
    tmp_path: Path, of: str, file: str, changes: dict[str, object], expected: str
) -> None:
    folder = checkpoint(tmp_path, of)
    change_json(folder / file, **changes)
    message = refusal(folder)
    assert expected in message
    assert ("is quantised (" in message) == (expected in METHODS)


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
