"""The tokenizer of the built policy.

One token per number from 0 to 99, per punctuation mark and per word that screens or tasks show.

Text is lowered and cut into numbers of two digits, words (hyphens inside stay: `wi-fi`) and marks;
blanks are dropped. Decoding joins without blanks, so that `click(31,52)` reads back as it was said.
It knows nothing of weights.
"""

from collections.abc import Iterable
from typing import Final

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from producer.demo_policy.words import NUM_NUMBERS, PIECE, pieces

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
"""Qwen-VL's own names, so that its processor and its rope code find them."""

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
"""Qwen's dialogue marks without its line breaks, each of which would cost a token per turn."""


def build_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer that knows every piece of `texts`.

    The same texts in any order give the same ids.
    """
    words = {piece for text in texts for piece in pieces(text)}
    numbers = tuple(str(number) for number in range(NUM_NUMBERS))
    vocabulary: dict[str, int] = {}
    for token in (*SPECIAL_TOKENS, *numbers, *_MARKS, *_ROLES, *sorted(words)):
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Split(Regex(PIECE), behavior="removed", invert=True)
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
