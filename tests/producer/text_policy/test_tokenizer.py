"""The small text policy's tokenizer: any text round-trips, a known word is one token."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from producer.policy.torch_policy.loading import load_base
from producer.text_policy.build import START, build_text_policy, build_tokenizer

TEXTS = ["SELECT unit_price FROM orders WHERE city = 'New York';"] * 5
TOKENIZER = build_tokenizer(TEXTS, words=["Oslo"])


def tokens_of(text: str) -> list[str]:
    return [token.replace(START, "_") for token in TOKENIZER.tokenize(text)]


@given(st.text() | st.text(alphabet="ab_ 1'\n\ue000\ue001\ue002\ue003é<>x0", max_size=12))
def test_any_text_round_trips(text: str) -> None:
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    assert TOKENIZER.decode(ids) == text


def test_a_known_word_is_one_token_wherever_it_stands() -> None:
    assert tokens_of("SELECT unit_price FROM orders") == [
        "_SELECT",
        "_unit_price",
        "_FROM",
        "_orders",
    ]
    ids = {TOKENIZER.convert_tokens_to_ids(f"{START}Oslo")}
    for text in ("Oslo", " Oslo", "'Oslo'", "(Oslo)", "a Oslo b", "\nOslo"):
        assert ids <= set(TOKENIZER(text)["input_ids"])
        assert TOKENIZER.unk_token_id is None


def test_a_number_is_its_digits_and_a_frequent_gap_is_one_token() -> None:
    assert tokens_of("city = 'New York' 120") == [
        *("_city", " = '", "_New", "_York", "'", " ", "_1", "2", "0"),
    ]


def test_an_unknown_word_falls_back_to_characters_and_bytes() -> None:
    assert tokens_of("zé") == ["_", "z", "<0xC3>", "<0xA9>"]


def test_the_order_of_the_texts_changes_nothing() -> None:
    other = build_tokenizer(list(reversed([*TEXTS, "Lima"])), words=["Oslo"])
    same = build_tokenizer([*TEXTS, "Lima"], words=["Oslo"])
    assert other.get_vocab() == same.get_vocab()


def test_the_folder_loads_as_any_policy_and_its_tokenizer_round_trips(tmp_path: Path) -> None:
    build_text_policy(tmp_path / "policy", TEXTS, seed=0, extra_tokens=["<good>", "<bad>"])
    network, tokenizer = load_base(str(tmp_path / "policy"))
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    assert network.get_input_embeddings().weight.shape[0] == len(tokenizer)
    assert len(tokenizer("<good><bad>")["input_ids"]) == 2
    for text in (TEXTS[0], "a  b \n Ünïcode 12 x_1"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "city"}], tokenize=False, add_generation_prompt=True
    )
    assert prompt == "<|im_start|>user\ncity<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_gives_the_same_weights(tmp_path: Path, seed: int) -> None:
    files = []
    for name in ("a", "b"):
        build_text_policy(tmp_path / name, TEXTS, seed=seed)
        files.append((tmp_path / name / "model.safetensors").read_bytes())
    assert files[0] == files[1]
    build_text_policy(tmp_path / "other", TEXTS, seed=seed + 1)
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != files[0]
