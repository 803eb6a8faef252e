"""A trained model as a GGUF file that llama.cpp loads: matrices in Q8_0, norms in float32.

The keys and their order are those of the pair of models that the package ships.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType
from gguf.quants import quantize
from numpy.typing import NDArray

from data import ASSISTANT, END, END_THINK, THINK, USER
from tokenizer import Vocabulary

if TYPE_CHECKING:  # model.py needs torch, writing a file does not
    from model import Shape

DESCRIPTION = "Small model for demonstrations and tests: stories and reasoning tasks with <think> traces."
CHAT_TEMPLATE = (
    "{% for m in messages %}"
    "{% if m['role']=='user' %}<|user|>{{ m['content'] }}"
    "{% elif m['role']=='assistant' %}<|assistant|>{{ m['content'] }}<|endoftext|>"
    "{% else %}{{ m['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|><think>{% endif %}"
)
# Control tokens are never printed; the marks of a trace are, so that a reader sees where it ends.
TOKEN_TYPES = {
    END: TokenType.CONTROL,
    USER: TokenType.CONTROL,
    ASSISTANT: TokenType.CONTROL,
    THINK: TokenType.USER_DEFINED,
    END_THINK: TokenType.USER_DEFINED,
}

Tensors = Mapping[str, NDArray[np.float32]]  # by GGUF's names; (out, in) or (n,)


def model_name(tensors: Tensors) -> str:
    """The name by whole millions of parameters: `tale 7M`."""
    return f"tale {sum(tensor.size for tensor in tensors.values()) // 1_000_000}M"


def write_gguf(
    path: Path,
    shape: Shape,
    tensors: Tensors,
    vocabulary: Vocabulary,
    license_id: str,
) -> None:
    """Write `tensors` with all that llama.cpp needs to run them; `license_id` is an SPDX id."""
    writer = GGUFWriter(path, "llama")
    writer.add_name("lzsampler " + model_name(tensors))
    writer.add_description(DESCRIPTION)
    writer.add_license(license_id)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.embedding)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(shape.rms_epsilon)
    writer.add_rope_dimension_count(shape.embedding // shape.heads)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_vocab_size(len(vocabulary.tokens))
    _add_vocabulary(writer, vocabulary)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    for name, tensor in tensors.items():
        if tensor.ndim == 1:
            writer.add_tensor(name, tensor)
        else:
            q8_0 = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, quantize(tensor, q8_0), raw_dtype=q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: GGUFWriter, vocabulary: Vocabulary) -> None:
    """Tokens, merges and chat template; the tokenizer adds no token of its own to a text."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types([TOKEN_TYPES.get(token, TokenType.NORMAL) for token in vocabulary.tokens])
    writer.add_token_merges(vocabulary.merges)
    writer.add_bos_token_id(vocabulary.tokens.index(END))
    writer.add_eos_token_id(vocabulary.tokens.index(END))
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
