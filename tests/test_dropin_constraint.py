"""Our grammars inside applications of llama-cpp-python: `attach(grammar=...)`, calls, and `response_format`."""

import copy
import json
import pickle
import re
from typing import Any

import pytest

from lzsampler import Grammar, LzsError, Params, TokenBytes
from lzsampler.models import default_draft, default_model

llama_cpp = pytest.importorskip("llama_cpp")

from applications import CHAT as MESSAGES  # noqa: E402
from applications import LZ, PROMPT, streamed, text_of  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.draft import Draft  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.dropin import LZLlama, attach  # noqa: E402
from lzsampler.llama import check_chain_sampler, penalties_sampler, token_bytes  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

CHAT: Any = MESSAGES
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
}
OPENAI = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
ANYSCALE = {"type": "json_object", "schema": SCHEMA}


def gbnf(source: str) -> Any:
    return llama_cpp.LlamaGrammar.from_string(source, verbose=False)


def is_person(text: str) -> bool:
    value = json.loads(text)
    return list(value) == ["name", "age"] and len(value["name"]) <= 12 and 0 <= value["age"] <= 120


# ---- texts ----


def test_texts_of_every_method_match(llm: Any) -> None:
    grammar = Grammar.regex(r"(yes|no), [a-z ]{3,20}\.", token_bytes(llm))
    with attach(llm, grammar=grammar) as handle:
        assert handle.grammar is grammar
        for settings in (
            {"temperature": 0.0},
            {"temperature": 1.5, "seed": 4},
            {"temperature": 1.0, "mirostat_mode": 2},
        ):
            made = llm(PROMPT, max_tokens=60, **settings)
            assert grammar.match(text_of(made)) == "yes"
            assert made["choices"][0]["finish_reason"] == "stop"
            assert streamed(llm(PROMPT, max_tokens=60, stream=True, **settings)) is not None
        assert grammar.match(text_of(llm.create_chat_completion(CHAT, max_tokens=60))) == "yes"
        tokens = []
        for token in llm.generate(llm.tokenize(PROMPT.encode()), temp=0.0):
            if llama_cpp.llama_vocab_is_eog(llm._model.vocab, token):
                break
            tokens.append(token)
        assert grammar.match(b"".join(grammar.vocabulary.pieces[token] for token in tokens)) == "yes"
        handle.grammar = None
        assert grammar.match(text_of(llm(PROMPT, max_tokens=20, temperature=0.0))) == "no"
    assert grammar.match(text_of(llm(PROMPT, max_tokens=20, temperature=0.0))) == "no"  # it is as it was before


def test_greedy_texts_are_those_of_generate(llm: Any) -> None:
    opened = Model(default_model(), n_ctx=llm.n_ctx(), n_threads=1, flash_attn=False)  # as in the Llama
    with opened as model, attach(llm, LZ) as handle:
        for pattern in (r"[a-z ]{20,40}\.", r"\d{4}-\d\d", '"[^"]{0,20}"'):
            grammar = Grammar.regex(pattern, handle)
            made = text_of(llm(PROMPT, max_tokens=60, temperature=0.0, grammar=grammar))
            params = Params(temperature=0.0, lz_penalty=0.15)
            assert (
                made
                == generate(
                    model, PROMPT, GenerationConfig(params, max_tokens=60, grammar=grammar, fast_forward=False)
                ).text
            )


def test_a_call_has_a_grammar_of_its_own(llm: Any) -> None:
    """Ours or a LlamaGrammar, in the place of that of the attachment; None leaves that one."""
    ours, other = (Grammar.choices([text], token_bytes(llm)) for text in ("red", "blue"))
    with attach(llm, grammar=ours):
        assert text_of(llm(PROMPT, grammar=other)) == "blue"
        assert text_of(llm(PROMPT, grammar=gbnf('root ::= "green"'))) == "green"
        assert text_of(llm(PROMPT, grammar=gbnf('root ::= "green"'), fast_grammar=True)) == "green"
        assert text_of(llm(PROMPT, grammar=None)) == "red"
        assert text_of(llm.create_chat_completion(CHAT, grammar=other)) == "blue"
        assert text_of(llm(PROMPT)) == "red"
        made = [token for token, _ in zip(llm.generate([1, 5], grammar=other), range(2), strict=False)]
        assert b"blue".startswith(other.vocabulary.pieces[made[0]])


