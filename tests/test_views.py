"""The near view and the ways back to characters of the text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_audit as twin
from lzsampler._ffi import ffi, lib
from lzsampler.views import NearView, characters_before, to_bytes, whole_characters

LETTERS = st.sampled_from(
    [*"aB 9\n0", "é", "É", "ß", "İ", "Ⱥ", "K", "٣", "\u2028", "\U0001d7d8", "\U00010400", "\ud800", "\x00"]
)
TEXTS = st.text(LETTERS, max_size=120) | st.text(max_size=60)


@given(TEXTS)
def test_the_view_is_the_twins(text: str) -> None:
    expected, places = twin.near_view(text)
    view = NearView(to_bytes(text))
    assert view.data.decode("utf-8", "surrogatepass") == expected
    edges = np.cumsum([0, *(len(to_bytes(character)) for character in expected)])
    assert view.places(edges).tolist() == places


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


def test_what_is_no_utf8_stays_as_it_is() -> None:
    raw = b"\xff\xc3 \xe2\x82A\xf0\x9f"
    assert NearView(raw).data == b"\xff\xc3 \xe2\x82a\xf0\x9f"


def test_a_fold_that_is_longer_is_refused() -> None:
    fold, view, n = ffi.new("uint32_t[]", [0x10FFFF] * 128), ffi.new("uint8_t[8]"), ffi.new("size_t *")
    assert lib.lzs_near_view(b"a", 1, fold, 128, view, n, ffi.NULL, 0) == lib.LZS_EINVAL


@pytest.mark.parametrize(("text", "view"), [("Step 9:\n\n go", "step 0: go"), ("STEP 10: go", "step 0: go"), ("", "")])
def test_counters_capitals_and_white_space_are_gone(text: str, view: str) -> None:
    assert NearView(to_bytes(text)).data.decode() == view
