"""Words, lines and metrics: the C core against the twin on texts made to mislead it, and against datatrove's filter."""

import random
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deflate import zlib_compress
from hypothesis import given
from hypothesis import strategies as st

import reference_audit as twin
from lzsampler import audit
from lzsampler._ffi import ffi, lib
from lzsampler.auditing.metrics import MEMBERS, Metrics, intern, lines, token_figures, words
from lzsampler.auditing.normalized import to_bytes
from lzsampler.auditing.prefilter import Prefilter
from lzsampler.auditing.repetition import repetition

PROSE = Path(__file__).parents[1] / "bench" / "train_embedded" / "corpus"
SPACES = [chr(code) for code in range(0x110000) if chr(code).isspace()]


def measured(texts: list[str]) -> dict[str, float]:
    metrics = Metrics()
    prefilter = Prefilter(length=100, of_bytes=(20, 3), of_spans=(20, 3), of_normalized=(20, 8))
    for text in texts:
        data = to_bytes(text)
        metrics.add(data, prefilter(data).counts)
    return metrics.figures()


def pieces(data: bytes, spans: Any) -> list[str]:
    return [data[start:end].decode("utf-8", "surrogatepass") for start, end in spans.tolist()]


def composed(rng: random.Random) -> str:
    """Words of few letters that come again, in lines and paragraphs that come again."""
    letters = rng.choice(["ab", "abcdefghij", "aé\U0001f600\ud800", "\u2028\u200b\u0301x"])
    vocabulary = [
        "".join(rng.choices(letters, k=rng.choice((1, 2, 3, 7, 8, 9, 20)))) for _ in range(rng.randrange(1, 9))
    ]
    sentences = []
    for _ in range(rng.randrange(1, 6)):
        gaps = rng.choices([" ", " ", "  ", "\t", rng.choice(SPACES)], k=12)
        sentences.append("".join(rng.choice(vocabulary) + gap for gap in gaps))
    ends = rng.choices(["\n", "\n\n", "\n\n\n", "", " ", "\r\n"], k=rng.randrange(1, 30))
    return rng.choice(["", "\n", " \n\n"]) + "".join(rng.choice(sentences) + end for end in ends)


def test_ngrams_that_are_equal_with_their_words_cut_in_other_places() -> None:
    """A character n-gram is its words joined: what comes again may begin with fewer bytes in its first five words."""
    rng, words = random.Random(1), ["a", "ab", "aab", "aaab", "b", "aabb"]
    texts = [" ".join(rng.choices(words, k=rng.randrange(50, 400))) for _ in range(40)]
    for text in ("aaaa bbb ccc ddd eee f Xq aaa abb bcc cdd dee ef", *texts):
        assert measured([text]) == twin.metrics([text])


@pytest.mark.parametrize("seed", range(40))
def test_all_metrics_are_those_of_the_twin(seed: int) -> None:
    rng = random.Random(seed)
    texts = [composed(rng) for _ in range(10)]
    for text in texts:
        assert measured([text]) == twin.metrics([text])
    assert measured(texts) == twin.metrics(texts)


def repeating(rng: random.Random) -> list[int]:
    """Tokens of few kinds, with stretches that come again, longer and shorter than 30 and the tail."""
    kinds = rng.choice(([0, 1], list(range(9)), [0, 5, 2**31 - 2], list(range(1000))))
    made = rng.choices(kinds, k=rng.randrange(60))
    for _ in range(rng.randrange(4)):
        unit = rng.choices(kinds, k=rng.choice((1, 2, 7, 29, 30, 31, 40)))
        made += unit * rng.choice((1, 3, 19, 20, 21)) + rng.choices(kinds, k=rng.randrange(20))
    return made[: rng.choice((0, 3, 4, 5, 34, 48, 49, 50, 511, 512, 513, 900, 900, 900))]


