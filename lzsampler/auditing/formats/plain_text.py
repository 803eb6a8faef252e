"""Plain text: a model wrote the whole file."""

import codecs

from ..reading.format import Message

NAME = "text"
HELP = "the whole file is one answer (.txt, .md)"


def decoded(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 with a byte-order mark. Invalid bytes become U+FFFD."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def message(data: bytes) -> Message:
    """Return the text of a file as one message."""
    return Message(decoded(data))
