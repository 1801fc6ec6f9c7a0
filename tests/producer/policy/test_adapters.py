"""A saved adapter fits its base to the last key or is refused; targets mean what they say."""

import functools
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.utils import cached_file

from producer.errors import CuaTrainError, MismatchError, NotFoundError, UsageError
from producer.policy.adapter_settings import BASE, read_adapter_settings
from producer.policy.torch_policy import hub
from producer.policy.torch_policy.adapters import adapted_names, plain_adapter
from producer.policy.torch_policy.loading import load_network, open_base
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer
from producer.policy.torch_policy.state import load_state, save_checkpoint, save_state
from tests.support.checkpoints import (
    ARCHITECTURES,
    change_json,
    hub_weights,
    write_checkpoint,
    write_shards,
)

from .conftest import randomize_adapter

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


@pytest.fixture(scope="module", params=ARCHITECTURES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    write_checkpoint(folder, request.param)
    return folder


@pytest.fixture(scope="module")
def moe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moe")
    write_checkpoint(folder, "qwen3_vl_moe")
    return folder


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    write_checkpoint(folder, "qwen3")
    return folder


def save_adapter(base: Path, folder: Path, **options: Any) -> Network:
    network = load_network(str(base), lora_rank=options.pop("rank", 4), seed=1, **options)
    randomize_adapter(network)
    save_checkpoint(folder, network)
    return network


def names_of(base: Path, *targets: str) -> set[str]:
    network = load_network(str(base), lora_rank=2, seed=0, target_modules=targets or None)
    return {name.partition("layers.")[2] for name in adapted_names(network.adapted)}


def refusal(base: Path, adapter: Path, kind: type[CuaTrainError] = UsageError, **more: Any) -> str:
    with pytest.raises(CuaTrainError) as caught:
        load_network(str(base), lora_rank=4, seed=0, adapter=adapter, **more)
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


def test_a_saved_adapter_is_loaded_with_its_own_rank_and_scale(
    folder: Path, tmp_path: Path
) -> None:
    saved = save_adapter(folder, tmp_path, rank=3, lora_alpha=5)
    loaded = load_network(str(folder), lora_rank=32, seed=9, adapter=tmp_path)
    for ours, theirs in zip(loaded.trainable(), saved.trainable(), strict=True):
        assert torch.equal(ours, theirs)
    config = loaded.adapted.peft_config["default"]
    assert (config.r, config.lora_alpha) == (3, 5)
    settings = read_adapter_settings(tmp_path)
    assert (settings.rank, settings.alpha) == (3, 5.0)


def test_the_scale_is_twice_the_rank_unless_it_is_given(text: Path) -> None:
    by_default = load_network(str(text), lora_rank=3, seed=0)
    given = load_network(str(text), lora_rank=3, seed=0, lora_alpha=7.5)
    q_proj = "layers.0.self_attn.q_proj"
    layers: list[Any] = [
        network.language_model.get_submodule(q_proj) for network in (by_default, given)
    ]
    assert [layer.scaling["default"] for layer in layers] == [2.0, 2.5]


@pytest.mark.parametrize(("layer", "what"), [(None, "1 missing: "), ("9", "1 unexpected: ")])
def test_a_key_of_an_adapter_that_is_missing_or_left_over_is_named(
    folder: Path, tmp_path: Path, layer: str | None, what: str
) -> None:
    save_adapter(folder, tmp_path)
    weights = load_file(tmp_path / WEIGHTS)
    key = named = next(key for key in weights if "layers.1.self_attn.k_proj.lora_B" in key)
    if layer is None:
        weights.pop(key)
    else:
        named = key.replace("layers.1.", f"layers.{layer}.")
        weights[named] = weights[key].clone()
    save_file(weights, tmp_path / WEIGHTS)
    message = refusal(folder, tmp_path)
    assert what in message
    assert named[named.index("layers.") : -len(".weight")] in message


def test_an_adapter_whose_config_has_another_rank_than_its_weights_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    save_adapter(folder, tmp_path)
    change_json(tmp_path / CONFIG, r=5)
    assert "does not fit this policy" in refusal(folder, tmp_path)


def test_an_adapter_of_another_architecture_is_refused(
    folder: Path, moe: Path, text: Path, tmp_path: Path
) -> None:
    other = text if "qwen3_vl" in folder.name or "qwen2_5" in folder.name else moe
    save_adapter(other, tmp_path)
    (tmp_path / BASE).unlink()  # as plain peft would have saved it
    assert "does not fit this policy" in refusal(folder, tmp_path)


def test_an_adapter_of_other_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    save_adapter(folder, tmp_path / "adapter")
    other = tmp_path / "base"
    write_checkpoint(other, folder.name[:-1], seed=1)
    message = refusal(other, tmp_path / "adapter")
    assert "was trained on other weights" in message
    assert str(folder) in message


def test_an_adapter_whose_base_lies_elsewhere_now_is_loaded(text: Path, tmp_path: Path) -> None:
    save_adapter(text, tmp_path / "adapter")
    moved = tmp_path / "moved"
    write_checkpoint(moved, "qwen3")
    load_network(str(moved), lora_rank=4, seed=0, adapter=tmp_path / "adapter")


def test_an_adapter_of_plain_peft_with_another_base_is_loaded_with_a_warning(
    text: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_adapter(text, tmp_path)
    (tmp_path / BASE).unlink()
    change_json(tmp_path / CONFIG, base_model_name_or_path="Qwen/Qwen3-0.6B")
    with caplog.at_level(logging.WARNING):
        load_network(str(text), lora_rank=4, seed=0, adapter=tmp_path)
    assert "names Qwen/Qwen3-0.6B as its base" in caplog.text


def test_an_adapter_of_another_hub_id_is_refused(text: Path, tmp_path: Path) -> None:
    save_adapter(text, tmp_path)
    (tmp_path / BASE).unlink()
    base = open_base(str(text))
    base.network.name_or_path = "Qwen/Qwen3-0.6B-Base"
    change_json(tmp_path / CONFIG, base_model_name_or_path="Qwen/Qwen3-0.6B")
    with pytest.raises(UsageError, match=r"was trained on Qwen/Qwen3-0\.6B, and model_name is"):
        plain_adapter(base.network, tmp_path, base.fingerprint)


def test_an_adapter_of_a_hub_id_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In the hub client's cache, as a download leaves it.
    cached = tmp_path / "models--Qwen--Tiny"
    write_checkpoint(cached / "snapshots" / "abc", "qwen3")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    monkeypatch.setattr(hub, "cached_file", functools.partial(cached_file, cache_dir=tmp_path))
    save_adapter(Path("Qwen/Tiny"), tmp_path / "adapter")
    assert read_adapter_settings(tmp_path / "adapter").base_name == "Qwen/Tiny"
    assert json.loads((tmp_path / "adapter" / BASE).read_text())["name"] == "Qwen/Tiny"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"peft_type": "IA3"}, "'IA3'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"init_lora_weights": "pissa"}, "pissa"),
        ({"r": None}, "lacks a valid r"),
        ({"r": "many"}, "lacks a valid r"),
    ],
)
def test_what_is_no_plain_lora_adapter_is_refused_by_name(
    text: Path, tmp_path: Path, changes: dict[str, object], named: str
) -> None:
    save_adapter(text, tmp_path)
    change_json(tmp_path / CONFIG, **changes)
    assert named in refusal(text, tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_config_of_an_adapter_that_is_none_is_refused(
    text: Path, tmp_path: Path, content: str
) -> None:
    save_adapter(text, tmp_path)
    (tmp_path / CONFIG).write_text(content)
    assert CONFIG in refusal(text, tmp_path)


def test_an_adapter_that_is_cut_off_is_refused(text: Path, tmp_path: Path) -> None:
    save_adapter(text, tmp_path)
    weights = tmp_path / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-4])
    assert f"{weights} is damaged" in refusal(text, tmp_path)