@pytest.mark.parametrize("action", ["stop", "rewind", "boost"])
def test_what_is_done_about_loops_stays_within_the_grammar(llm: Any, action: str) -> None:
    grammar = Grammar.regex("((ab ){3}|(cd ){2}|ef ){1,60}", token_bytes(llm))
    with attach(llm, Params(), grammar=grammar, on_loop=action) as handle:
        made = llm(PROMPT, max_tokens=120, temperature=0.0, repeat_penalty=1.0)
        assert grammar.match(text_of(made)) != "no"
        assert handle.stats.actions


def test_a_text_that_can_only_loop_ends(llm: Any) -> None:
    """A rewind forbids the only token that the grammar allows."""
    grammar = Grammar.regex("(ab ){100}", token_bytes(llm))
    with attach(llm, Params(), grammar=grammar, on_loop="rewind"):
        made = llm(PROMPT, max_tokens=250, temperature=0.0, repeat_penalty=1.0)
        assert grammar.match(text_of(made)) == "beginning"


# ---- response_format ----


@pytest.mark.parametrize("asked", [OPENAI, ANYSCALE], ids=["openai", "anyscale"])
def test_a_response_has_the_format(llm: Any, asked: dict[str, Any]) -> None:
    with attach(llm):
        for settings in ({"temperature": 0.0}, {"temperature": 1.3, "seed": 3}):
            made = llm.create_chat_completion(CHAT, response_format=asked, max_tokens=80, **settings)
            assert is_person(text_of(made)), text_of(made)
        chunks = llm.create_chat_completion(CHAT, response_format=asked, max_tokens=80, temperature=0.0, stream=True)
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        assert is_person(text)
        assert llm.lz.grammar is None
    own = LZLlama(str(default_model()), n_ctx=512, verbose=False, n_threads=1, flash_attn=False)
    try:
        assert is_person(text_of(own.create_chat_completion(CHAT, response_format=asked, max_tokens=80)))
        grammars = list(own.lz._schemas._known.values())
        assert len(grammars) == 1
        own.create_chat_completion(CHAT, response_format=asked, max_tokens=80)
        assert list(own.lz._schemas._known.values()) == grammars  # with the masks that it has
    finally:
        own.close()


def test_other_formats_are_llama_cpp_pythons(llm: Any) -> None:
    with attach(llm, grammar=Grammar.choices(["red"], token_bytes(llm))):
        made = llm.create_chat_completion(CHAT, response_format={"type": "json_object"}, max_tokens=30, temperature=0.0)
        assert text_of(made).lstrip()[:1] in ("{", "")
        assert text_of(llm.create_chat_completion(CHAT, response_format={"type": "text"})) == "red"
        tools = [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]
        choice = {"type": "function", "function": {"name": "add"}}
        made = llm.create_chat_completion(CHAT, tools=tools, tool_choice=choice, response_format=OPENAI, max_tokens=80)
        assert made["choices"][0]["message"]["tool_calls"]


REFUSED = [
    (
        {"type": "json_object", "schema": {"not": {}}},
        "response_format: schema must be as in docs/grammar.md, but at #/not",
    ),
    (
        {"type": "json_schema", "json_schema": {"schema": {"properties": {"a": {"multipleOf": 3}}}}},
        "but at #/properties/a/mu",
    ),
    ({"type": "json_schema", "json_schema": {"schema": False}}, "nothing can meet the schema"),
    (
        {"type": "json_schema", "schema": SCHEMA},
        'response_format must be {"type": "json_schema", "json_schema": {"schema"',
    ),
    ({"type": "json_schema", "json_schema": {"name": "x"}}, "response_format must be"),
    ({"type": "yaml"}, "response_format must have the type text, json_object or json_schema, got 'yaml'"),
    ({"schema": SCHEMA}, "response_format must have the type text, json_object or json_schema, got None"),
]


