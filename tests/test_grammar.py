"""Regular expressions and choices as grammars: masks against a brute-force twin, texts against Python's re, limits."""

import copy
import json
import pickle
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derivatives import Twin
from lzsampler import Grammar, LzsError, Sampler, TokenBytes
from lzsampler.models import default_model

VECTORS = Path(__file__).with_name("vectors")
CONSTRAINTS = [json.loads(line) for line in (VECTORS / "constraints.jsonl").read_text(encoding="utf-8").splitlines()]
END = 0
ALL_BYTES = [b"", *(bytes([i]) for i in range(256))]
WORDS = [
    *(b"the", b"an", b"00", b"19", b"255", b"1.", b".0", b" ", b"\xc3\xa9", b"\xe2\x82", b"\\u", b'\\"', b"summer"),
    *(b"er", b"-", b"ca", b"com", b"@", b"aaaaaaaaaaaaaaaaaaaa", b"zz", b'"', b'a"', b"\n", b"the"),
]
VOCABULARIES = {
    "bytes": TokenBytes(ALL_BYTES, end=[END]),
    "words": TokenBytes([*ALL_BYTES, *WORDS, b"<think>", b"</s>"], end=[END, 282], special=[281]),
    "few": TokenBytes([b"", b"a", b"b", b"ab", b"ba", b"c", b"bbb", b"\xc3", b"\xa9", b"1", b"23"], end=[END]),
}


@cache
def spm() -> TokenBytes:
    pytest.importorskip("llama_cpp")
    from lzsampler.llama import token_bytes

    return token_bytes(VECTORS / "ggml-vocab-llama-spm.gguf")


def allowed(sampler: Sampler) -> set[int]:
    words = sampler.allowed()
    assert words is not None
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


def sampler_of(grammar: Grammar) -> Sampler:
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    return sampler


def longest_first(tokens: TokenBytes, text: str) -> list[int]:
    """Tokens of a text, each the longest that fits."""
    ids: dict[bytes, int] = {}
    for token, piece in enumerate(tokens.pieces):
        if piece and token not in tokens.end and token not in tokens.special:
            ids.setdefault(piece, token)
    longest = max(map(len, ids))
    data, made = text.encode(), []
    while data:
        n = next(n for n in range(min(longest, len(data)), 0, -1) if data[:n] in ids)
        made.append(ids[data[:n]])
        data = data[n:]
    return made


def check_walk(grammar: Grammar, twin: Twin, ids: list[int], every: int = 1) -> None:
    """Compare the masks on the way through a text with the twin's."""
    tokens, sampler, state = grammar.vocabulary, sampler_of(grammar), twin.start
    for i, token in enumerate([*ids, None]):
        if i % every == 0 or token is None or i < 3:
            assert allowed(sampler) == twin.allowed(tokens.pieces, tokens.end, tokens.special, state), (i, ids)
        if token is not None:
            sampler.accept(token)
            after = twin.read(tokens.pieces[token], state)
            assert after is not None
            state = after


# ---- masks ----


@pytest.mark.parametrize("vocabulary", ["bytes", "words"])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: c["name"])
def test_masks_equal_the_twins_on_small_vocabularies(constraint: dict[str, Any], vocabulary: str) -> None:
    tokens = VOCABULARIES[vocabulary]
    grammar, twin = Grammar.regex(constraint["pattern"], tokens), Twin(constraint["pattern"])
    for sample in constraint["samples"][:3]:
        assert grammar.match(sample) == "yes"
        assert twin.accepts(twin.read(sample.encode()) or (None, b"x"))
        check_walk(grammar, twin, longest_first(tokens, sample)[:60])


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: c["name"])
def test_masks_equal_the_twins_on_a_real_vocabulary(constraint: dict[str, Any]) -> None:
    tokens = spm()
    assert tokens.n_vocab == 32000
    assert (tokens.pieces[3], tokens.pieces[263], tokens.end, tokens.special) == (b"\x00", b" a", (2,), (0, 1))
    grammar, twin = Grammar.regex(constraint["pattern"], tokens), Twin(constraint["pattern"])
    check_walk(grammar, twin, longest_first(tokens, constraint["samples"][0])[:40], every=6)