@pytest.mark.parametrize("seed", range(60))
def test_figures_of_tokens_are_those_of_the_twin(seed: int) -> None:
    tokens = repeating(random.Random(seed))
    slow = twin.token_figures(tokens)
    rep4 = twin.share(slow.grams - slow.distinct, slow.grams)
    tail_rep4 = twin.share(slow.tail_grams - slow.tail_distinct, slow.tail_grams)
    assert token_figures(tokens) == (rep4, tail_rep4, slow.extensible, slow.extended, slow.frequent)


def test_a_30_gram_20_times_or_more() -> None:
    assert [token_figures([3] * n).frequent for n in (48, 49)] == [False, True]  # it may overlap itself
    unit = list(range(29))
    once = [[*unit, i] for i in range(100, 130)]  # the 30th token is another each time
    assert not token_figures([token for row in once for token in row]).frequent
    assert [token_figures([*range(40)] * n).frequent for n in (19, 20)] == [False, True]
    sentence = "this is a sentence of words that come back and back again and no others at all "
    assert [measured([sentence * n])["frequent_30_gram"] for n in (20, 22)] == [0.0, 1.0]  # 16 words


def test_extensions_by_hand() -> None:
    """1 2 3 4 come again; 5 follows as before, and then 9 does not."""
    figures = token_figures([1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 9])
    assert (figures.extensible, figures.extended) == (2, 1)
    assert figures.rep4 == figures.tail_rep4 == 2 / 9
    assert token_figures([1, 2, 3, 4, 0, 1, 2, 3, 4]).extensible == 0  # nothing follows them the second time
    assert measured(["a b c d e f a b c d e x"])["ser4"] == 1 / 2
    calm = token_figures([*[1] * 600, *range(2, 700)])
    assert calm.tail_rep4 == 0.0
    assert calm.rep4 > 0.4


def test_what_are_not_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tokens\[1\] = -2 is not a token"):
        token_figures([1, -2])
    with pytest.raises(TypeError, match="tokens must be integers"):
        token_figures([0.5])  # type: ignore[list-item]
    assert token_figures([]) == (0.0, 0.0, 0, 0, False)
    assert lib.lzs_number_figures(ffi.NULL, 1, ffi.new("lzs_figures *")) == lib.LZS_EINVAL


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "\n\n", "a", "a b", "é", "\ud800", "a\n", "\na\n", "a\x00b a\x00b", "\u3000"]
)
def test_small_texts(text: str) -> None:
    assert measured([text]) == twin.metrics([text])
    assert pieces(to_bytes(text), words(to_bytes(text))) == text.split()


def test_by_hand() -> None:
    assert measured(["a b c d"])["rep4"] == 0.0
    assert measured(["a b c"])["rep4"] == 0.0
    assert measured(["a b c d a b c d"])["rep4"] == 1 / 5  # abcd bcda cdab dabc abcd
    assert measured(["a b a b a"])["rep2"] == 2 / 4
    assert measured(["a b a b a"])["distinct2"] == 2 / 5
    assert measured(["ab cd ab cd"])["gopher.top_2_gram"] == 2 * 5 / 11
    assert measured(["a b c d e a b c d e"])["gopher.dup_5_gram"] == 5 / 19
    assert measured(["x\nx\n\ny\n"])["gopher.dup_line_frac"] == 1 / 4
    assert measured(["I will not go. " * 100])["zlib_ratio"] > 20


def test_the_ratio_is_about_that_of_zlib() -> None:
    """Another compressor of the same format: within 5 % of zlib's default on texts that do not loop."""
    compared = 0
    for text in documents():
        data = to_bytes(text)
        usual = len(data) / len(zlib.compress(data))
        if len(data) > 1000 and usual < 8:
            compared += 1
            assert measured([text])["zlib_ratio"] == pytest.approx(usual, rel=0.05)
        assert zlib.decompress(zlib_compress(data, 1)) == data
    assert compared > 20


@given(st.text(st.sampled_from(["a", "b", "é", "\U0001f600", *SPACES]), max_size=200))
def test_words_are_those_of_str_split(text: str) -> None:
    data = to_bytes(text)
    assert pieces(data, words(data)) == text.split()
    stripped = [line.strip() for line in text.split("\n")]
    if text.endswith("\n") or not text:  # nothing comes after the last line feed
        stripped.pop()
    assert pieces(data, lines(data)) == stripped


