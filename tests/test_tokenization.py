"""`tokenization=`: proper and forced tokens against the article's algorithms, and against tokenizers themselves."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import article
from lzsampler import Grammar, LzsError, Sampler, TokenBytes
from lzsampler.constraint.tokens import Spelling
from lzsampler.models import default_model

VECTORS = Path(__file__).with_name("vectors")
SPM = VECTORS / "ggml-vocab-llama-spm.gguf"
END = 0
LETTERS = "abc"
MERGES = [
    ("a", "b"),
    ("a", "a"),
    ("a", "c"),
    ("b", "c"),
    ("ab", "c"),
    ("aa", "aa"),
    ("c", "c"),
    ("bc", "a"),
    ("cc", "ab"),
]


@cache
def toy(merges: tuple[tuple[str, str], ...]) -> Spelling:
    """Return a vocabulary of the letters and of what the merges make."""
    names = list(dict.fromkeys([*LETTERS, *(left + right for left, right in merges)]))
    ids = {name: number for number, name in enumerate(names, 1)}
    tokens = TokenBytes([b"", *(name.encode() for name in names)], end=[END])
    return Spelling(tokens, merges=[(ids[left], ids[right]) for left, right in merges])


def allowed(sampler: Sampler) -> set[int]:
    words = sampler.allowed()
    assert words is not None
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


def sampler_of(grammar: Grammar) -> Sampler:
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    return sampler


def texts_of(grammar: Grammar, longest: int) -> Iterator[tuple[str, ...]]:
    """Yield the sequences of at most ``longest`` tokens that a grammar allows, by enumeration; no dead end is met."""
    pieces = grammar.vocabulary.pieces
    todo: list[tuple[Sampler, tuple[str, ...]]] = [(sampler_of(grammar), ())]
    while todo:
        sampler, made = todo.pop()
        choices = allowed(sampler)
        assert choices, made
        if END in choices:
            yield made
        for token in choices - {END} if len(made) < longest else ():
            after = sampler.clone()
            after.accept(token)
            todo.append((after, (*made, pieces[token].decode())))


def names(spelling: Spelling) -> list[str]:
    return [piece.decode() for piece in spelling.token_bytes.pieces if piece]


# ---- the article's algorithms ----


@pytest.mark.parametrize(
    "pattern", ["(a|b){6}", "a*b*", "[abc]{0,5}", "a{7}|b?c{3}", "(abc)*a?", "aab(ca|c)*", "(a|bc)*cc"]
)
def test_engine_and_both_algorithms_of_the_article_agree(pattern: str) -> None:
    merges = tuple(MERGES)
    spelling = toy(merges)
    characters = article.of_characters(pattern, LETTERS)
    outlines = article.of_tokens(characters, names(spelling))
    direct = article.direct_merge(characters, merges)
    cartesian = article.cartesian_merge(outlines, article.of_tokenizer(LETTERS, merges))
    grammar = Grammar.regex(pattern, spelling, tokenization="proper")
    longest = 6
    expected = {tokens for tokens in outlines.sequences(longest) if article.tokenize("".join(tokens), merges) == tokens}
    assert expected
    assert set(direct.sequences(longest)) == expected
    assert set(cartesian.sequences(longest)) == expected
    assert set(texts_of(grammar, longest)) == expected
    assert set(texts_of(Grammar.regex(pattern, spelling), 4)) == set(outlines.sequences(4))


@st.composite
def merge_lists(draw: st.DrawFn) -> tuple[tuple[str, str], ...]:
    """Return merges of which none makes what one before it merges: the article's algorithm takes each in turn, once."""
    tokens = list(LETTERS)
    merges: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, 9))):
        pair = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        merged = {token for before in merges for token in before}
        if pair not in merges and len(pair[0] + pair[1]) <= 6 and pair[0] + pair[1] not in merged:
            merges.append(pair)
            if pair[0] + pair[1] not in tokens:
                tokens.append(pair[0] + pair[1])
    return tuple(merges)


