"""Operations that two threads do at a time, on objects that they share: ``python threads.py FIRST SECOND ROUNDS``.

Each operation works, or raises an LzsError that says what another thread is using: that goes on, anything else is told.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from lzsampler import Grammar, LzsError, Model, Params, Sampler, attach, generate
from lzsampler.decoding.chat import Chat
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft
from lzsampler.decoding.lookup import Lookup
from lzsampler.decoding.many import Request, generate_many
from lzsampler.decoding.verification import Speculation
from lzsampler.dropin.lzllama import LZLlama
from lzsampler.llama.gguf import read
from lzsampler.llama.graph import GraphSampler, missing
from lzsampler.llama.vocabulary import Vocabulary
from lzsampler.models import default_model, find_model

PATH = default_model()
PROMPT = "Once upon a time"
GREEDY = Params(temperature=0.0)


class Shared:
    """What both threads have, made by the main thread."""

    def __init__(self) -> None:
        self.done = set[str]()  # the operations that were done by one thread
        self.rng = np.random.default_rng(0)
        self.row = self.rng.normal(0, 3, len(read(PATH).vocabulary)).astype(np.float32)

    @cached_property
    def model(self) -> Model:
        return Model(PATH, n_ctx=128, n_batch=64, n_threads=1)

    @cached_property
    def other(self) -> Model:
        return Model(PATH, n_ctx=128, n_batch=64, n_threads=1)

    @cached_property
    def small(self) -> Model:
        return Model(find_model("tale-1m"), n_ctx=128, n_batch=64, n_threads=1)

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.row.size, Params(lz_penalty=0.3, lz_rule="paper", temperature=0.8, history="all"))

    @cached_property
    def under(self) -> Sampler:
        made = Sampler(self.row.size, GREEDY)
        made.set_grammar(self.grammar)
        return made

    @cached_property
    def speculation(self) -> Speculation:
        return Speculation(self.sampler, max_draft=3)

    @cached_property
    def grammar(self) -> Grammar:
        return Grammar.json_schema({"type": "array", "items": {"type": "string"}}, self.model)

    @cached_property
    def gbnf(self) -> Grammar:
        return Grammar.gbnf('root ::= "a"* | [b-z ]+', self.model)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(PATH)

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup()

    @cached_property
    def llama(self) -> LZLlama:
        return LZLlama(str(PATH), n_ctx=128, n_threads=1, verbose=False)

    @cached_property
    def attached(self) -> Any:
        import llama_cpp

        made = llama_cpp.Llama(str(PATH), n_ctx=128, n_threads=1, verbose=False)
        attach(made, on_loop="stop")
        return made

    @cached_property
    def chat(self) -> Chat:
        with suppress(LzsError):
            return Chat(self.model, GenerationConfig(GREEDY, max_tokens=4))
        self.model.header.metadata["tokenizer.chat_template"] = "{% for m in messages %}{{ m.content }}{% endfor %}"
        return Chat(self.model, GenerationConfig(GREEDY, max_tokens=4))

    @cached_property
    def graph(self) -> GraphSampler:
        return GraphSampler(self.small, self.of_graph, best=False, masked=False)

    @cached_property
    def of_graph(self) -> Sampler:
        return Sampler(self.small.n_vocab, Params(temperature=0.8, repetition_penalty=1.2))


def use_sampler(shared: Shared) -> None:
    s = shared.sampler
    for _ in range(100):
        token, _ = s.step_at(s._row(shared.row))
        assert token >= 0
        assert s.sample(shared.row) >= 0
        s.accept(token)
    s.clone().step(shared.row)
    s.edits()
    s.explain(shared.row, k=2)
    s.rewind(1)
    s.set_params(s.params)
    if s.position > 400:
        s.reset()


def use_grammar(shared: Shared) -> None:
    s = Sampler(shared.row.size, GREEDY)
    s.set_grammar(shared.grammar)
    for _ in range(10):
        assert s.step(shared.row) >= 0
    assert shared.grammar.match("[") == "beginning"
    assert shared.grammar.copy().states > 0


def use_one_under_a_grammar(shared: Shared) -> None:
    s = shared.under
    assert s.step(shared.row) >= 0
    s.allowed()
    s.set_grammar(shared.grammar if s.position % 2 else None)
    if s.position > 20:
        s.reset()
        s.set_grammar(shared.grammar)


def use_gbnf(shared: Shared) -> None:
    s = Sampler(shared.row.size, GREEDY)
    s.set_grammar(shared.gbnf)
    assert s.step(shared.row) >= 0
    assert shared.gbnf.match("aa") == "yes"


def make_gbnf(shared: Shared) -> None:
    Grammar.gbnf('root ::= "b"+', shared.vocabulary)


def use_speculation(shared: Shared) -> None:
    with suppress(ValueError):  # another thread has changed the sampler, or filled the block, between two calls
        assert (shared.speculation.draft(shared.row) or 0) >= 0
        shared.speculation.draft_token(3)
        shared.speculation.drafted  # noqa: B018
    shared.speculation.discard()


def use_lookup(shared: Shared) -> None:
    with suppress(ValueError):  # another thread has taken tokens back
        shared.lookup.append([1, 2, 3] * 50)
        shared.lookup.find(1, 5)
        shared.lookup.rewind(20)


def open_model(shared: Shared) -> None:
    with Model(find_model("tale-1m"), n_ctx=64, n_threads=1) as model:
        model.decode(model.tokenize("A"))


def open_vocabulary(shared: Shared) -> None:
    vocabulary = Vocabulary(PATH)
    assert vocabulary.tokenize(PROMPT)[0].size
    vocabulary.close()


def open_llama(shared: Shared) -> None:
    LZLlama(str(find_model("tale-1m")), n_ctx=64, n_threads=1, verbose=False).close()


def use_vocabulary(shared: Shared) -> None:
    shared.vocabulary.detokenize(shared.vocabulary.tokenize(PROMPT)[0])
    shared.vocabulary.ids_with(8)


def close_vocabulary(shared: Shared) -> None:
    shared.vocabulary.close()


def write(shared: Shared) -> None:
    assert generate(shared.model, PROMPT, GenerationConfig(Params(temperature=0.8), max_tokens=4)).tokens


def write_drafted(shared: Shared) -> None:
    assert generate(
        shared.other, PROMPT, GenerationConfig(GREEDY, max_tokens=4, draft=Draft(shared.small, n_max=2))
    ).tokens


def write_under_a_grammar(shared: Shared) -> None:
    generate(shared.other, PROMPT, GenerationConfig(GREEDY, max_tokens=4, grammar=shared.grammar))


def write_many(shared: Shared) -> None:
    requests = [
        Request(i, PROMPT, GenerationConfig(Params(seed=i), max_tokens=4, grammar=shared.grammar)) for i in range(3)
    ]
    assert len(list(generate_many(shared.model, requests, n_parallel=2))) == 3


def decode(shared: Shared) -> None:
    shared.model.keep(0)
    shared.model.decode(shared.model.tokenize(PROMPT))
    shared.model.logits_pointer()


def tokenize(shared: Shared) -> None:
    for token in shared.model.tokenize(PROMPT):
        shared.model.piece(token)
    shared.model.fragments.clear()


def close_model(shared: Shared) -> None:
    shared.other.close()


def chat(shared: Shared) -> None:
    shared.chat.say("Hello")
    shared.chat.reset()


def complete(shared: Shared) -> None:
    llm: Any = shared.llama
    assert llm(PROMPT, max_tokens=4, lz_penalty=0.5)["choices"]
    list(islice(llm(PROMPT, max_tokens=4, stream=True), 2))  # a stream that nobody reads to its end
    list(islice(llm.generate(llm.tokenize(b"One"), on_loop="stop"), 2))
    llm.save_state()


def complete_attached(shared: Shared) -> None:
    assert shared.attached(PROMPT, max_tokens=4)["choices"]
    shared.attached.lz.params = Params(lz_penalty=0.2)
    repr(shared.attached.lz)


def close_llama(shared: Shared) -> None:
    shared.llama.close()


def use_graph(shared: Shared) -> None:
    if missing() is None:
        model = shared.small
        shared.graph  # noqa: B018
        model.keep(0)
        model.decode(model.tokenize(PROMPT))
        shared.graph.step_at(None)
        shared.of_graph.accept(5)


OPERATIONS: dict[str, Callable[[Shared], None]] = {
    made.__name__: made
    for made in (
        use_sampler, use_grammar, use_one_under_a_grammar, use_gbnf, make_gbnf, use_speculation, use_lookup, open_model,
        open_vocabulary, open_llama, use_vocabulary, write, write_drafted, write_under_a_grammar, write_many, decode,
        tokenize, chat, complete, complete_attached, use_graph, close_vocabulary, close_model, close_llama,
    )
}  # fmt: skip
ENDS = {"close_vocabulary": "vocabulary", "close_model": "other", "close_llama": "llama"}  # what to make anew then


def run(shared: Shared, names: tuple[str, str], rounds: int) -> list[str]:
    """Do two operations at a time, each ``rounds`` times, and return what went wrong."""
    wrong, ends = list[str](), set(names) & set(ENDS)
    for name in ends:
        vars(shared).pop(ENDS[name], None)
    for name in names:  # what they share is made here, by one thread
        if name in ENDS:
            getattr(shared, ENDS[name])
        elif name not in shared.done:
            OPERATIONS[name](shared)
            shared.done.add(name)

    def work(name: str, start: threading.Barrier) -> None:
        start.wait()
        for _ in range(rounds):
            try:
                OPERATIONS[name](shared)
            except LzsError as error:
                allowed = ("in use", "being closed", "is closed", "no logits", "is not known", "does not know")
                if not any(word in str(error) for word in allowed):
                    wrong.append(f"{name}: {error}")
            except Exception as error:
                if not ends:
                    wrong.append(f"{name}: {type(error).__name__}: {error}")

    start = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(name, start), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        if thread.is_alive():
            return [*wrong, f"{name}: a thread does not end"]
    for name in ends:
        vars(shared).pop(ENDS[name], None)
    return wrong


if __name__ == "__main__":
    shared, first, rounds = Shared(), sys.argv[1], int(sys.argv[-1])
    for second in sys.argv[2:-1]:
        print(first, second, flush=True)  # the last line names the pair that ended the process
        wrong = run(shared, (first, second), rounds)
        if not wrong and not set(ENDS) & {first, second}:
            OPERATIONS[first](shared)  # nothing stays in use
        if wrong:
            sys.exit("\n".join(wrong[:5]))
    print("done")