def test_counts_near_their_limits_have_exact_masks() -> None:
    """Counts are clamped far from the limits; near them each length of token counts."""
    runs = [b"", *(b"a" * n for n in range(1, 75)), b"b", b"ab"]
    tokens = TokenBytes(runs, end=[END])
    for low, high in ((1, 200), (0, 150), (120, 160), (100, 100), (3, 90)):
        pattern = f"a{{{low},{high}}}b?"
        grammar, twin = Grammar.regex(pattern, tokens), Twin(pattern)
        rng, steps, total = random.Random(high), [], 0
        while total < high:
            steps.append(min(rng.choice((1, 2, 5, 17, 33, 70)), high - total))
            total += steps[-1]
        check_walk(grammar, twin, steps)


def test_masks_of_user_and_grammar_apply_together() -> None:
    tokens = VOCABULARIES["few"]
    sampler = sampler_of(Grammar.regex("(ab|c)*", tokens))
    assert allowed(sampler) == {END, 1, 3, 5}
    sampler.set_mask(np.array([1 << 1 | 1 << 2], np.uint32))
    assert allowed(sampler) == {1}
    assert sampler.sample(np.zeros(tokens.n_vocab, np.float32)) == 1
    sampler.accept(1)
    assert allowed(sampler) == {2}
    sampler.set_mask(None)
    assert allowed(sampler) == {2, 4}
    sampler.set_grammar(None)
    assert sampler.allowed() is None


def test_nothing_follows_an_end_but_ends() -> None:
    tokens = VOCABULARIES["words"]
    sampler = sampler_of(Grammar.choices(["the", "the end"], tokens))
    sampler.accept(tokens.pieces.index(b"the"))
    assert {END, 282} < allowed(sampler)
    sampler.accept(END)
    assert allowed(sampler) == {END, 282}


def test_a_token_against_the_grammar_leaves_nothing_until_it_is_taken_back() -> None:
    sampler = sampler_of(Grammar.regex("ab", VOCABULARIES["few"]))
    sampler.accept(5)
    assert allowed(sampler) == set()
    with pytest.raises(LzsError, match="no token is allowed"):
        sampler.sample(np.zeros(11, np.float32))
    sampler.rewind(1)
    assert allowed(sampler) == {1, 3}


# ---- dead ends ----


def test_what_tokens_cannot_complete_is_a_dead_end() -> None:
    """No token has a d, a single é byte pair is there, and 2 comes only before 3."""
    tokens = VOCABULARIES["few"]
    for pattern, first in (
        ("ad|abc", {1, 3}),  # a may go on to bc
        ("a+d|b", {2}),
        ("a{3}d|(bbb){2,4}|c(12|123)", {2, 5, 6}),
        ("(a|é){2}", {1, 7}),
        ("1(2|3)|c", {5}),
        ("(bbb|ad){3}", {2, 6}),
    ):
        sampler = sampler_of(Grammar.regex(pattern, tokens))
        assert allowed(sampler) == first, pattern
    for pattern in ("d", "a{5}d", "[d-z]+", "2"):
        with pytest.raises(ValueError, match="no text that matches can be written with the tokens"):
            Grammar.regex(pattern, tokens)


def walk(rng: random.Random, sampler: Sampler, tokens: TokenBytes, steps: int) -> bytes | None:
    """Accept random tokens that are allowed; return the text, or None when it did not end in time."""
    text = b""
    for _ in range(steps):
        choices = sorted(allowed(sampler))
        assert choices, text
        ends = [token for token in choices if token in tokens.end]
        token = rng.choice(ends if ends and rng.random() < 0.3 else choices)
        sampler.accept(token)
        if token in tokens.end:
            return text
        text += tokens.pieces[token]
    return None


