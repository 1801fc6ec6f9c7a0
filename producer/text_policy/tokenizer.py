"""The small text policy's tokenizer: one token per known word, any text round-trips.

A known word (a name of a table or column, a word of the pools, an SQL keyword) is one token in the
prompt and in the SQL alike, so that copying it is one step. A number is a token per digit. What
lies between words is one token where the training texts have it (`, `, ` = '`). Other text falls
back to characters, and those to UTF-8 bytes.

A single space between two words has no token: the normaliser takes it out and marks where a word
begins, and the decoder puts it back. Three private-use characters carry that; where a text has them
itself they are escaped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from tokenizers import Regex, Tokenizer, decoders, normalizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

START: Final = "\ue000"
"""Before every word."""
_ESCAPE, _ESCAPED_START, _ESCAPED_ESCAPE = "\ue001", "\ue001\ue002", "\ue001\ue003"
_WORD: Final = "[A-Za-z0-9_]"
_PIECE: Final = f"{START}?[A-Za-z_]+|{START}?[0-9]|[^A-Za-z0-9_{START}]+"
"""Letters of a word, one digit, or what lies between words."""
MAX_GAPS: Final = 400
"""Different texts between words that get a token of their own, the most frequent first."""
MIN_GAP_COUNT: Final = 5
"""Times that such a text is seen."""

END_OF_TURN: Final = "<|im_end|>"
PADDING: Final = "<|endoftext|>"
SPECIAL_TOKENS: Final = (PADDING, "<|im_start|>", END_OF_TURN)
"""Qwen's names."""

CHAT_TEMPLATE: Final = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
"""Qwen2.5's without its default system prompt and tools."""


def build_tokenizer(
    texts: Iterable[str], words: Sequence[str] = (), extra_tokens: Sequence[str] = ()
) -> PreTrainedTokenizerFast:
    """A tokenizer with a token for every word of `texts` and `words`.

    `extra_tokens`: marks of an own meaning, such as the label tokens of a reward model. The order
    of `texts` does not change the ids.
    """
    normalizer, splitter = _normalizer(), Split(Regex(_PIECE), behavior="isolated")
    known: set[str] = set()
    gaps: Counter[str] = Counter()
    for text in (*texts, *words):
        for piece, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)):
            if re.search(_WORD, piece):
                known.add(piece)
            else:
                gaps[piece] += 1
    kept = sorted(gaps, key=lambda gap: (-gaps[gap], gap))[:MAX_GAPS]
    vocabulary: dict[str, int] = {}
    for token in (
        *SPECIAL_TOKENS,
        *extra_tokens,
        *(f"<0x{byte:02X}>" for byte in range(256)),
        START,
        *(f"{mark}{digit}" for mark in ("", START) for digit in range(10)),
        *(chr(code) for code in (9, 10, 13, *range(32, 127))),
        *sorted(gap for gap in kept if gaps[gap] >= MIN_GAP_COUNT),
        *sorted(known),
    ):
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(BPE(vocabulary, [], byte_fallback=True, ignore_merges=True))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Replace(Regex(f"(?<={_WORD}){START}"), " "),
            decoders.Replace(START, ""),
            decoders.Replace(_ESCAPED_START, START),
            decoders.Replace(_ESCAPED_ESCAPE, _ESCAPE),
        ]
    )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PADDING,
        eos_token=END_OF_TURN,
        additional_special_tokens=[SPECIAL_TOKENS[1], *extra_tokens],
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def _normalizer() -> normalizers.Normalizer:
    return normalizers.Sequence(
        [
            normalizers.Replace(_ESCAPE, _ESCAPED_ESCAPE),
            normalizers.Replace(START, _ESCAPED_START),
            normalizers.Replace(Regex(f"(?<!{_WORD})(?={_WORD})"), START),
            normalizers.Replace(Regex(f"(?<={_WORD}) {START}"), START),
        ]
    )
