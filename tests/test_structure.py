"""Penalties that know a grammar: scaled by the share of bytes that it leaves free, and what they look at."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import reference
from lzsampler import Grammar, LzsError, Params, Sampler, TokenBytes
from samplers import mask_of
from structure import Structure

END, SPECIAL = 0, 1
WORDS = [
    *(b"ab", b"abc", b"cab", b'"', b'"a', b'a"', b'":', b'": "', b',"', b'","', b"12", b"1", b"2", b"00"),
    *(b" ", b" a", b"\xc3\xa9", b"\xc3", b"\xa9", b"a", b"b", b"c", b":", b",", b"ca", b"bcabca"),
]
TOKENS = TokenBytes([b"", b"abc", *WORDS], end=[END], special=[SPECIAL])
ID = {piece: token for token, piece in enumerate(TOKENS.pieces) if token > SPECIAL}
PATTERNS = [
    '("a": ?"[abc]{1,9}"(, ?)?){1,30}',
    "(abc|ab1|ca){1,40}",
    "(abcabc|12{3,9}){5,30}",
    "((é|a)b?){3,60}",
    "[abc12 ]*",
    '("[^"]{0,5}",){2,20}',
    "(bcabca){10}",
]


def allowed(sampler: Sampler) -> list[int]:
    words = sampler.allowed()
    assert words is not None
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()


def bits(*pieces: bytes) -> bytes:
    return mask_of(len(TOKENS.pieces), [ID[piece] for piece in pieces]).tobytes()


def random_params(rng: np.random.Generator, **more: Any) -> Params:
    def some(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    lz = some(
        {"lz_rule": "paper", "lz_buffer": some(2, 4)},
        {
            "lz_min_match": some(2, 3),
            "lz_run_penalty": some(0.0, 0.7),
            "lz_run_allowance": some(0, 1),
            "lz_separators": some(b"", bits(b'"')),
            "lz_commas": some(b"", bits(b"a", b"2")),
        },
    )
    return Params(
        **lz,
        lz_penalty=some(0.0, 0.3, 2.0),
        lz_window=some(20, 60),
        repetition_penalty=some(None, 1.3, 0.5),
        frequency_penalty=some(None, 0.4),
        frequency_method=some("subtractive", "multiplicative"),
        presence_penalty=some(None, 0.7),
        penalty_window=some(0, 10),
        dry_multiplier=some(0.0, 0.8),
        dry_allowed_length=some(1, 2),
        exempt=some((), (ID[b"a"],)),
        logit_bias=some({}, {ID[b"b"]: 1.5, ID[b"2"]: -2.0}),
        history=some("generated", "all"),
        **more,
    )


# ---- edits ----


def allowing(params: Params) -> Params:
    """Under a grammar a text may copy itself for 16 times as many tokens."""
    return params if params.lz_rule == "paper" else replace(params, lz_run_allowance=16 * params.lz_run_allowance)


@pytest.mark.parametrize("structure", ["off", "scale", "free"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_edits_equal_the_twin(pattern: str, structure: Any) -> None:
    """On random settings and texts, and after rewinds and in clones."""
    rng, twin, grammar = np.random.default_rng(3), Structure(pattern, TOKENS), Grammar.regex(pattern, TOKENS)
    for _ in range(8):
        params = random_params(rng, structure=structure)
        sampler, text = Sampler(TOKENS.n_vocab, params), list[int]()
        prompt = [ID[b"a"], ID[b'"'], ID[b"ab"]]
        sampler.prime(prompt)
        sampler.set_grammar(grammar)
        for step in range(30):
            looked_at = twin.free(text) if structure == "free" else text
            whole = [*prompt, *looked_at] if params.history == "all" else looked_at

            def share(token: int, text: tuple[int, ...] = tuple(text)) -> float:
                return 1.0 if structure == "off" else twin.share(text, token)

            known = params if structure == "off" else allowing(params)
            expected = reference.edits(whole, TOKENS.n_vocab, known, share)
            tokens, repeat, bias = sampler.edits()
            ours = {t: reference.Edit(r, b) for t, r, b in zip(tokens.tolist(), repeat, bias, strict=True)}
            for token in ours.keys() | expected.keys():
                one, other = (edits.get(token, reference.Edit(1.0, 0.0)) for edits in (ours, expected))
                assert one.repeat == pytest.approx(other.repeat, rel=1e-5), (step, TOKENS.pieces[token])
                assert one.bias == pytest.approx(other.bias, rel=1e-5, abs=2e-5), (step, TOKENS.pieces[token])
            choices = [token for token in allowed(sampler) if token != END]
            if not choices:
                break
            text.append(choices[int(rng.integers(len(choices)))])
            sampler.accept(text[-1])
            if rng.random() < 0.15:
                n = int(rng.integers(len(text) + 1))
                sampler.rewind(n)
                del text[len(text) - n :]
            if rng.random() < 0.2:
                sampler = sampler.clone()


def test_partly_forced_tokens_by_hand() -> None:
    tokens = TokenBytes([b"", b'a":1', b"a", b'":1', b'"', b":1"], end=[0])
    sampler = Sampler(6, Params(history="all", presence_penalty=1.0, repetition_penalty=3.0))
    sampler.prime([1, 2, 3, 4, 5, 0])
    sampler.set_grammar(Grammar.regex('[a-z]+":1', tokens))
    sampler.accept(2)
    ids, repeat, bias = sampler.edits()
    made = dict(zip(ids.tolist(), zip(repeat.tolist(), bias.tolist(), strict=True), strict=True))
    # a is free, and so is the quotation mark behind it; the colon and the 1 are not.
    assert made[1] == (2.0, -0.5)
    assert made[2] == (3.0, -1.0)
    assert made[3] == (pytest.approx(1 + 2 / 3), pytest.approx(-1 / 3))
    assert made[4] == (3.0, -1.0)
    sampler.accept(4)
    assert 5 not in sampler.edits()[0].tolist()  # forced as a whole
    assert 0 in sampler.edits()[0].tolist()  # not allowed, which counts as free
    sampler.accept(5)
    assert 0 not in sampler.edits()[0].tolist()  # the only way on
    told = sampler.explain(np.zeros(6, np.float32), 0, k=0)
    assert told.token.free_share == 0
    assert not told.token.is_penalised
    assert str(told).endswith("occurred once (factor 3, -1.000); times 0 (the grammar forces it)")


def test_a_history_of_free_tokens_is_one_without_the_others() -> None:
    """The frame comes three times, and what is in it is new: behind the frame everything came, behind f nothing."""
    tokens = TokenBytes([b"", b'{"key":"', b"a", b"b", b"c", b"d", b"e", b"f", b'"}'], end=[0])
    grammar = Grammar.regex('(\\{"key":"[a-f]{2}"\\}){20}', tokens)
    penalised = {}
    for structure in ("scale", "free"):
        sampler = Sampler(9, Params(dry_multiplier=1.0, dry_allowed_length=1, structure=structure))
        sampler.set_grammar(grammar)
        for token in (1, 2, 3, 8, 1, 4, 5, 8, 1, 6, 7, 8, 1):
            sampler.accept(token)
        penalised[structure] = sampler.edits()[0].tolist()
    assert penalised == {"scale": [2, 4, 6], "free": []}


def test_it_cannot_change_from_or_to_free() -> None:
    sampler = Sampler(4, Params(presence_penalty=1.0))
    sampler.set_params(Params(presence_penalty=1.0, structure="off"))
    with pytest.raises(ValueError, match="structure cannot change from or to free between steps: make a new Sampler"):
        sampler.set_params(Params(presence_penalty=1.0, structure="free"))
    with pytest.raises(ValueError, match="structure must be one of off, scale, free, got 'on'"):
        Params(structure="on")  # type: ignore[arg-type]


def test_edits_that_a_limit_stops_are_an_error() -> None:
    long = bytes(np.random.default_rng(1).choice(list(b"ab"), 300).tolist())
    sampler = Sampler(4, Params(presence_penalty=1.0, history="all"))
    sampler.prime([3])
    sampler.set_grammar(
        Grammar.regex("(a|b)*a(a|b){40}", TokenBytes([b"", b"a", b"b", long], end=[0]), max_bytes=20000)
    )
    with pytest.raises(LzsError, match="needs more memory than the limit"):
        sampler.edits()
