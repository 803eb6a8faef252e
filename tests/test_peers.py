"""Masks of regular expressions beside those of xgrammar: equal, but for what `.` means (needs the extra `peers`)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import Grammar, Sampler, TokenBytes

VECTORS = Path(__file__).with_name("vectors")
ROWS = [json.loads(line) for line in (VECTORS / "constraints.jsonl").read_text(encoding="utf-8").splitlines()]
Mask = npt.NDArray[np.uint32]


class Both:
    """lzsampler and xgrammar with the 32,000 tokens of Llama 2."""

    def __init__(self) -> None:
        pytest.importorskip("llama_cpp")
        self.xgrammar: Any = pytest.importorskip("xgrammar", reason='xgrammar is not installed: pip install ".[peers]"')
        from lzsampler.llama.vocabulary import Vocabulary

        self.vocabulary = Vocabulary(VECTORS / "ggml-vocab-llama-spm.gguf")
        self.tokens: TokenBytes = self.vocabulary.token_bytes
        hidden = {*self.tokens.end, *self.tokens.special}  # xgrammar knows them by their empty texts
        info = self.xgrammar.TokenizerInfo(
            [b"" if token in hidden else piece for token, piece in enumerate(self.tokens.pieces)],
            stop_token_ids=list(self.tokens.end),
        )
        self._compiler = self.xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def tokenized(self, text: str) -> list[int]:
        behind_a_line: list[int] = self.vocabulary.tokenize(f"\n{text}")[0].tolist()
        return behind_a_line[len(self.vocabulary.tokenize("\n")[0]) :]  # without the blank that comes first

    def masks(self, pattern: str, theirs: str, texts: list[str]) -> Iterator[tuple[Mask, Mask]]:
        """Yield the masks of both before each token of some texts, and at their ends."""
        compiled = self._compiler.compile_regex(theirs)
        sampler = Sampler(self.tokens.n_vocab)
        sampler.set_grammar(Grammar.regex(pattern, self.tokens))
        mask = np.zeros((1, (self.tokens.n_vocab + 31) // 32), np.int32)
        for text in texts:
            matcher = self.xgrammar.GrammarMatcher(compiled)
            sampler.reset()
            for token in [None, *self.tokenized(text)]:
                if token is not None:
                    assert matcher.accept_token(token), (text, token)
                    sampler.accept(token)
                matcher.fill_next_token_bitmask(mask)
                allowed = sampler.allowed()
                assert allowed is not None
                yield allowed, mask[0].view(np.uint32)


@pytest.fixture(scope="module")
def both() -> Both:
    return Both()


def bits(words: Mask) -> list[int]:
    return [int(token) for token in np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_masks_are_those_of_xgrammar(both: Both, row: dict[str, Any]) -> None:
    # R5 has escaped blanks, of each of which xgrammar says that it takes it for a blank.
    theirs = row["pattern"].replace("\\ ", " ")
    theirs = theirs.replace(".{1,500}", r"[^\n]{1,500}")  # see the next test
    steps = 0
    for ours, other in both.masks(row["pattern"], theirs, row["samples"]):
        assert np.array_equal(ours, other), bits(ours ^ other)[:10]
        steps += 1
    assert steps > len(row["samples"]) * 2


def test_a_point_is_a_line_feed_as_well_for_xgrammar_alone(both: Both) -> None:
    """In Python, Rust and JavaScript `.` is any character but a line feed, and so it is here."""
    row = next(row for row in ROWS if row["pattern"] == ".{1,500}")
    with_line_feeds = [token for token, piece in enumerate(both.tokens.pieces) if b"\n" in piece]
    assert with_line_feeds
    for ours, other in both.masks(row["pattern"], row["pattern"], row["samples"][:2]):
        assert bits(other & ~ours) == with_line_feeds
        assert not (ours & ~other).any()
