"""The normalized text and the ways back to characters of the text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_audit as twin
from lzsampler._ffi import ffi, lib
from lzsampler.auditing.normalized import NormalizedText, characters_before, to_bytes, whole_characters

LETTERS = st.sampled_from(
    [*"aB 9\n0", "é", "É", "ß", "İ", "Ⱥ", "K", "٣", "\u2028", "\U0001d7d8", "\U00010400", "\ud800", "\x00"]
)
TEXTS = st.text(LETTERS, max_size=120) | st.text(max_size=60)


@given(TEXTS)
def test_the_normalized_text_is_the_twins(text: str) -> None:
    expected, places = twin.normalized(text)
    normalized = NormalizedText(to_bytes(text))
    assert normalized.data.decode("utf-8", "surrogatepass") == expected
    edges = np.cumsum([0, *(len(to_bytes(character)) for character in expected)])
    assert normalized.places(edges).tolist() == places


@given(TEXTS, st.data())
def test_characters_before(text: str, data: st.DataObject) -> None:
    size = len(to_bytes(text))
    at = np.array(data.draw(st.lists(st.integers(0, size), max_size=8)), np.int64)
    expected = [sum(start < offset for start in _starts(text)) for offset in at.tolist()]
    assert characters_before(to_bytes(text), at).tolist() == expected


@given(TEXTS, st.data())
def test_whole_characters(text: str, data: st.DataObject) -> None:
    raw = to_bytes(text)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(raw)), st.integers(0, len(raw)))))
    edges = [*_starts(text), len(raw)]
    first, last = min(e for e in edges if e >= start), max(e for e in edges if e <= end)
    found = whole_characters(raw, np.array([start]), np.array([end]))
    assert (found[0].tolist(), found[1].tolist()) == ([first], [max(first, last)])


def _starts(text: str) -> list[int]:
    return [len(to_bytes(text[:i])) for i in range(len(text))]


def _decodes(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _well_formed_parts(raw: bytes) -> list[bytes]:
    """The characters of well-formed UTF-8, by Python's decoder, and the single bytes that belong to none."""
    parts, at = [], 0
    while at < len(raw):
        width = next((n for n in (1, 2, 3, 4) if _decodes(raw[at : at + n]) and at + n <= len(raw)), 1)
        parts.append(raw[at : at + width])
        at += width
    return parts


EDGES = [bytes([byte]) for byte in b"\xc0\xc1\xe0\xed\xf0\xf4\xf5\xf8\xff\x80\x90\xa0\xbf"]  # of Unicode's table 3-7
BYTES = st.lists(st.sampled_from([*EDGES, b"A", b" ", b"0", "É".encode(), "\U00010400".encode()]), max_size=12)


@given(st.binary(max_size=12) | BYTES.map(b"".join))
def test_only_well_formed_utf8_is_normalized(raw: bytes) -> None:
    expected, places = b"", []
    n_characters = 0
    for part in _well_formed_parts(raw):
        made = twin.normalized(part.decode())[0].encode() if _decodes(part) else part
        if not (made in (b" ", b"0") and expected.endswith(made)):
            places += [n_characters] + [n_characters + 1] * (len(made) - 1)
            expected += made
        n_characters += not 0x80 <= part[0] < 0xC0
    normalized = NormalizedText(raw)
    assert normalized.data == expected
    starts = [i for i in range(len(expected)) if not 0x80 <= expected[i] < 0xC0]
    assert normalized.places(np.array(starts, np.int64)).tolist() == [places[i] for i in starts]


def test_a_fold_that_is_longer_or_not_a_character_is_refused() -> None:
    normalized, n = ffi.new("uint8_t[8]"), ffi.new("size_t *")
    long = ffi.new("uint32_t[]", [0x10FFFF] * 128)
    assert lib.lzs_normalize(b"a", 1, long, 128, normalized, n, ffi.NULL, 0) == lib.LZS_EINVAL
    for wrong in (0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF):
        fold = ffi.new("uint32_t[]", [*range(0x10000), wrong])
        text = "\U00010000".encode()
        assert lib.lzs_normalize(text, 4, fold, 0x10001, normalized, n, ffi.NULL, 0) == lib.LZS_EINVAL
        assert lib.lzs_normalize(text, 4, fold, 0x10000, normalized, n, ffi.NULL, 0) == lib.LZS_OK


@pytest.mark.parametrize(
    ("text", "expected"), [("Step 9:\n\n go", "step 0: go"), ("STEP 10: go", "step 0: go"), ("", "")]
)
def test_counters_capitals_and_white_space_are_gone(text: str, expected: str) -> None:
    assert NormalizedText(to_bytes(text)).data.decode() == expected
