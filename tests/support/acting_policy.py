"""A small untrained policy in the hub's layout that mostly acts, as a trained one does."""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from tests.support.checkpoints import change_json, hub_weights, write_checkpoint, write_shards

CONSTANT = 40.0
"""A component of every token's embedding, which the head reads as a bias."""
BIAS = 1.0
EMBEDDING, HEAD = "model.language_model.embed_tokens.weight", "lm_head.weight"


def write_acting_policy(folder: Path, completions: Sequence[str]) -> None:
    """A Qwen3-VL. Each completion is one token; these and the end are likely after anything."""
    write_checkpoint(folder, "qwen3_vl")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # They take rows that the embeddings have beyond the tokenizer.
    tokenizer.add_tokens([AddedToken(text, special=False) for text in completions])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = folder / "tokenizer_config.json"
    known = json.loads(config.read_text())["added_tokens_decoder"]
    plain = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word", "special"), False)
    added = {str(tokenizer.token_to_id(text)): {"content": text, **plain} for text in completions}
    change_json(config, added_tokens_decoder=known | added)
    weights = hub_weights(folder, "qwen3_vl")
    weights[EMBEDDING][:, 0] = CONSTANT
    weights[HEAD][:, 0] = 0.0
    for text in (*completions, "<|im_end|>"):
        weights[HEAD][tokenizer.token_to_id(text), 0] = BIAS
    write_shards(folder, weights)