@pytest.mark.parametrize(("asked", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_supported_is_refused_in_one_line(llm: Any, asked: dict[str, Any], message: str) -> None:
    with attach(llm), pytest.raises(ValueError, match=re.escape(message)) as caught:
        llm.create_chat_completion(CHAT, response_format=asked)
    assert "\n" not in str(caught.value)


def test_wrong_arguments(llm: Any) -> None:
    grammar = Grammar.choices(["red"], token_bytes(llm))
    small = Grammar.regex("a", TokenBytes([b"", b"a"], end=[0]))
    with pytest.raises(
        TypeError, match=r"grammar must be a Grammar of lzsampler, got .*; a LlamaGrammar goes into the calls"
    ):
        attach(llm, grammar=gbnf('root ::= "a"'))
    with pytest.raises(ValueError, match=r"grammar must be for the \d+ tokens of this model, got a grammar for 2"):
        attach(llm, grammar=small)
    with pytest.raises(ValueError, match="on_loop='close-think' writes tokens that a grammar may refuse"):
        attach(llm, grammar=grammar, on_loop="close-think")
    assert not hasattr(llm, "lz")
    with attach(llm, grammar=grammar) as handle:
        with pytest.raises(ValueError, match="got a grammar for 2"):
            llm(PROMPT, grammar=small)
        with pytest.raises(ValueError, match="got a grammar for 2"):
            handle.grammar = small
        with pytest.raises(ValueError, match="close-think"):
            llm(PROMPT, on_loop="close-think")
        with pytest.raises(ValueError, match="grammar and response_format exclude each other"):
            llm.create_chat_completion(CHAT, grammar=grammar, response_format=OPENAI)
        for call in (llm, llm.create_chat_completion, llm.generate):
            with pytest.raises(TypeError, match="grammar must be a grammar and not a text, got 'root ::= "):
                call(CHAT if call == llm.create_chat_completion else PROMPT, grammar='root ::= "a"')
        with pytest.raises(TypeError, match="response_format must be an object such as"):
            llm.create_chat_completion(CHAT, response_format="json")
        assert text_of(llm(PROMPT)) == "red"
        llm.eval([1, 5])
        with pytest.raises(ValueError, match=r"sample\(\) does not know where the text of the grammar begins"):
            llm.sample()
        with pytest.raises(pickle.PicklingError, match="a Grammar cannot be pickled: make it again"):
            pickle.dumps(grammar)
        assert "grammar=" in repr(handle)
    with pytest.raises(pickle.PicklingError):
        copy.deepcopy(grammar)


# ---- the chain ----


def test_nothing_that_is_not_allowed_is_handed_out(llm: Any) -> None:
    """A bias forbids all that the grammar allows: llama.cpp picks some token, and the call fails."""
    grammar = Grammar.regex("[0-9]{4}", token_bytes(llm))
    digits = {token: -float("inf") for token, piece in enumerate(grammar.vocabulary.pieces) if piece[:1].isdigit()}
    with attach(llm, grammar=grammar, logit_bias=digits):
        for temperature in (0.0, 1.0):
            with pytest.raises(LzsError, match="no token is allowed"):
                llm(PROMPT, temperature=temperature)
            given = []
            with pytest.raises(LzsError, match="no token is allowed"):
                given += llm(PROMPT, temperature=temperature, stream=True)
            assert given == []


def test_a_chain_of_ones_own_applies_the_grammar(llm: Any) -> None:
    from lzsampler import Sampler

    grammar = Grammar.choices(["red", "blue"], token_bytes(llm))
    source = Sampler(llm.n_vocab(), LZ)
    source.set_grammar(grammar)
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    ours = penalties_sampler(source)
    llama_cpp.llama_sampler_chain_add(chain, ours)
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_greedy())
    try:
        for attempt in range(2):
            llm.reset()
            llm.eval(llm.tokenize(PROMPT.encode()))
            text = b""
            for _ in range(8):
                token = llama_cpp.llama_sampler_sample(chain, llm.ctx, -1)
                check_chain_sampler(ours)
                if llama_cpp.llama_vocab_is_eog(llm._model.vocab, token):
                    break
                text += grammar.vocabulary.pieces[token]
                llm.eval([token])
            assert text in (b"red", b"blue"), attempt
            llama_cpp.llama_sampler_reset(chain)
    finally:
        llama_cpp.llama_sampler_free(chain)


@pytest.mark.parametrize("kind", ["lookup", "model"])
def test_a_draft_leaves_the_texts_as_they_are(kind: str) -> None:
    own: Any = LZLlama(str(default_model()), n_ctx=512, verbose=False, n_threads=1, flash_attn=True, lz_penalty=0.1)
    small = Model(default_draft(), n_ctx=512, n_threads=1, flash_attn=True)
    try:
        draft = Draft(lookup=2, n_max=4) if kind == "lookup" else Draft(small, n_max=4)
        grammar = Grammar.json_schema(SCHEMA, own.lz)
        for settings in ({"temperature": 0.0}, {"temperature": 1.0, "seed": 3}):
            plain, fast = (own(PROMPT, max_tokens=80, grammar=grammar, draft=d, **settings) for d in (None, draft))
            assert fast["choices"] == plain["choices"]
            assert is_person(text_of(fast))
        assert own.lz.stats.speculated is not None
        assert own.lz.stats.speculated.blocks
    finally:
        own.close()
        small.close()