@given(st.lists(st.text("ab", max_size=20), max_size=60))
def test_ids_are_equal_where_the_spans_are(parts: list[str]) -> None:
    data = "".join(parts).encode()
    ends = np.cumsum([len(part) for part in parts], dtype=np.uint32)
    spans = np.stack((np.concatenate(([0], ends[:-1])), ends), axis=1).astype(np.uint32) if parts else words(b"")
    first: dict[str, int] = {}
    assert intern(data, spans).tolist() == [first.setdefault(part, len(first)) for part in parts]


def test_a_long_text_is_measured_in_pieces() -> None:
    """Cut after the word with which 4 MiB would be exceeded by the next one; the same as fields of their own."""
    rng = random.Random(3)
    text = " ".join(rng.choice(("one", "two", "three\n", "four")) for _ in range(1_900_000))
    cuts, last = [0], 0
    for end in words(text.encode())[:, 1].tolist():
        if end - cuts[-1] > 4 << 20:
            cuts.append(last)
        last = end
    made = measured([text])
    parts = measured([text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)])
    assert len(cuts) == 3
    for name in made.keys() - {"zlib_ratio", "zlib_tail_ratio"}:
        assert made[name] == parts[name], name


def test_one_word_of_many_bytes_and_many_of_one() -> None:
    assert measured(["x" * 6_000_000])["distinct1"] == 1.0
    made = measured(["x " * 3_000_000])
    assert made["distinct1"] == 2 / 3_000_000  # a distinct one for each piece
    assert made["gopher.dup_5_gram"] == pytest.approx(0.5, abs=1e-5)


def test_bad_arguments_are_refused() -> None:
    spans, ids, figures = ffi.new("lzs_span[2]", [(0, 1), (1, 3)]), ffi.new("int32_t[2]"), ffi.new("lzs_figures *")
    n = ffi.new("size_t *")
    assert lib.lzs_split(b"ab", 2, 2, spans, 2, n) == lib.LZS_EINVAL
    assert lib.lzs_split(b"a b", 3, lib.LZS_SPLIT_WORDS, spans, 1, n) == lib.LZS_ESPACE
    assert n[0] == 2
    assert lib.lzs_intern(b"ab", 2, spans, 2, ids, n) == lib.LZS_EINVAL
    assert lib.lzs_text_figures(b"ab", 2, spans, ids, 2, figures) == lib.LZS_EINVAL
    assert lib.lzs_text_figures(b"ab", 2, ffi.NULL, ids, 1, figures) == lib.LZS_EINVAL


# ---- datatrove: its own filter, with spaCy's words and with ours ----


def documents() -> Iterator[str]:
    rng = random.Random(7)
    books = [path.read_text(encoding="utf-8") for path in sorted(PROSE.glob("*.txt"))[:6]]
    for i in range(60):
        book = rng.choice(books)
        start = rng.randrange(len(book) - 6000)
        text = book[start : start + rng.randrange(200, 6000)]
        if i % 3 == 0:
            text += text[-rng.randrange(5, 400) :] * rng.randrange(2, 9)
        if i % 3 == 1:
            text = "\n\n".join(rng.choices(text.split("\n\n"), k=30)) + "\n"
        yield text
    yield from (composed(rng).replace("\ud800", "x") for _ in range(40))


def figures_of_datatrove(gopher: Any, text: str, parts: list[str]) -> dict[str, float]:
    """Its functions put together as its filter does it."""
    made = {}
    paragraphs = gopher.GopherRepetitionFilter().paragraph_exp.split(text.strip())
    for name, elements in (("para", paragraphs), ("line", gopher.GopherRepetitionFilter()._line_splitter.split(text))):
        duplicates, characters = gopher.find_duplicates(elements)
        made[f"gopher.dup_{name}_frac"] = duplicates / len(elements)
        made[f"gopher.dup_{name}_char_frac"] = characters / len(text)
    for n in (2, 3, 4):
        grams = gopher.get_n_grams(parts, n)
        made[f"gopher.top_{n}_gram"] = gopher.find_top_duplicate(grams) / len(text) if grams else 0.0
    for n in range(5, 11):
        made[f"gopher.dup_{n}_gram"] = gopher.find_all_duplicate(parts, n) / len(text)
    return made