WALKED = [constraint["pattern"] for constraint in CONSTRAINTS]
WALKED += [r"(a|ab)(c|bcd?)?(1|23)*", "(é|a){1,3}b*", "a?b?c?1?", r"((a|bbb){2,5}1?){1,4}", "[^d-z]{0,12}"]
WALKED += ["(ab|ba){7}"]


@pytest.mark.parametrize("vocabulary", [*VOCABULARIES, "spm"])
def test_random_walks_never_get_stuck(vocabulary: str) -> None:
    """2,000 walks; a text that ended matches, by Python's re."""
    tokens = spm() if vocabulary == "spm" else VOCABULARIES[vocabulary]
    rng = random.Random(len(vocabulary))
    ended = 0
    for pattern in WALKED:
        try:
            grammar = Grammar.regex(pattern, tokens)
        except ValueError:
            assert vocabulary == "few"  # which has next to nothing
            continue
        sampler = sampler_of(grammar)
        for _ in range(10 if vocabulary == "spm" else 50):
            sampler.reset()
            text = walk(rng, sampler, tokens, 40)
            if text is not None:
                ended += 1
                assert re.fullmatch(pattern, text.decode("utf-8"), re.ASCII), (pattern, text)
    assert ended > 50


# ---- random patterns ----

LETTERS = "abc1é\n"
_CLASSES = st.sampled_from(
    [*"abc1é.", "[ab]", "[^a]", "[a-c1]", r"\d", r"\w", r"[^\w]", "[é-🙂]", "(?s:.)", "(?i:AB)", r"\n", r"\x61"]
)
_REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{3,5}", "*?", "+?", "{1,2}?", "{4,40}"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        inner.map(lambda part: f"(?:{part})?"),
        st.builds(lambda part, repeat: f"({part}){repeat}", inner, _REPEATS),
        st.just("(a|)"),
    )


PATTERNS = st.recursive(st.one_of(_CLASSES, st.builds("{}{}".format, _CLASSES, _REPEATS)), _larger, max_leaves=6)


@settings(deadline=None, max_examples=300)
@given(PATTERNS, st.lists(st.text(LETTERS, max_size=9), min_size=1, max_size=12))
def test_texts_match_as_in_pythons_re(pattern: str, texts: list[str]) -> None:
    grammar, twin = Grammar.regex(pattern, VOCABULARIES["bytes"]), Twin(pattern)
    for text in texts:
        found = grammar.match(text)
        assert (found == "yes") == (re.fullmatch(pattern, text, re.ASCII) is not None), (pattern, text)
        state = twin.read(text.encode())
        expected = "no" if state is None else "yes" if twin.accepts(state) else "beginning"
        assert found == expected, (pattern, text)


_PIECES = st.lists(st.text(LETTERS, min_size=1, max_size=4).map(str.encode), min_size=1, max_size=8)


@settings(deadline=None, max_examples=200)
@given(PATTERNS, _PIECES, st.booleans(), st.randoms(use_true_random=False))
def test_masks_equal_the_twins_on_random_patterns(pattern: str, pieces: list[bytes], whole: bool, rng: Any) -> None:
    tokens = TokenBytes([*(ALL_BYTES if whole else [b"", b"\xc3", b"\xa9"]), *pieces], end=[END])
    twin = Twin(pattern)
    try:
        grammar = Grammar.regex(pattern, tokens)
    except ValueError:
        assert not twin.allowed(tokens.pieces, tokens.end, (), twin.start)
        return
    sampler, state = sampler_of(grammar), twin.start
    for _ in range(8):
        found = allowed(sampler)
        assert found == twin.allowed(tokens.pieces, tokens.end, (), state), pattern
        token = rng.choice(sorted(found))
        if token == END:
            break
        sampler.accept(token)
        state = twin.read(tokens.pieces[token], state) or state