def test_an_adapter_without_weights_is_not_found(text: Path, tmp_path: Path) -> None:
    save_adapter(text, tmp_path)
    (tmp_path / WEIGHTS).unlink()
    assert WEIGHTS in refusal(text, tmp_path, NotFoundError)


def test_an_adapter_on_the_vision_tower_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "base"
    write_checkpoint(base, "qwen2_5_vl")
    save_adapter(base, tmp_path / "adapter", target_modules=("gate_proj",))
    # Plain peft reads a name's end anywhere: the tower's MLP has it too.
    change_json(tmp_path / "adapter" / CONFIG, target_modules=["gate_proj"])
    message = refusal(base, tmp_path / "adapter")
    assert "stay frozen here" in message
    assert "visual.blocks.0.mlp.gate_proj" in message


def test_an_adapter_of_other_targets_than_asked_is_refused(text: Path, tmp_path: Path) -> None:
    save_adapter(text, tmp_path, target_modules=("attention",))
    load_network(str(text), 4, 0, tmp_path, target_modules=("q_proj", "k_proj", "v_proj", "o_proj"))
    message = refusal(text, tmp_path, target_modules=("all",))
    assert "it lacks model.layers.0.mlp.down_proj" in message
    message = refusal(text, tmp_path, target_modules=("q_proj",))
    assert "has model.layers.0.self_attn.k_proj" in message


