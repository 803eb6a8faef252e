"""Reads slots saved by llama-server (`--slot-save-path`): the tokens of a conversation, including its prompt.

The layout (`llama_state_seq_save_file` of llama.cpp, little-endian) is u32 magic 0x67677371, u32 version, u32 number of
tokens, int32 tokens. The KV cache, which follows, is not read. The file does not show where the prompt ends.
"""

import struct

import numpy as np
import numpy.typing as npt

from ..._values import counted
from ...errors import ArgumentError
from ..gguf_tokenizer import vocabulary_of
from .sniff import SLOT_MAGIC

NAME = "llama-slot"
HELP = "slots of llama-server: tokens, which need --tokenizer"

_HEADER = struct.Struct("<4sII")


def tokens(path: str) -> npt.NDArray[np.int32]:
    """Return the tokens of a slot file, int32[n]. If the file is damaged, ValueError says how."""
    with open(path, "rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(SLOT_MAGIC):
            raise ArgumentError("it is not a slot of llama-server, or it ends inside its header")
        _, _, n = _HEADER.unpack(header)
        data = file.read(4 * n)
    if len(data) < 4 * n:
        raise ArgumentError(f"it is cut off after {len(data) // 4:,} of {counted(n, 'token')}")
    return np.frombuffer(data, "<i4").astype(np.int32)


def text(tokens: npt.NDArray[np.int32], tokenizer: str) -> str:
    """Return the text of tokens, with the names of special tokens. ValueError for a token outside the vocabulary."""
    try:
        return str(vocabulary_of(tokenizer).detokenize(tokens))
    except ValueError as error:
        raise ArgumentError(f"{error}: give the model that wrote the slot") from error