@settings(deadline=None, max_examples=150)
@given(st.text(r"ab1(){}[]^$|*+?\.,-:<>=!PdwsxuAZéi&~", max_size=14))
def test_a_pattern_is_refused_with_a_place_or_means_what_it_does_in_python(pattern: str) -> None:
    tokens = VOCABULARIES["bytes"]
    try:
        grammar = Grammar.regex(pattern, tokens)
    except ValueError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        place = re.match(r"pattern must be as in docs/grammar.md, but at character (\d+) \(", refused)
        assert place is not None
        assert int(place[1]) <= len(pattern)
        return
    pattern = pattern.replace(r"\z", r"\Z")
    try:
        compiled = re.compile(pattern, re.ASCII)
    except re.error:  # what is a name or an escape only here
        return
    for text in ("", "a", "b", "1", "ab", "aa", "é", ",", "-", "a1", "{", "}", "]", ":"):
        assert (grammar.match(text) == "yes") == (compiled.fullmatch(text) is not None), (pattern, text)


# ---- sequences ----


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 2**32))
def test_rewinds_and_clones_are_where_a_new_sampler_would_be(steps: list[int], seed: int) -> None:
    tokens = VOCABULARIES["words"]
    grammar = Grammar.regex(r"([a-z ]{1,9}\d{2,30}|\w+@\w{0,80}){0,50}", tokens)
    text: list[int] = []
    rng, sampler = random.Random(seed), sampler_of(grammar)
    for step in steps:
        if step == 0:
            n = rng.randint(0, len(text))
            sampler.rewind(n)
            text = text[: len(text) - n]
        elif step == 1:
            sampler = sampler.clone()
        elif step == 2:
            other = Sampler(tokens.n_vocab)
            other.copy_from(sampler)
            sampler = other
        else:
            for _ in range(step):
                token = rng.choice(sorted(allowed(sampler)))
                text.append(token)
                sampler.accept(token)
                if token in tokens.end:
                    break
        fresh = sampler_of(grammar)
        for token in text:
            fresh.accept(token)
        assert allowed(sampler) == allowed(fresh)


def test_a_rewind_further_than_the_states_that_are_kept() -> None:
    tokens = VOCABULARIES["words"]
    grammar = Grammar.regex(r"(\d[a-z]{3}){1,500}", tokens)
    sampler, masks, rng = sampler_of(grammar), [], random.Random(1)
    for _ in range(400):
        masks.append(allowed(sampler))
        sampler.accept(rng.choice(sorted(masks[-1] - set(tokens.end))))
    for n in (1, 30, 62, 64, 65, 100, 70):
        sampler.rewind(n)
        assert allowed(sampler) == masks[sampler.position]


def test_many_accepts_without_a_mask_between_them() -> None:
    """As in a verified draft: the state is brought up to date when it is asked for."""
    tokens = VOCABULARIES["bytes"]
    sampler = sampler_of(Grammar.regex(r"(ab){3,200}c", tokens))
    for byte in b"ab" * 150:
        sampler.accept(byte + 1)
    assert allowed(sampler) == {ord("a") + 1, ord("c") + 1}
    sampler.rewind(1)
    assert allowed(sampler) == {ord("b") + 1}


def test_a_grammar_in_the_middle_of_a_text_goes_with_a_rewind_behind_it() -> None:
    tokens = VOCABULARIES["few"]
    first, second = Grammar.regex("a+", tokens), Grammar.regex("b+", tokens)
    sampler = Sampler(tokens.n_vocab)
    sampler.accept(5)
    sampler.set_grammar(first)
    sampler.accept(1)
    assert allowed(sampler) == {END, 1}
    sampler.rewind(1)
    assert allowed(sampler) == {1}
    sampler.rewind(1)
    assert sampler.allowed() is None
    sampler.set_grammar(first)
    sampler.accept(1)
    sampler.set_grammar(second)
    assert allowed(sampler) == {2, 6}
    sampler.rewind(1)
    with pytest.raises(LzsError, match="not known after the rewind"):
        sampler.allowed()
    with pytest.raises(LzsError, match="not known after the rewind"):
        sampler.sample(np.zeros(tokens.n_vocab, np.float32))
    sampler.set_grammar(first)
    assert allowed(sampler) == {1}


