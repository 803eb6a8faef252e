"""`fast_grammar`: the grammar is asked about the picked token only, as llama.cpp's common_sampler does."""

import ctypes
from typing import Any

import numpy as np
import pytest

from lzsampler import LzsError, Sampler

llama_cpp = pytest.importorskip("llama_cpp")

from applications import CHAT, LZ, PROMPT, text_of  # noqa: E402 (needs llama_cpp)
from lzsampler import llama  # noqa: E402
from lzsampler.dropin import attach  # noqa: E402

JSON = r"""
root   ::= object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" [a-zA-Z ,.]* "\"" ws
number ::= "-"? [0-9]+ ws
ws     ::= [ \n]?
"""


def grammar_of(source: str) -> Any:
    return llama_cpp.LlamaGrammar.from_string(source, verbose=False)


def common_sampler(llm: Any, prompt: list[int], source: str, samplers: Any, n: int) -> tuple[list[int], int]:
    """`common_sampler_sample` of llama.cpp (common/sampling.cpp, grammar_first = false), in the same calls."""
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for sampler in samplers():
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    grammar = llama_cpp.llama_sampler_init_grammar(llm._model.vocab, source.encode(), b"root")
    data = (llama_cpp.llama_token_data * llm.n_vocab())()

    def candidates() -> Any:
        logits = llama_cpp.llama_get_logits_ith(llm.ctx, -1)
        for i in range(llm.n_vocab()):
            data[i] = llama_cpp.llama_token_data(i, logits[i], 0.0)
        return llama_cpp.llama_token_data_array(data, llm.n_vocab(), -1, False)

    llm.reset()
    llm.eval(prompt)
    made: list[int] = []
    refused = 0
    while len(made) < n:
        array = candidates()
        llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
        token = array.data[array.selected].id
        one = (llama_cpp.llama_token_data * 1)(llama_cpp.llama_token_data(token, 1.0, 0.0))
        single = llama_cpp.llama_token_data_array(one, 1, -1, False)
        llama_cpp.llama_sampler_apply(grammar, ctypes.byref(single))
        if one[0].logit == -np.inf:
            refused += 1
            array = candidates()
            llama_cpp.llama_sampler_apply(grammar, ctypes.byref(array))
            llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
            token = array.data[array.selected].id
        llama_cpp.llama_sampler_accept(grammar, token)
        llama_cpp.llama_sampler_accept(chain, token)
        made.append(int(token))
        if llama_cpp.llama_vocab_is_eog(llm._model.vocab, token):
            break
        llm.eval([token])
    llama_cpp.llama_sampler_free(grammar)
    llama_cpp.llama_sampler_free(chain)
    return made, refused


@pytest.mark.parametrize("temperature", [0.0, 0.8, 1.5])
@pytest.mark.parametrize("top_k", [0, 3, 40])
def test_fast_grammar_is_common_sampler(llm: Any, temperature: float, top_k: int) -> None:
    prompt = llm.tokenize(b"The king said:", add_bos=False)

    def samplers() -> list[Any]:
        first = [llama.penalties_sampler(Sampler(llm.n_vocab(), LZ))]
        if temperature == 0.0:
            return [*first, llama_cpp.llama_sampler_init_greedy()]
        return [
            *first,
            llama_cpp.llama_sampler_init_top_k(top_k),
            llama_cpp.llama_sampler_init_top_p(0.95, 1),
            llama_cpp.llama_sampler_init_min_p(0.05, 1),
            llama_cpp.llama_sampler_init_temp(temperature),
            llama_cpp.llama_sampler_init_dist(9),
        ]

    expected, refused = common_sampler(llm, prompt, JSON, samplers, 60)
    assert refused
    llm.reset()
    with attach(llm, LZ, fast_grammar=True) as handle:
        llm.set_seed(9)
        made = []
        for token in llm.generate(prompt, temp=temperature, top_k=top_k, grammar=grammar_of(JSON)):
            made.append(token)
            if len(made) == 60 or llama_cpp.llama_vocab_is_eog(llm._model.vocab, token):
                break
    assert made == expected
    assert handle.stats.refused == refused


def test_greedy_fast_grammar_is_the_slow_one(llm: Any) -> None:
    """Greedy picks the best allowed token either way, so the text does not change at all."""
    grammars = [JSON, 'root ::= "yes" | "no"', "root ::= [a-z ]+ [.]", r"root ::= [0-9]+ ([,] [0-9]+)*"]
    with attach(llm, LZ) as handle:
        for source in grammars:
            slow = llm(PROMPT, max_tokens=40, temperature=0.0, grammar=grammar_of(source))
            fast = llm(PROMPT, max_tokens=40, temperature=0.0, grammar=grammar_of(source), fast_grammar=True)
            assert fast["choices"] == slow["choices"]
        assert handle.stats.refused
        chat = llm.create_chat_completion(
            CHAT, max_tokens=40, response_format={"type": "json_object"}, fast_grammar=True, temperature=0.0
        )
        assert text_of(chat).lstrip().startswith("{")


def test_a_bad_grammar_is_an_error(llm: Any) -> None:
    with attach(llm, fast_grammar=True), pytest.raises((LzsError, ValueError), match="grammar"):
        llm(PROMPT, grammar=grammar_of("root ::= missing"))
    assert text_of(llm(PROMPT, max_tokens=3))