@settings(max_examples=60)
@given(merge_lists(), st.sampled_from(["[abc]{0,4}", "a{5}|(ab){3}", "(aa|abc|cab)*", "(a|b)*c{2,3}"]))
def test_engine_agrees_with_the_tokenizer_for_any_merges(merges: tuple[tuple[str, str], ...], pattern: str) -> None:
    spelling = toy(merges)
    outlines = article.of_tokens(article.of_characters(pattern, LETTERS), names(spelling))
    expected = {tokens for tokens in outlines.sequences(5) if article.tokenize("".join(tokens), merges) == tokens}
    assert set(texts_of(Grammar.regex(pattern, spelling, tokenization="proper"), 5)) == expected


@settings(max_examples=60)
@given(merge_lists())
def test_pairs_are_those_of_the_brute_force_algorithm(merges: tuple[tuple[str, str], ...]) -> None:
    """Algorithm 4: two tokens may stand side by side if the tokenizer writes their text as the two."""
    spelling, tokenizer = toy(merges), article.of_tokenizer(LETTERS, merges)
    ids = {piece.decode(): token for token, piece in enumerate(spelling.token_bytes.pieces) if piece}
    written = [name for name in ids if article.tokenize(name, merges) == (name,)]
    sampler = sampler_of(Grammar.proper(spelling))
    for first in written:
        sampler.reset()
        sampler.accept(ids[first])
        mask = allowed(sampler)
        for second in written:
            expected = article.tokenize(first + second, merges) == (first, second)
            assert (spelling.wrong([ids[first], ids[second]]) is None) == expected
            assert (ids[second] in mask) == expected
            assert tokenizer.allows(first, second) == expected


def test_what_may_follow_a_token_as_in_the_documents() -> None:
    tokenizer = article.of_tokenizer("abc", [("a", "b"), ("a", "a"), ("a", "c")])
    forbidden = {token: set(tokenizer.forbidden[state]) for token, state in tokenizer.behind.items()}
    nothing: set[str] = set()
    assert forbidden == {
        **dict.fromkeys(("b", "c", "ab", "ac"), nothing), "a": {"a", "b", "c", "aa", "ac"}, "aa": {"b"}
    }  # fmt: skip


