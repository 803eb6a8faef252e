"""`PartMasks`: masks of parts that many grammars have, such as the strings of JSON."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._check import INT32_MAX, check, integer
from .._ffi import ffi, lib
from .._values import counted
from ..errors import ArgumentTypeError
from .token_bytes import TokenBytes

_FORMATS = ("date", "time", "date-time", "uuid")
_VALUES: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    *({"type": "string", "format": name} for name in _FORMATS),
)
COMMON: tuple[dict[str, Any], ...] = (
    *_VALUES,
    *({"type": "object", "properties": {"name": value}, "required": ["name"]} for value in _VALUES),
)
_MOST_STATES = 500  # of a schema that are looked at


@dataclass(frozen=True)
class Figures:
    """What is kept: parts, masks inside them, bytes; and how many masks were found there or had to be made so far."""

    parts: int
    masks: int
    memory: int
    found: int
    made: int


class PartMasks:
    """Masks of parts of grammars, kept for all grammars of one vocabulary: `TokenBytes.part_masks` has them.

    Strings, numbers and names of `Grammar.json_schema` and `Grammar.yaml_schema` are such parts. Where another schema
    has the same part, the masks of states inside it are not made again: they are the same bits. ``max_bytes``: what
    needs more is forgotten, 0 is 32 MiB. Any number of threads may use them.
    """

    def __init__(self, vocabulary: TokenBytes, *, max_bytes: int = 0) -> None:
        if not isinstance(vocabulary, TokenBytes):
            raise ArgumentTypeError(f"vocabulary must be a TokenBytes, got {vocabulary!r:.50}")
        self.vocabulary = vocabulary
        out = ffi.new("lzs_part_masks **")
        check(lib.lzs_part_masks_new(vocabulary.handle, integer("max_bytes", max_bytes, 0, INT32_MAX), out))
        self.handle: Any = ffi.gc(out[0], lib.lzs_part_masks_free)  # `lzs_part_masks *`

    def prepare(self, schemas: Iterable[dict[str, Any] | bool | str] = COMMON) -> None:
        """Make the masks of the parts of some JSON Schemas: by default of strings, numbers, dates and UUIDs.

        Each state is visited, up to 500 of a schema, nearest to the beginning first. Errors as `Grammar.json_schema`.
        """
        from .automaton import automaton_of
        from .grammar import Grammar

        if isinstance(schemas, dict | str) or not isinstance(schemas, Iterable):
            raise ArgumentTypeError(f"schemas must be a list of schemas, got {schemas!r:.50}")
        for schema in schemas:
            grammar = Grammar.json_schema(schema, self.vocabulary, share=False)
            automaton_of(grammar, _MOST_STATES, part_masks=self)

    @property
    def figures(self) -> Figures:
        """What is kept at the moment."""
        out = ffi.new("lzs_part_masks_figures *")
        while (status := lib.lzs_part_masks_look(self.handle, out)) == lib.LZS_ELIMIT:
            time.sleep(0.001)  # another thread uses them, for a few milliseconds at most
        check(status)
        return Figures(out.n_parts, out.n_masks, out.bytes, out.found, out.made)

    def __repr__(self) -> str:
        found = self.figures
        masks, parts = counted(found.masks, "mask"), counted(found.parts, "part")
        return f"<PartMasks of {self.vocabulary.n_vocab} tokens: {masks} of {parts}>"
