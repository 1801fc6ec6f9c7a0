"""The default policy's word-level tokenizer.

One token per number from 0 to 99, punctuation mark and word of its training texts. White space is
dropped and decoding inserts none, so `click(31,52)` round-trips.
"""

from collections.abc import Iterable
from typing import Final

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from producer.agents.android.policy.vocabulary import NUM_COORDINATES, WORD_PATTERN, split_words

END_OF_TURN: Final = "<|im_end|>"
IMAGE: Final = "<|image_pad|>"
PADDING: Final = "<|endoftext|>"
UNKNOWN: Final = "<|unk|>"
SPECIAL_TOKENS: Final = (
    PADDING,
    UNKNOWN,
    "<|im_start|>",
    END_OF_TURN,
    "<|vision_start|>",
    "<|vision_end|>",
    IMAGE,
    "<|video_pad|>",
)
"""Qwen-VL's names, which its processor and rope code look up."""

_ROLES: Final = ("user", "assistant", "system")
_MARKS: Final = tuple("()[]{}<>,.:;!?'\"-_+*/=%&@#|")

CHAT_TEMPLATE: Final = (
    "{%- for message in messages -%}<|im_start|>{{ message['role'] }}"
    "{%- if message['content'] is string %} {{ message['content'] }}"
    "{%- else -%}{%- for part in message['content'] -%}"
    "{%- if part['type'] == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>"
    "{%- else %} {{ part['text'] }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}<|im_end|>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant {% endif -%}"
)
"""Qwen's dialogue format without line breaks, each of which would cost a token per turn."""


def build_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose vocabulary covers `texts`; the order of `texts` does not change the ids."""
    words = {word for text in texts for word in split_words(text)}
    numbers = tuple(str(number) for number in range(NUM_COORDINATES))
    vocabulary: dict[str, int] = {}
    for token in (*SPECIAL_TOKENS, *numbers, *_MARKS, *_ROLES, *sorted(words)):
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)
    tokenizer.decoder = Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        pad_token=PADDING,
        eos_token=END_OF_TURN,
        additional_special_tokens=[
            token for token in SPECIAL_TOKENS if token not in {UNKNOWN, PADDING, END_OF_TURN}
        ],
        clean_up_tokenization_spaces=False,
    )
