"""Which tokens are separators, in the writings of eight languages, and what that does to texts."""

import re
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lzsampler import Params, Sampler
from lzsampler.params import PRESETS
from lzsampler.separators import separators_of
from reference_lz import is_comma, is_separator, tokens_in

WORDS = {
    "English": ["the", " Apple", "don't", " co-op", "A1", " 3rd"],
    "Polish": ["źdźbło", " Łódź", "e\u0301"],
    "Russian": ["слово", " Ё", "щ"],
    "Chinese": ["的", "苹果", " 中"],
    "Japanese": ["です", "カ", "ー", "りんご"],
    "Thai": ["ที่", "แอปเปิ้ล", "\u0e34", "\u0e48"],  # a vowel sign and a tone mark alone
    "Hindi": ["सेब", "\u093f", "\u094d", " है"],  # a vowel sign and the virama
    "Arabic": ["تفاح", "\u064e", " ال", "\u0640"],  # a vowel sign and the tatweel
}
SENTENCE_MARKS = [".", ",", " ,", "!", "?", ";", "'", ' "', "...", "?!", "。", "，", "、", "！", "？", "؟", "،", "।"]
COMMAS = [",", " ,", "，", "、", "،", ",\n", '",', "),"]
SEPARATORS = [
    "\n",
    " ",
    "   ",
    "(",
    " [",
    "{}",
    "1",
    " 2024",
    "３",
    "٣",
    ":",
    "|",
    " =",
    "\t",
    ",\n",
    '",\n',
    "),",
    "→",
    "",
]


@pytest.mark.parametrize("language", WORDS)
def test_letters_signs_of_vowels_and_pieces_of_characters_are_no_separators(language: str) -> None:
    for word in WORDS[language]:
        assert not is_separator(word)
        assert not is_comma(word)
        data = word.encode()
        for at in (at for at, byte in enumerate(data) if byte & 0xC0 == 0x80):  # tokens of bytes may end in a character
            assert not is_separator(data[:at].decode("utf-8", "replace"))
            assert not is_separator(data[at:].decode("utf-8", "replace"))


def test_marks_of_sentences_are_no_separators_and_commas_are_some_of_them() -> None:
    assert not any(map(is_separator, SENTENCE_MARKS))
    assert [mark for mark in SENTENCE_MARKS if is_comma(mark)] == [",", " ,", "，", "、", "،"]
    assert all(map(is_comma, COMMAS))
    assert all(map(is_separator, SEPARATORS))


def test_bit_sets_of_a_vocabulary() -> None:
    texts = [*SEPARATORS, *SENTENCE_MARKS, *(word for words in WORDS.values() for word in words)]
    made = separators_of(iter(texts))
    assert {len(bits) for bits in made.values()} == {(len(texts) + 31) // 32 * 4}
    assert tokens_in(made["lz_separators"]) == set(range(len(SEPARATORS)))
    assert tokens_in(made["lz_commas"]) == {token for token, text in enumerate(texts) if is_comma(text)}
    assert separators_of([]) == {"lz_separators": b"", "lz_commas": b""}


def agrees(texts: list[str]) -> bool:
    made = separators_of(texts)
    return tokens_in(made["lz_separators"]) == {token for token, text in enumerate(texts) if is_separator(text)} and (
        tokens_in(made["lz_commas"]) == {token for token, text in enumerate(texts) if is_comma(text)}
    )


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="c/letters.h is of Unicode 14")
def test_every_character_is_what_the_reference_says() -> None:
    assert agrees([chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000])


@given(st.lists(st.text(st.sampled_from(" ,.!?，、\n1)(aßक\u093f\ufffd।'\""), max_size=4), max_size=70))
def test_short_texts_are_what_the_reference_says(texts: list[str]) -> None:
    assert agrees(texts)


def test_bytes_are_utf_8_and_those_that_are_not_count_as_letters() -> None:
    assert tokens_in(separators_of([b"\n", b"\xff", b"\xe2\x86", "→".encode(), "→", b""])["lz_separators"]) == {
        0,
        3,
        4,
        5,
    }


# ---- texts ----


def steps(text: str, preset: str, **fields: Any) -> list[float]:
    """Return what each token of a text costs where it stands, with a word and a mark as tokens."""
    pieces = re.findall(r" ?(?:[一-鿿]|[^\W一-鿿]+)|\W", text)
    vocabulary = list(dict.fromkeys(pieces))
    known = {piece: token for token, piece in enumerate(vocabulary)}
    padded = vocabulary + ["x"] * (4096 - len(vocabulary))
    sampler = Sampler(4096, Params(**{**PRESETS[preset], **separators_of(padded), **fields}))
    costs = []
    for piece in pieces:
        tokens, _, biases = sampler.edits()
        costs.append(-dict(zip(tokens.tolist(), biases.tolist(), strict=True)).get(known[piece], 0.0))
        sampler.accept(known[piece])
    return costs


@pytest.mark.parametrize(("item", "tokens"), [("false", 1), ("0", 1), ("null", 1), ('"yes"', 3), ("3.14", 3)])
@pytest.mark.parametrize("preset", ["default", "guard"])
def test_equal_values_cost_nothing_below_the_allowance(preset: str, item: str, tokens: int) -> None:
    """As in a list of JSON, where each has a comma and may have a space."""
    text = "[" + ", ".join([item] * 40) + "]"
    assert not any(steps(text, preset, lz_run_allowance=40 * (tokens + 2)))
    assert any(steps(text * 20, preset))
    assert not any(steps(text, preset, lz_run_allowance=16 * 32))  # that of the default under a grammar


@pytest.mark.parametrize(
    "sentence", ["I like apples very much.", "我喜欢吃苹果。", "Я очень люблю вкусные яблоки.", "मुझे सेब बहुत पसंद हैं।"]
)
def test_a_sentence_that_comes_again_costs(sentence: str) -> None:
    text = "" if sentence[0] == "我" else " "
    costs = steps(text + text.join([sentence] * 4), "default")
    n = len(costs) // 4
    assert not any(costs[: n + 4])  # nothing was said before, and four tokens are too few
    assert all(cost > 0 for cost in costs[n + 4 :])
    assert not any(steps(sentence * 4, "guard"))


@pytest.mark.parametrize("preset", ["default", "guard"])
def test_a_text_without_a_repetition_is_left_alone(preset: str) -> None:
    text = " ".join(f"w{i} w{i * 7 % 50},\n({i})" for i in range(300))
    assert not any(steps(text, preset))


def test_short_items_between_commas_are_a_list_and_clauses_are_none() -> None:
    items, clause = "red, green, blue, red, green, blue, red, green, blue", "and then the old man went home again, "
    assert not any(steps(items, "default"))
    assert any(steps(clause * 3, "default"))


@pytest.mark.parametrize("texts", ["ab", b"ab", ["a", None], [1]])
def test_texts_are_strings_or_bytes(texts: Any) -> None:
    with pytest.raises(TypeError, match="texts must be a list of strings or bytes, got "):
        separators_of(texts)
