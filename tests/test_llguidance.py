"""Grammars of llguidance: what they allow, rewinds and clones, errors in one line, and what is said without it."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Grammar, LzsError, Sampler, TokenBytes
from lzsampler.constraint.automaton import automaton_of
from lzsampler.decoding.config import GenerationConfig
from lzsampler.params import Params
from schemas import TOKENS
from walks import allowed, check_rewinds

NEEDED = "llguidance is not installed: pip install llguidance"
# Both are refused by the engine of lzsampler itself.
CODES = {
    "type": "object",
    "patternProperties": {"^[a-c]{1,3}$": {"type": "integer", "minimum": 0, "maximum": 99}},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 3,
}
NESTED = 'start: pair+\npair: "(" pair* ")" | "ab"'


def walk(grammar: Grammar, rng: random.Random) -> str | None:
    """Return a random text; None where it was not at its end in time."""
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    text = b""
    for step in range(120):
        choices = allowed(sampler)
        assert choices, text
        closing = [token for token in choices if TOKENS.pieces[token][:1] in (b")", b"}", b'"')]
        token = (
            0
            if 0 in choices and rng.random() < step / 40
            else rng.choice(closing if step > 30 and closing else choices)
        )
        sampler.accept(token)
        if token == 0:
            assert allowed(sampler) == [0]
            return text.decode()
        text += TOKENS.pieces[token]
    return None


def test_walks_meet_a_schema_that_lzsampler_refuses() -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    with pytest.raises(ValueError, match=r"patternProperties.*Grammar\.llguidance_json_schema"):
        Grammar.json_schema(CODES, TOKENS)
    grammar = Grammar.llguidance_json_schema(CODES, TOKENS)
    texts = [text for seed in range(12) if (text := walk(grammar, random.Random(seed))) is not None]
    assert len(texts) > 5
    validator = pytest.importorskip("jsonschema").Draft202012Validator(CODES)
    for text in texts:
        validator.validate(json.loads(text))
        assert grammar.match(text) == "yes"
        assert grammar.match(text[:-1]) == "beginning"
        assert "  " not in text
        assert "\n" not in text
    assert grammar.match('{"d": 1}') == "no"
    assert grammar.match("\xe4") == "no"


def test_a_grammar_of_lark_is_free_of_context() -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    grammar = Grammar.llguidance_lark(NESTED, TOKENS)
    assert [grammar.match(text) for text in ("(((ab)))", "(((ab))", "())", "")] == [
        "yes",
        "beginning",
        "no",
        "beginning",
    ]
    sampler = Sampler(TOKENS.n_vocab)
    sampler.set_grammar(grammar)
    for token in b"(ab)":
        assert token + 1 in allowed(sampler)
        sampler.accept(token + 1)
    assert 0 in allowed(sampler)


def test_rewinds_and_clones_are_where_a_new_sampler_would_be() -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    check_rewinds(Grammar.llguidance_lark(NESTED, TOKENS), 120, 5)


def test_tokens_of_several_brackets_after_a_rewind() -> None:
    """The matcher's own rollback allows "))" here, behind a single bracket that is open (llguidance 1.9.1)."""
    pytest.importorskip("llguidance", reason=NEEDED)
    pieces = [b"", *(bytes([byte]) for byte in range(256)), b"((", b"))", b"ab)", b"ab"]
    ids = {piece: token for token, piece in enumerate(pieces)}
    sampler = Sampler(len(pieces))
    sampler.set_grammar(Grammar.llguidance_lark(NESTED, TokenBytes(pieces, end=[0])))

    def take(*taken: bytes) -> None:
        for piece in taken:
            sampler.accept(ids[piece])
        allowed(sampler)

    take(b"ab", b"ab")
    take(b"((")
    sampler.accept(ids[b"ab)"])
    sampler.rewind(2)
    sampler.rewind(2)
    take(b"a")
    take(b"b", b"((", b")")
    assert ids[b")"] in allowed(sampler)
    assert ids[b"))"] not in allowed(sampler)


def test_a_token_against_the_grammar_leaves_nothing_until_it_is_taken_back() -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    sampler = Sampler(TOKENS.n_vocab)
    sampler.set_grammar(Grammar.llguidance_lark(NESTED, TOKENS))
    before = allowed(sampler)
    for token in (ord("x") + 1, 0):
        sampler.accept(token)
        assert allowed(sampler) == []
        sampler.rewind(1)
        assert allowed(sampler) == before


