"""Vocabularies, grammars and texts made to end the process, to fill its memory, or to keep it busy for minutes."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from lzsampler import Grammar, Spelling, TokenBytes
from lzsampler._ffi import ffi, lib
from lzsampler.auditing.stuck import stretches

BYTES = [bytes([byte]) for byte in range(256)]

# A thread makes a mask: argv has its stack in KiB, the kind of the vocabulary, and the pattern or the number of parts.
MASKS = """
import sys, threading
from lzsampler import Grammar, Sampler, TokenBytes

stack, kind, what = int(sys.argv[1]) * 1024, *sys.argv[2:]
pieces = [b"", *(bytes([byte]) for byte in range(256))]
if kind == "deep":
    pieces.append(b"a" * 65_535)
if kind == "wide":  # each beginning has 17 children
    pieces += [b"a" * n + bytes([byte]) for n in range(700) for byte in b"abcdefghijklmnopq"]
tokens = TokenBytes(pieces, end=[0])

def work():
    if kind == "parts":
        some = [{"type": "string", "pattern": f"^[a-z]{{{i + 1},{i + 3}}}$"} for i in range(int(what))]
        grammar = Grammar.json_schema({"anyOf": some}, tokens)
    else:
        grammar = Grammar.regex(what, tokens)
    sampler = Sampler(tokens.n_vocab)
    sampler.set_grammar(grammar)
    if kind == "parts":
        sampler.accept(ord('"') + 1)
    print(sum(int(word).bit_count() for word in sampler.allowed()))

threading.stack_size(stack)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize(
    ("stack", "kind", "what", "n"),
    [
        (0, "deep", "a*b", 3),
        (256, "deep", "a*b", 3),
        (128, "wide", "(a|aa|aaa|[b-q]{2,9})*z", 11918),
        (128, "wide", "(aaa)*", 702),
        (96, "parts", "62", 26),
    ],
)
def test_a_mask_needs_little_stack(stack: int, kind: str, what: str, n: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MASKS, str(stack), kind, what], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(n)), done.stderr


def test_masks_of_states_that_are_looked_at_are_forgotten_when_they_need_too_much() -> None:
    rng = np.random.default_rng(1)
    letters = np.frombuffer(b"abcdefghijklmnop", np.uint8)
    words = {letters[rng.integers(0, 16, 5)].tobytes() for _ in range(30_000)}
    tokens = TokenBytes([b"", *BYTES, *sorted(words)], end=[0])
    limit = 4 << 20
    pattern = "".join(f"[{''.join(sorted(set(map(chr, rng.choice(letters, 12)))))}]" for _ in range(2000))
    grammar = Grammar.regex(pattern, tokens, max_bytes=limit)
    matches, to, state, most = ffi.new("int32_t *"), ffi.new("int32_t *"), lib.LZS_GRAMMAR_START, 0
    row = np.empty((tokens.n_vocab + 31) // 32, np.uint32)
    seen = []
    for at in range(1900):
        assert lib.lzs_grammar_state(grammar.handle, state, matches, ffi.from_buffer("uint32_t[]", row), row.size) == 0
        most = max(most, lib.lzs_grammar_memory(grammar.handle))
        seen.append(row.copy())
        byte = next(b for b in range(97, 113) if row[(b + 1) // 32] >> ((b + 1) % 32) & 1)
        assert lib.lzs_grammar_step(grammar.handle, state, byte, to) == 0
        state = to[0]
        assert state >= 0, at
    assert most <= limit
    assert sum(not np.array_equal(a, b) for a, b in pairwise(seen)) > 1800


def test_long_tokens_of_sentencepiece_are_split_in_linear_time() -> None:
    longest = 65_535
    pieces = [b"", *BYTES, *(b"a" * (longest - 1) + bytes([byte]) for byte in range(60))]
    tokens = TokenBytes(pieces, end=[0])
    spelling = Spelling(tokens, scores=np.zeros(len(pieces), np.float32))
    assert spelling.wrong([1 + ord("a")] * 3) is None


def test_stuck_stretches_take_linear_time_whatever_the_count() -> None:
    n = 1_000_000
    found = stretches(np.zeros(n, np.int32), threshold=10, ngram=4, min_count=n // 2, weight=1, window=n)
    assert found.end.tolist() == [n]
    assert found.old.tolist() == [n - n // 2 + 1]