def test_reset_forgets_that_a_rewind_went_back_to_another_grammar() -> None:
    tokens = VOCABULARIES["bytes"]
    sampler = sampler_of(Grammar.regex("a*", tokens))
    sampler.accept(tokens.pieces.index(b"a"))
    sampler.set_grammar(Grammar.regex("b*", tokens))
    sampler.accept(tokens.pieces.index(b"b"))
    sampler.rewind(2)
    with pytest.raises(LzsError, match="not known after the rewind"):
        sampler.allowed()
    sampler.reset()
    assert sampler.allowed() is None  # the rewind removed the second one, too


def test_reset_begins_the_grammar_anew_and_copies_have_it() -> None:
    sampler = sampler_of(Grammar.regex("ab?", VOCABULARIES["few"]))
    sampler.accept(1)
    for made in (sampler.clone(), copy.copy(sampler), copy.deepcopy(sampler)):
        assert made.grammar is sampler.grammar
        assert allowed(made) == {END, 2}
    sampler.reset()
    assert allowed(sampler) == {1, 3}
    with pytest.raises(pickle.PicklingError, match="a mask or a grammar"):
        pickle.dumps(sampler)


def test_little_memory_gives_the_same_masks() -> None:
    """States and masks are forgotten all the time; two samplers share the grammar."""
    tokens = VOCABULARIES["words"]
    pattern = r"([a-z]{1,40}\d{2,30} ?|\w+@\w{0,80}){0,50}"
    small, large = Grammar.regex(pattern, tokens, max_bytes=150_000), Grammar.regex(pattern, tokens)
    one, two, rng = sampler_of(small), sampler_of(large), random.Random(3)
    other = sampler_of(small)
    for _ in range(700):
        expected = allowed(two)
        assert allowed(one) == expected
        assert allowed(other)
        token = rng.choice(sorted(expected - set(tokens.end)))
        for sampler in (one, two):
            sampler.accept(token)
        if rng.random() < 0.1:
            other = one.clone()
    assert small.states < large.states


# ---- errors and limits ----

REFUSED = [
    ("a(b", 1, "not closed"),
    ("a)b", 1, "no group"),
    ("*a", 0, "nothing before"),
    ("a|+", 2, "nothing before"),
    ("a**", 2, "repeated"),
    ("a++", 2, "possessive"),
    ("a{2", 1, "a count is"),
    ("a{3,2}", 1, "the smaller number of a count comes first"),
    ("a{,2}", 1, "the smaller number of the count is missing"),
    ("a{1000001}", 1, "more than 1000000"),
    ("a{1,99999999999999999999}", 1, "more than 1000000"),
    ("{", 0, "begins a count"),
    ("x[z-a]", 2, "ends before it begins"),
    ("x[a", 1, "not closed"),
    ("x[", 1, "not closed"),
    ("[]a]", 1, "several meanings"),
    ("[[:alpha:]]", 1, "several meanings"),
    ("[a&&b]", 2, "several meanings"),
    ("[%--b]", 2, "several meanings"),
    (r"[\d-z]", 1, "both sides"),
    (r"[a-\d]", 1, "both sides"),
    ("[a-z-9]", 4, "several meanings"),
    (r"[^\s\S]", 0, "matches no character"),
    (r"a\b", 1, "word boundary"),
    (r"(a)\1", 3, "reference"),
    (r"\k<a>", 0, "reference"),
    (r"\p{L}", 0, "Unicode property"),
    (r"[a\b]", 2, r"\b in a class, a backspace, is not supported: write \x08"),
    (r"\a", 0, r"\a is not supported: write \x07"),
    (r"\e", 0, r"\e is not supported: write \x1B"),
    (r"\cA", 0, r"\c is not supported: write out what it stands for"),
    (r"\q", 0, "not an escape"),
    (r"\0", 0, r"octal escapes are not supported: write \x00"),
    (r"a\012", 1, r"octal escapes are not supported: write \x0A"),
    (r"\é", 0, "beyond ASCII"),
    ("a\\", 1, "end escapes nothing"),
    (r"\x4", 0, "hexadecimal"),
    (r"\u{}", 0, "hexadecimal"),
    (r"\ud83d", 0, "not a character"),
    (r"\U00110000", 0, "not a character"),
    ("a(?=b)", 1, "look-around"),
    ("(?<!b)", 0, "look-around"),
    ("(?>a)", 0, "atomic"),
    ("(?#a)", 0, "comments"),
    ("(?P=a)", 0, "reference"),
    ("(?x:a)", 0, "only i and s"),
    ("a(?i)", 1, "must begin"),
    ("(?i", 0, "not closed"),
    ("(?P<1>a)", 0, "name"),
    ("a^", 1, "anchor"),
    ("$a", 0, "anchor"),
    ("(^a)", 1, "anchor"),
    ("^*", 1, "nothing before"),
    ("(?i)é", 4, "ASCII letters only"),
    ("éé🙂*+", 4, "possessive"),
    ("(" * 251, 250, "nested more than 250 deep"),
    ("((((a{1000}){1000}){1000}){1000}){1000}b{3}", -1, "40 bits"),
]


