"""`PartMasks`: masks of parts that many grammars have, such as the strings of JSON, in memory and in files."""

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._check import INT32_MAX, check, integer
from .._ffi import ffi, lib
from .._values import counted
from ..errors import ArgumentTypeError, LzsError
from ..util.files import replacing
from .token_bytes import TokenBytes

_MAGIC = b"lzsampler part masks 1\n"  # another number when the tree of tokens or the places of programs change
_DIGEST = 32
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
        _when_free(lambda: lib.lzs_part_masks_look(self.handle, out))
        return Figures(out.n_parts, out.n_masks, out.bytes, out.found, out.made)

    def save(self, path: str | Path) -> None:
        """Write them to a file, which appears whole or not at all. LzsError where it cannot be written."""
        _check_path(path)
        n = ffi.new("size_t *")
        words = np.empty(0, np.uint32)
        while n[0] > words.size or not n[0]:
            words = np.empty(n[0], np.uint32)
            pointer = ffi.from_buffer("uint32_t[]", words, require_writable=True)
            _when_free(partial(lib.lzs_part_masks_write, self.handle, pointer, words.size, n))
        payload = words[: n[0]].astype("<u4").tobytes()
        with replacing(path, durable=False) as file:
            file.write(_MAGIC + _fingerprint(self.vocabulary) + hashlib.sha256(payload).digest() + payload)

    def load(self, path: str | Path) -> None:
        """Add those of a file that `save` wrote for the same vocabulary.

        LzsError, in one line, and nothing is added, for a file that cannot be read, is not such a file, is damaged, or
        belongs to another vocabulary or version. The digest guards against damage and not against forgery: a file is as
        trustworthy as the folder that it lies in.
        """
        _check_path(path)
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise LzsError(f"cannot read {path}: {error.strerror or error}") from error
        if not data.startswith(_MAGIC):
            raise LzsError(f"{path} is not a file of part masks of this version of lzsampler: write it anew")
        begin = len(_MAGIC)
        of_vocabulary, digest = data[begin : begin + _DIGEST], data[begin + _DIGEST : begin + 2 * _DIGEST]
        payload = data[begin + 2 * _DIGEST :]
        if len(payload) % 4 or hashlib.sha256(payload).digest() != digest:
            raise LzsError(f"{path} is damaged: write it anew")
        if of_vocabulary != _fingerprint(self.vocabulary):
            raise LzsError(f"{path} has the part masks of another vocabulary: use one file for each")
        words = np.frombuffer(payload, "<u4").astype(np.uint32)
        pointer = ffi.from_buffer("uint32_t[]", words)
        if _when_free(lambda: lib.lzs_part_masks_read(self.handle, pointer, words.size)) == lib.LZS_EINVAL:
            raise LzsError(f"{path} has part masks that cannot be of this vocabulary: write it anew")

    def __repr__(self) -> str:
        found = self.figures
        masks, parts = counted(found.masks, "mask"), counted(found.parts, "part")
        return f"<PartMasks of {self.vocabulary.n_vocab} tokens: {masks} of {parts}>"


def _check_path(path: object) -> None:
    if not isinstance(path, str | Path):
        raise ArgumentTypeError(f"path must be a str or a Path, got {path!r:.50}")


def _when_free(call: Callable[[], int]) -> int:
    """Call until no other thread uses the masks, which takes a few milliseconds at most."""
    while (status := call()) == lib.LZS_ELIMIT:
        time.sleep(0.001)
    if status != lib.LZS_EINVAL:
        check(status)
    return status


def _fingerprint(vocabulary: TokenBytes) -> bytes:
    """Return a digest of all that masks depend on."""
    made = hashlib.sha256()
    made.update(np.array([len(piece) for piece in vocabulary.pieces], "<u4").tobytes())
    made.update(b"".join(vocabulary.pieces))
    for ids in (vocabulary.end, vocabulary.special):
        made.update(np.array([len(ids), *ids], "<i4").tobytes())
    return made.digest()