@pytest.fixture(scope="module")
def gopher() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its many dependencies
        pytest.importorskip("spacy", exc_type=ImportError)
        return pytest.importorskip("datatrove.pipeline.filters.gopher_repetition_filter", exc_type=ImportError)


def test_gopher_fractions_are_datatroves(gopher: Any) -> None:
    for text in documents():
        ours = measured([text])
        for name, value in figures_of_datatrove(gopher, text, text.split()).items():
            assert ours[name] == value, (name, text)


def test_our_fractions_of_spacys_words_decide_as_datatroves_filter_does(gopher: Any) -> None:
    """Its filter as it is, spaCy and all: the same words to our core give the same verdict, with the same reason."""
    document = pytest.importorskip("datatrove.data").Document
    judge, reasons = gopher.GopherRepetitionFilter(), set()
    for text in documents():
        parts, at, spans = gopher.split_into_words(text, "en"), 0, []
        for part in parts:
            at = text.index(part, at)
            spans.append((len(text[:at].encode()), len(text[: at + len(part)].encode())))
            at += len(part)
        data, found, metrics = text.encode(), np.array(spans, np.uint32).reshape(-1, 2), Metrics()
        metrics.add(data, counts_of(data, found))
        verdict = judge.filter(document(text=text, id="0"))
        expected = reason(metrics.figures())
        assert verdict == (True if expected is None else (False, expected)), text
        reasons.add(expected)
    assert len(reasons) >= 6


def counts_of(data: bytes, spans: Any) -> list[int]:
    """Return the members of lzs_figures of a text with these words."""
    figures, ids = ffi.new("lzs_figures *"), intern(data, spans)
    arrays = ffi.from_buffer("lzs_span[]", spans), ffi.from_buffer("int32_t[]", ids)
    assert lib.lzs_text_figures(data, len(data), *arrays, len(spans), figures) == lib.LZS_OK
    return list(ffi.cast("uint64_t *", figures)[0 : len(MEMBERS)])


def reason(figures: dict[str, float]) -> str | None:
    """The first threshold of Rae et al.'s table A1 that is exceeded, as datatrove names it, in its order."""
    limits = {"dup_para_frac": 0.3, "dup_para_char_frac": 0.2, "dup_line_frac": 0.3, "dup_line_char_frac": 0.2}
    limits |= {"top_2_gram": 0.2, "top_3_gram": 0.18, "top_4_gram": 0.16}
    limits |= {f"dup_{n}_gram": (20 - n) / 100 for n in range(5, 11)}
    for name, limit in limits.items():
        if figures[f"gopher.{name}"] > limit:
            return f"duplicated_{name[4:-5]}_n_grams" if name.startswith("dup_") and name.endswith("gram") else name
    return None


def test_what_was_not_measured_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros would look like figures: tokens have no words, and without libdeflate there is no ratio."""
    assert audit([1, 2, 3] * 50).metrics == {}
    assert audit("").metrics["rep4"] == 0.0
    with_ratio = audit("I will not go. " * 20).metrics
    monkeypatch.setattr("lzsampler.auditing.metrics.zlib_compress", None)
    without = audit("I will not go. " * 20).metrics
    assert with_ratio.keys() - without.keys() == {"zlib_ratio", "zlib_tail_ratio"}
    assert repetition("I will not go. " * 20).zlib_ratio is None
    assert all(with_ratio[name] == value for name, value in without.items())


def test_without_deflate_no_other_library_takes_its_place() -> None:
    code = "import sys; sys.modules['deflate'] = None; from lzsampler import audit; print(sorted(audit('a b').metrics))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "rep4" in done.stdout
    assert "zlib" not in done.stdout