@pytest.mark.parametrize(("pattern", "offset", "reason"), REFUSED, ids=[repr(row[0][:12]) for row in REFUSED])
def test_what_is_not_supported_is_refused_with_its_place(pattern: str, offset: int, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        Grammar.regex(pattern, VOCABULARIES["bytes"])
    place = f"as in docs/grammar.md, but at character {offset} (" if offset >= 0 else "one that can be used: "
    assert str(caught.value).startswith(f"pattern must be {place}")
    assert "\n" not in str(caught.value)


def test_what_is_said_after_a_token_that_is_not_allowed() -> None:
    sampler = sampler_of(Grammar.regex("ab", VOCABULARIES["bytes"]))
    sampler.accept(next(i for i, piece in enumerate(VOCABULARIES["bytes"].pieces) if piece == b"b"))
    with pytest.raises(LzsError, match="no token is allowed: a token was accepted that the grammar does not allow"):
        sampler.sample(np.zeros(sampler.n_vocab, np.float32))


@pytest.mark.parametrize("texts", [None, 5, "ab", b"ab", ["a", 5]])
def test_choices_that_are_no_list_of_strings(texts: Any) -> None:
    with pytest.raises(TypeError, match="texts must be a list of strings, got "):
        Grammar.choices(texts, VOCABULARIES["bytes"])


def test_the_place_in_bytes_is_a_byte() -> None:
    with pytest.raises(ValueError, match="but at byte 3 "):
        Grammar.regex("é*+".encode(), VOCABULARIES["bytes"])


def test_anchors_flags_and_names_that_change_nothing() -> None:
    for pattern in ("^ab$", "^ab$|^c$", r"\Aab\Z", r"\Aab\z", "(?P<x>a)b", "(?<x>a)b", "(?:a)(b)", "(?s)ab", "a{1}b"):
        assert Grammar.regex(pattern, VOCABULARIES["bytes"]).match("ab") == "yes", pattern
    folded = Grammar.regex("(?i)a[b-d]é?".replace("é?", ""), VOCABULARIES["bytes"])
    assert [folded.match(text) for text in ("AB", "aD", "ae")] == ["yes", "yes", "no"]
    assert Grammar.regex("", VOCABULARIES["bytes"]).match("") == "yes"


def test_hostile_patterns_are_refused_or_cheap() -> None:
    tokens = VOCABULARIES["words"]
    sampler = sampler_of(Grammar.regex("(a|b)*a(a|b){30}", tokens))
    rng = random.Random(5)
    for _ in range(300):
        sampler.accept(rng.choice(sorted(allowed(sampler) - set(tokens.end))))
    assert sampler.grammar is not None
    assert sampler.grammar.states < 20_000
    for pattern in (
        "a{0,65536}",
        "(a|aa){0,65536}",
        "(a?){0,65536}",
        "(.{0,1000}){0,1000}",
        "((a*)*)*",
        "(a{0,90}){0,9}b",
    ):
        grammar = Grammar.regex(pattern, tokens)
        assert grammar.match("a" * 500) != "no"
        assert grammar.memory < 8 << 20
    assert Grammar.regex("a{0,65536}", tokens).match("a" * 65536) == "yes"
    assert Grammar.regex("a{0,65536}", tokens).match("a" * 65537) == "no"
    with pytest.raises(ValueError, match="nested more than 250 deep"):
        Grammar.regex("(" * 60_000 + ")" * 60_000, tokens)
    with pytest.raises(ValueError, match="not valid UTF-8"):
        Grammar.regex(b"ab\xff", tokens)
    with pytest.raises(ValueError, match="not valid UTF-8"):
        Grammar.regex(b"ab\xc3", tokens)
    with pytest.raises(ValueError, match="lone surrogate at 1"):
        Grammar.regex("a\ud800", tokens)
    with pytest.raises(ValueError, match="5000000 bytes, and the most is 4194304"):
        Grammar.regex("a" * 5_000_000, tokens)
    many = [f"choice number {i:06d} of many" for i in range(40_000)]  # 1 MB
    choices = Grammar.choices(many, tokens)
    assert [choices.match(text) for text in (many[0], many[-1], "choice", "x")] == ["yes", "yes", "beginning", "no"]
    assert Grammar.regex("|".join(many), tokens).match(many[17]) == "yes"


def test_choices() -> None:
    tokens = VOCABULARIES["words"]
    grammar = Grammar.choices(["a", "a.b", "", "é*", "a"], tokens)
    assert [grammar.match(text) for text in ("a", "a.b", "", "é*", "axb", "a.")] == ["yes"] * 4 + ["no", "beginning"]
    with pytest.raises(ValueError, match="at least one choice"):
        Grammar.choices([], tokens)
    with pytest.raises(TypeError, match="list of strings"):
        Grammar.choices("ab", tokens)
    with pytest.raises(ValueError, match="the most is 4194304"):
        Grammar.choices(["a" * 5_000_000], tokens)


def test_wrong_arguments() -> None:
    tokens = VOCABULARIES["few"]
    with pytest.raises(TypeError, match="vocabulary must be a Model, TokenBytes, Spelling or the `lz` of an LZLlama"):
        Grammar.regex("a", "model.gguf")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pattern must be a str or bytes"):
        Grammar.regex(3, tokens)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_bytes must be"):
        Grammar.regex("a", tokens, max_bytes=-1)
    with pytest.raises(ValueError, match="must be for 12 tokens, but its vocabulary has 11"):
        Sampler(12).set_grammar(Grammar.regex("a", tokens))
    with pytest.raises(TypeError, match="grammar must be a Grammar or None"):
        Sampler(11).set_grammar("a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="end must name at least one token"):
        TokenBytes([b"a"], end=[])
    with pytest.raises(ValueError, match=r"end\[0\] = 3"):
        TokenBytes([b"a"], end=[3])
    with pytest.raises(TypeError, match=r"pieces\[1\] is 'b'"):
        TokenBytes([b"a", "b"], end=[0])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="at least one token"):
        TokenBytes([], end=[0])
    with pytest.raises(ValueError, match="at most 65535 bytes, got 70000"):
        TokenBytes([b"", b"a" * 70_000], end=[0])
    with pytest.raises(ValueError, match="more memory than the limit"):
        Grammar.regex("a", tokens, max_bytes=10)


def test_the_embedded_models_vocabulary() -> None:
    pytest.importorskip("llama_cpp")
    from lzsampler.llama import gguf, token_bytes

    tokens = token_bytes(default_model())
    header = gguf.read(default_model())
    assert tokens.n_vocab == len(header.vocabulary)
    assert header.special_tokens["eos"][0] in tokens.end
    assert tokens.pieces[tokens.pieces.index(b" l")] == b" l"
    grammar = Grammar.regex(r"(yes|no)[.!]", tokens)
    sampler = sampler_of(grammar)
    assert {tokens.pieces[token] for token in allowed(sampler)} <= {b"y", b"n", b"ye", b"yes", b"no"}