def test_states_that_are_forgotten_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    from lzsampler.constraint import matcher as engine

    monkeypatch.setattr(engine, "_MOST_STATES", 20)
    grammar = Grammar.llguidance_lark(NESTED, TOKENS)
    one, other = Sampler(TOKENS.n_vocab), Sampler(TOKENS.n_vocab)
    one.set_grammar(grammar)
    other.set_grammar(grammar)
    for _ in range(60):
        one.accept(ord("(") + 1)
        other.accept(ord("a") + 1)
        assert ord("b") + 1 in allowed(other)
        assert ord("(") + 1 in allowed(one)
        other.accept(ord("b") + 1)
    one.rewind(50)
    assert ord(")") + 1 in allowed(one)
    assert grammar.states < 300


def test_what_it_refuses_is_said_in_one_line() -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    cases: list[tuple[Any, str, type[Exception]]] = [
        ({"uniqueItems": True}, "schema must be one that llguidance can use: Unimplemented keys", ValueError),
        ("{", "schema must be JSON", ValueError),
        (7, "schema must be a dict, true, false or JSON text, got 7", TypeError),
        ({"enum": [{1}]}, "schema must be JSON", ValueError),
        (b"\xff", "schema must be JSON in UTF-8, but byte 0 is not", ValueError),
        (False, "schema must allow at least one value, got false", ValueError),
    ]
    for schema, message, kind in cases:
        with pytest.raises(kind, match=message) as error:
            Grammar.llguidance_json_schema(schema, TOKENS)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"text must be one that llguidance can use: .*unknown name"):
        Grammar.llguidance_lark("start: other", TOKENS)
    with pytest.raises(TypeError, match="text must be a str, got 7"):
        Grammar.llguidance_lark(7, TOKENS)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="vocabulary must be a Model"):
        Grammar.llguidance_lark(NESTED, 7)  # type: ignore[arg-type]
    grammar = Grammar.llguidance_lark(NESTED, TOKENS)
    with pytest.raises(ValueError, match="GBNF and llguidance have no automaton"):
        automaton_of(grammar)
    with pytest.raises(ValueError, match="cannot share masks"):
        grammar.use_part_masks(TOKENS.part_masks)
    with pytest.raises(TypeError, match="text must be a str or bytes"):
        grammar.match(7)  # type: ignore[arg-type]


def test_what_no_token_spells_is_not_allowed_and_does_not_match() -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    tokens = TokenBytes([b"", b"a", b"b"], end=[0])
    grammar = Grammar.llguidance_lark('start: "a" ("b" | "c")', tokens)
    assert [grammar.match(text) for text in ("ab", "a", "ac", "c")] == ["yes", "beginning", "no", "no"]
    sampler = Sampler(3)
    sampler.set_grammar(grammar)
    sampler.accept(1)
    assert allowed(sampler) == [2]
    assert Grammar.llguidance_json_schema(True, TOKENS).match("[1, {}]") == "yes"
    stuck = Sampler(3)
    stuck.set_grammar(Grammar.llguidance_lark('start: "c"', tokens))
    with pytest.raises(LzsError):
        stuck.sample(np.zeros(3, np.float32))


def test_a_model_writes_under_it_with_and_without_a_draft() -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    pytest.importorskip("llama_cpp")
    from lzsampler import Model, generate
    from lzsampler.decoding.draft import Draft
    from lzsampler.models import default_model

    with Model(default_model()) as model:
        grammar = Grammar.llguidance_json_schema(CODES, model)
        plain, fast = (
            generate(
                model,
                "Some codes: ",
                GenerationConfig(Params.recommended(model), max_tokens=40, grammar=grammar, fast_forward=fast),
            )
            for fast in (False, True)
        )
        drafted = generate(
            model,
            "Some codes: ",
            GenerationConfig(Params.recommended(model), max_tokens=40, grammar=grammar, draft=Draft(lookup=2)),
        )
    assert plain.text == fast.text == drafted.text
    assert grammar.match(plain.text) != "no"


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("llguidance", reason=NEEDED)
    pytest.importorskip("llama_cpp")
    page = (Path(__file__).parents[1] / "docs" / "grammar.md").read_text(encoding="utf-8")
    block = page.split("<!-- not run: needs llguidance", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
    exec(compile(block, "docs/grammar.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_without_the_package_one_line_says_what_to_install() -> None:
    code = """
import sys
sys.modules["llguidance"] = None
from lzsampler import Grammar, TokenBytes
try:
    Grammar.llguidance_lark("start: \\"a\\"", TokenBytes([b"", b"a"], end=[0]))
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "MissingExtra llguidance is needed for this: pip install llguidance\n"
    assert TokenBytes([b"", b"a"], end=[0]).n_vocab == 2