def spm_merges(alphabet: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the tokens of llama-spm over an alphabet, and its merges as a list, best scores first."""
    from lzsampler.llama import gguf

    metadata = gguf.read(SPM).metadata
    scores, texts = metadata["tokenizer.ggml.scores"], metadata["tokenizer.ggml.tokens"]
    known = {text: -score for text, score in zip(texts, scores, strict=True) if set(text) <= set(alphabet)}
    splits = [(left, text[len(left) :]) for text in sorted(known, key=lambda t: known[t]) for left in _beginnings(text)]
    return list(known), [(left, right) for left, right in splits if left in known and right in known]


def _beginnings(text: str) -> list[str]:
    return [text[:n] for n in range(1, len(text))]


def test_the_two_strings_of_the_article() -> None:
    """Outlines' automaton of boolean: true and boolean: false, and what is left of it.

    The article counts 48 transitions with the tokens of Mistral 7B; those of Llama 2 make 49, because they have "lea"
    and "fal" and lack "▁fals".
    """
    pattern, alphabet = "boolean:▁(true|false)", "boolean:▁trufs"
    tokens, merges = spm_merges(alphabet)
    characters = article.of_characters(pattern, alphabet)
    outlines = article.of_tokens(characters, tokens)
    assert outlines.size == (17, 49)
    mistral = {*tokens} - {"lea", "fal"} | {"▁fals"}
    assert article.of_tokens(characters, sorted(mistral)).size == (17, 48)
    assert article.direct_merge(characters, merges).size == (4, 4)
    direct = article.direct_merge(article.of_texts(["boolean:▁true", "boolean:▁false"]), merges)
    assert direct.size == (5, 4)  # two ends, as in the article
    assert set(direct.sequences(9)) == {("boolean", ":", "▁true"), ("boolean", ":", "▁false")}
    spelling = real(SPM)[0]
    made = set(texts_of_ids(Grammar.regex(pattern.replace("▁", " "), spelling, tokenization="proper")))
    assert made == {(b"boolean", b":", b" true"), (b"boolean", b":", b" false")}


def texts_of_ids(grammar: Grammar) -> Iterator[tuple[bytes, ...]]:
    todo: list[tuple[Sampler, tuple[bytes, ...]]] = [(sampler_of(grammar), ())]
    while todo:
        sampler, made = todo.pop()
        choices = allowed(sampler)
        if choices & set(grammar.vocabulary.end):
            yield made
        for token in choices - set(grammar.vocabulary.end):
            after = sampler.clone()
            after.accept(token)
            todo.append((after, (*made, grammar.vocabulary.pieces[token])))


# ---- tokenizers ----


@cache
def real(path: Path) -> tuple[Spelling, Any]:
    pytest.importorskip("llama_cpp")
    from lzsampler.llama.vocabulary import Vocabulary

    vocabulary = Vocabulary(path)
    return vocabulary.token_bytes.spelling, vocabulary


def written(path: Path, tokens: Sequence[int]) -> list[int]:
    """Return what the tokenizer writes for the text of some tokens."""
    spelling, vocabulary = real(path)
    before = "\n" if spelling.words == "none" else ""  # SentencePiece puts a space before a text
    text = b"".join(spelling.token_bytes.pieces[token] for token in tokens).decode()
    made: list[int] = vocabulary.tokenize(before + text)[0].tolist()
    return made[len(vocabulary.tokenize(before)[0]) :]


PATTERNS = [
    r'\{"name": "[^"\\]{1,20}", "age": \d{1,3}, "member": (true|false)\}',
    r"[A-Z][a-z']{2,12}( [a-z',.]{1,9}){2,6}[.!?]",
    r"\n( {2,8}[a-z]{1,8}\(\d{0,3}\);\n){1,4}",
    r"[ \n\t]{3,9}x",
    r"\d{1,9}",
    r"[é-ヿ🙂]{1,6}",
    r"(don't|we're|I'll|it's'|rock 'n' roll|'re){1,3}",
]


def tale() -> Path:
    return default_model()


@pytest.mark.parametrize("path", [SPM, tale()], ids=["llama-spm", "tale"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_texts_are_written_as_the_tokenizer_writes_them(path: Path, pattern: str) -> None:
    spelling, _ = real(path)
    rng = random.Random(3)
    sampler = sampler_of(Grammar.regex(pattern, spelling, tokenization="proper"))
    for _ in range(12):
        sampler.reset()
        tokens: list[int] = []
        while True:
            choices = sorted(allowed(sampler))
            assert choices, tokens
            token = rng.choice(choices)
            if token in spelling.token_bytes.end:
                break
            sampler.accept(token)
            tokens.append(token)
        assert written(path, tokens) == tokens


@pytest.mark.parametrize("path", [SPM, tale()], ids=["llama-spm", "tale"])
@pytest.mark.parametrize("file", ["docs/penalties.md", "c/constraint/proper.c", "tests/vectors/schemas.jsonl"])
def test_what_the_tokenizer_writes_is_never_refused(path: Path, file: str) -> None:
    spelling, vocabulary = real(path)
    text = Path(__file__).parents[1].joinpath(file).read_text(encoding="utf-8")[:8000]
    tokens = vocabulary.tokenize(text)[0]
    assert spelling.wrong(tokens) is None
    sampler = sampler_of(Grammar.proper(spelling))
    for token in tokens.tolist()[:400]:
        assert token in allowed(sampler)
        sampler.accept(token)


# ---- forced ----


def test_forced_spells_only_what_is_forced() -> None:
    spelling = toy(tuple(MERGES))
    ids = {piece: token for token, piece in enumerate(spelling.token_bytes.pieces)}
    sampler = sampler_of(Grammar.regex("(a|b)abcc", spelling, tokenization="forced"))
    assert allowed(sampler) == {ids[b"a"], ids[b"b"], ids[b"aa"]}  # nothing is forced yet
    sampler.accept(ids[b"b"])
    assert allowed(sampler) == {ids[b"abc"]}  # the tokenizer writes b, abc, c
    assert article.tokenize("babcc", MERGES) == ("b", "abc", "c")
    sampler.rewind(1)
    sampler.accept(ids[b"a"])  # it would write aa, b, cc: behind a alone it goes on as it would by itself
    assert allowed(sampler) == {ids[b"abc"]}
    sampler.accept(ids[b"abc"])
    assert allowed(sampler) == {ids[b"c"]}


@pytest.mark.parametrize("path", [SPM, tale()], ids=["llama-spm", "tale"])
def test_forced_keys_of_json_are_written_by_the_tokenizer(path: Path) -> None:
    spelling, _ = real(path)
    pattern = r'\{"first name": "[a-z]{1,9}", "second name": "[a-z]{1,9}"\}'
    plain = sampler_of(Grammar.regex(pattern, spelling))
    forced = sampler_of(Grammar.regex(pattern, spelling, tokenization="forced"))
    rng = random.Random(5)
    tokens: list[int] = []
    n_only = n_fewer = 0
    while not set(spelling.token_bytes.end) & allowed(forced):
        choices = allowed(forced)
        assert choices
        assert choices <= allowed(plain)
        n_only += len(choices) == 1
        n_fewer += len(choices) < len(allowed(plain))
        token = rng.choice(sorted(choices))
        tokens.append(token)
        forced.accept(token)
        plain.accept(token)
    text = b"".join(spelling.token_bytes.pieces[token] for token in tokens).decode()
    assert Grammar.regex(pattern, spelling).match(text) == "yes"
    assert (n_only >= 5, n_fewer >= 7) == (True, True), (n_only, n_fewer, text)


# ---- states ----


@pytest.mark.parametrize("tokenization", ["forced", "proper"])
def test_rewinds_clones_and_little_memory_change_nothing(tokenization: Any) -> None:
    spelling, _ = real(tale())
    rng = random.Random(9)
    pattern = r'(\{"a": [1-9]\d{0,9}, "text": "[^"\\]{0,60}"\}\n){1,9}'
    sampler = sampler_of(Grammar.regex(pattern, spelling, tokenization=tokenization))
    small = sampler_of(Grammar.regex(pattern, spelling, tokenization=tokenization, max_bytes=150_000))
    masks = [allowed(sampler)]
    for step in range(60):
        token = rng.choice(sorted(allowed(sampler) - set(spelling.token_bytes.end)) or [0])
        if token == 0:
            break
        for one in (sampler, small):
            one.accept(token)
        masks.append(allowed(sampler))
        assert masks[-1] == allowed(small)
        if step % 10 == 9:
            clone = sampler.clone()
            clone.rewind(step)
            for token in clone_tokens(sampler)[1:]:
                assert token in allowed(clone)
                clone.accept(token)
            assert allowed(clone) == masks[-1]


def clone_tokens(sampler: Sampler) -> list[int]:
    from lzsampler._ffi import ffi, lib

    n = ffi.new("size_t *")
    tokens = lib.lzs_tokens(sampler.handle, n)
    return [int(token) for token in ffi.unpack(tokens, n[0])]


def test_a_token_that_is_not_proper_leaves_nothing_allowed() -> None:
    spelling = toy(tuple(MERGES))
    ids = {piece: token for token, piece in enumerate(spelling.token_bytes.pieces)}
    sampler = sampler_of(Grammar.regex("(ab)*", spelling, tokenization="proper"))
    sampler.accept(ids[b"a"])
    sampler.accept(ids[b"b"])
    assert allowed(sampler) == set()
    with pytest.raises(LzsError):
        sampler.sample(np.zeros(sampler.n_vocab, np.float32))
    sampler.rewind(2)
    assert allowed(sampler) == {END, ids[b"ab"]}


def test_without_a_grammar_control_tokens_stay_allowed_and_begin_anew() -> None:
    tokens = TokenBytes([b"", b"a", b"b", b"ab", b"<x>"], end=[END], special=[4])
    spelling = Spelling(tokens, merges=[(1, 2)])
    grammar = Grammar.proper(spelling)
    sampler = sampler_of(grammar)
    assert allowed(sampler) == {0, 1, 2, 3, 4}
    sampler.accept(1)
    assert allowed(sampler) == {0, 1, 3, 4}  # not b behind a
    sampler.accept(4)
    assert allowed(sampler) == {0, 1, 2, 3, 4}
    sampler.accept(1)
    sampler.accept(2)  # against it: then it is not known what is before, and nothing is refused for it
    assert allowed(sampler) == {0, 1, 2, 3, 4}
    assert grammar.match(b"\xff anything") == "yes"
    assert grammar.source == {"tokenization": "proper"}


# ---- what is refused ----


def test_arguments_are_checked() -> None:
    tokens = TokenBytes([b"", b"a", b"b", b"ab"], end=[END])
    with pytest.raises(ValueError, match="does not know how these tokens spell texts"):
        Grammar.regex("a*", tokens, tokenization="proper")
    with pytest.raises(ValueError, match="tokenization must be one of any, forced, proper, got 'exact'"):
        Grammar.regex("a*", tokens, tokenization="exact")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"tokenization must be one of any, forced, proper, got \['any'\]"):
        Grammar.regex("a*", tokens, tokenization=["any"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="vocabulary must be a Model, TokenBytes, Spelling or the `lz` of an LZLlama"):
        Grammar.proper("model")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give either merges or scores"):
        Spelling(tokens)
    with pytest.raises(ValueError, match="merges must be pairs of ids below 4"):
        Spelling(tokens, merges=[(1, 4)])
    with pytest.raises(ValueError, match=r"merges must be pairs of ids, int\[n, 2\], got int64\[3\]"):
        Spelling(tokens, merges=[1, 2, 3])
    with pytest.raises(ValueError, match="scores must be 4 finite numbers"):
        Spelling(tokens, scores=[1.0])
    with pytest.raises(ValueError, match="words must be one of none, gpt2"):
        Spelling(tokens, merges=[], words="bert")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="words and whole_words need merges"):
        Spelling(tokens, scores=[0.0] * 4, words="gpt2")
    with pytest.raises(ValueError, match="whole_words is about the words of a pre-tokenizer: give words, too"):
        Spelling(tokens, merges=[], whole_words=True)
    with pytest.raises(ValueError, match="byte_tokens must be tokens of one byte, but 3 is b'ab'"):
        Spelling(tokens, scores=[0.0] * 4, byte_tokens=[3])
    with pytest.raises(ValueError, match="4 is not a token of a vocabulary of 4"):
        Spelling(tokens, merges=[]).wrong([4])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("pre", "tekken", "its pre-tokenizer 'tekken' is not one of"),
        ("model", "bert", "tokenizers of the kind 'bert' are not known"),
        ("merges", None, "the file has no merges"),
        ("merges", ["0 1"], "in a sample it writes"),
        ("pre", "smollm", "in a sample it writes"),  # not what this tokenizer does
    ],
)
def test_a_tokenizer_that_does_something_else_is_refused_with_the_reason(
    key: str, value: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llama_cpp")
    from lzsampler.llama import gguf, token_bytes

    tokens = token_bytes(tale())
    header = gguf.read(tale())
    changed = replace(header, metadata={**header.metadata, f"tokenizer.ggml.{key}": value})
    monkeypatch.setattr(gguf, "read", lambda _: changed)
    with pytest.raises(LzsError, match=message) as error:
        Grammar.regex("a*", tokens, tokenization="proper")
    assert "\n" not in str(error.value)
    assert Grammar.regex("a*", tokens).match("aa") == "yes"