def test_its_recorded_targets_mean_the_same_weights(folder: Path, tmp_path: Path) -> None:
    saved = save_adapter(folder, tmp_path)
    targets = read_adapter_settings(tmp_path).targets
    loaded = load_network(str(folder), 4, 0, tmp_path, target_modules=targets)
    assert adapted_names(loaded.adapted) == adapted_names(saved.adapted)
    fresh = load_network(str(folder), 4, 0, target_modules=targets)
    assert adapted_names(fresh.adapted) == adapted_names(saved.adapted)


def test_choices_are_attention_mlp_and_all(text: Path) -> None:
    attention = {f"{n}.self_attn.{m}_proj" for n in range(3) for m in "qkvo"}
    mlp = {f"{n}.mlp.{m}_proj" for n in range(3) for m in ("gate", "up", "down")}
    assert names_of(text, "attention") == attention
    assert names_of(text, "mlp") == mlp
    assert names_of(text, "all") == names_of(text) == attention | mlp
    assert names_of(text, "attention", "mlp") == attention | mlp


def test_choices_of_a_mixture_of_experts_adapt_the_fused_experts(moe: Path) -> None:
    attention = {f"{n}.self_attn.{m}_proj" for n in range(3) for m in "qkvo"}
    experts = {f"{n}.mlp.experts.{m}_proj" for n in range(3) for m in ("gate_up", "down")}
    assert names_of(moe, "attention") == attention
    assert names_of(moe, "mlp") == experts
    assert names_of(moe) == attention | experts
    assert names_of(moe, "experts.down_proj", "q_proj") == {
        f"{n}.{name}" for n in range(3) for name in ("mlp.experts.down_proj", "self_attn.q_proj")
    }


def test_targets_are_ends_of_names_or_regular_expressions(text: Path) -> None:
    assert names_of(text, "q_proj", "mlp.up_proj") == {
        f"{n}.{name}" for n in range(3) for name in ("self_attn.q_proj", "mlp.up_proj")
    }
    assert names_of(text, r"model\.layers\.[02]\..*_proj") == {
        name for name in names_of(text) if not name.startswith("1.")
    }


def test_targets_never_reach_the_vision_tower(folder: Path) -> None:
    network = load_network(str(folder), 2, 0, target_modules=(".*",))
    assert not [name for name in adapted_names(network.adapted) if "visual" in name]


@pytest.mark.parametrize("entry", ["q_porj", "lm_head", "embed_tokens", "visual", "gate", ".*norm"])
def test_targets_that_match_nothing_are_refused(moe: Path, entry: str) -> None:
    with pytest.raises(UsageError, match="matches no linear layer") as caught:
        load_network(str(moe), 2, 0, target_modules=("v_proj", entry))
    assert repr(entry) in str(caught.value)


def test_a_broken_regular_expression_is_refused(text: Path) -> None:
    with pytest.raises(UsageError, match="is not a regular expression"):
        load_network(str(text), 2, 0, target_modules=("(q_proj",))


def test_a_state_is_not_loaded_on_a_base_whose_weights_have_changed(tmp_path: Path) -> None:
    base, state = tmp_path / "base", tmp_path / "state"
    state.mkdir()
    write_checkpoint(base, "qwen3")
    network = load_network(str(base), lora_rank=4, seed=1)
    save_state(state, network, make_optimizer(network.trainable()), version=3)
    assert load_state(state, network, make_optimizer(network.trainable())) == 3
    weights = {key: one + 0.01 for key, one in hub_weights(base, "qwen3").items()}
    write_shards(base, weights)
    changed = load_network(str(base), lora_rank=4, seed=1)
    with pytest.raises(MismatchError, match="have changed since"):
        load_state(state, changed, make_optimizer(changed.trainable()))


def test_a_checkpoint_names_its_base(text: Path, tmp_path: Path) -> None:
    network = save_adapter(text, tmp_path)
    base = json.loads((tmp_path / BASE).read_text())
    assert base == {"name": str(text), "fingerprint": network.base_fingerprint}
