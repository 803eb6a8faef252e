"""What tests of `generate_many` share: its texts, none of which may fail."""

from collections.abc import Iterable
from typing import Any

from lzsampler.decoding.generation import Generation
from lzsampler.decoding.many import Request


def texts_by_id(made: Iterable[tuple[Request, Generation | Exception]]) -> dict[Any, Generation]:
    """Return the texts by the ids of their requests, in the order in which they ended."""
    texts = {}
    for request, text in made:
        if isinstance(text, Exception):
            raise text
        texts[request.id] = text
    return texts
