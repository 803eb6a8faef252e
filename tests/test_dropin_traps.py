"""Each trap of llama-cpp-python that `attach` and `LZLlama` step around; threads and memory."""

import dataclasses
import gc
import itertools
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from lzsampler import LzsError, Params, Sampler
from lzsampler.models import default_model

llama_cpp = pytest.importorskip("llama_cpp")

from applications import CHAT, LOOPING, LZ, PROMPT, new, run_python, text_of  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.draft import Draft  # noqa: E402
from lzsampler.dropin import LZLlama, attach  # noqa: E402
from native import valgrind  # noqa: E402

# ---- the traps ----


def test_the_prompt_is_seen_when_asked(llm: Any) -> None:
    prompt = llm.tokenize(b"the king and the queen and the king and the queen and the king", add_bos=False)
    usual = list(itertools.islice(llm.generate(prompt, temp=0.0), 8))
    assert set(usual) & set(prompt)
    with attach(llm, Params(presence_penalty=1e4, history="all")):
        assert not set(itertools.islice(llm.generate(prompt, temp=0.0), 8)) & set(prompt)
    with attach(llm, Params(presence_penalty=1e4)):  # generated tokens only
        made = list(itertools.islice(llm.generate(prompt, temp=0.0), 8))
        assert made[0] == usual[0]
        assert len(set(made)) == 8


@pytest.mark.parametrize("history", ["generated", "all"])
def test_a_reused_prefix_is_no_different(llm: Any, history: Any) -> None:
    """The cache keeps the beginning of a context; the history comes from the tokens of the call."""
    with attach(llm, Params(lz_rule="paper", lz_penalty=0.3, history=history)):
        first = text_of(llm(LOOPING, max_tokens=60, temperature=0.0))
        longer = LOOPING + first
        again = text_of(llm(longer, max_tokens=60, temperature=0.0))  # most of it is in the cache
        llm.reset()
        assert text_of(llm(longer, max_tokens=60, temperature=0.0)) == again
        assert text_of(llm(longer, max_tokens=60, temperature=0.0)) == again  # all of it is


def test_a_saved_state_goes_on(llm: Any) -> None:
    with attach(llm, Params(lz_penalty=0.3, history="all")):
        prompt = llm.tokenize(LOOPING.encode(), add_bos=False)
        whole = list(itertools.islice(llm.generate(prompt, temp=0.0), 60))
        llm.reset()
        half = list(itertools.islice(llm.generate(prompt, temp=0.0), 30))
        llm.eval(half[llm.n_tokens - len(prompt) :])
        state = llm.save_state()
        llm(PROMPT, max_tokens=5)
        llm.load_state(state)
        assert list(itertools.islice(llm.generate(prompt + half, temp=0.0), 30)) == whole[30:]


def test_drafted_tokens_are_not_history() -> None:
    """Every pick is that of the logits of its place and of the tokens before it, none of which is a refused draft.

    (Compared on the logits, since those of a batch are not bit for bit those of one token at a time.)
    """
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    drafts = LlamaPromptLookupDecoding(num_pred_tokens=6, max_ngram_size=2)
    model = new(LZLlama, draft_model=drafts, params=LZ)
    begin = model.tokenize(LOOPING.encode(), add_bos=False)
    made = list(itertools.islice(model.generate(begin, temp=0.0), 100))
    sampler = Sampler(model.n_vocab(), dataclasses.replace(LZ, temperature=0.0))
    for i, token in enumerate(made):
        assert sampler.sample(model.scores[len(begin) - 1 + i]) == token, i
        sampler.accept(token)
    model.close()


def test_python_processors_keep_their_place() -> None:
    """Their indices are kept by llama-cpp-python; a chain freed with wrong ones aborts the process."""
    run_python("""
        import llama_cpp
        from lzsampler.dropin import LZLlama, attach, sampled
        from lzsampler.llama import penalties_sampler
        from lzsampler import LzsError, Params, Sampler
        from lzsampler.models import default_model
        from llama_cpp._internals import LlamaSampler
        from applications import penalty_arguments

        for before in (True, False):  # the custom sampler before or after ours
            chain = LlamaSampler()
            calls = []
            if before:
                chain.add_custom(lambda candidates: calls.append(candidates.contents.size))
            chain.add_penalties(*penalty_arguments(100, 64, 1.0, 0.0, 0.0))
            chain.add_top_k(40)
            if not before:
                chain.add_custom(lambda candidates: calls.append(candidates.contents.size))
            chain.add_greedy()
            at = sampled.insert(chain, penalties_sampler(Sampler(100)))
            assert at == (2 if before else 1)
            assert [i for i, _ in chain.custom_samplers] == ([0] if before else [3])
            names = [sampled._name(chain.sampler, i) for i in range(5) if i != chain.custom_samplers[0][0]]
            assert names == [b"penalties", b"lz-penalties", b"top-k", b"greedy"], names
            chain.close()

        llm = LZLlama(str(default_model()), n_ctx=256, verbose=False)
        seen = []
        def processor(ids, scores):
            seen.append(len(ids))
            return scores
        for _ in range(3):
            llm("Once", max_tokens=4, logits_processor=llama_cpp.LogitsProcessorList([processor]))
        assert len(seen) == 12, seen
        llm.close()
    """)


def test_no_chain_outlives_its_text(llm: Any) -> None:
    handle = attach(llm, LZ)
    assert text_of(llm(LOOPING, max_tokens=20, temperature=0.0))
    assert llm._sampler is None
    llm.reset()
    llm.eval(llm.tokenize(PROMPT.encode()))
    drawn = set()
    for seed in range(8):
        llm.set_seed(seed)
        drawn.add(llm.sample(temp=5.0, top_k=0, top_p=1.0, min_p=0.0))
    assert len(drawn) > 1  # not the greedy chain of the text before
    handle.detach()


def test_low_level_sampling_sees_the_context(llm: Any) -> None:
    llm.eval(llm.tokenize(b"the king and the queen and the king and the", add_bos=False))
    assert llm.sample(temp=0.0) in llm._input_ids
    with attach(llm, Params(presence_penalty=1e4)):
        made = llm.sample(temp=0.0)
        assert made not in llm._input_ids
        llm.eval([made])
        assert llm.sample(temp=0.0) not in llm._input_ids


def live_chains() -> int:
    from llama_cpp._internals import LlamaSampler

    return sum(type(o) is LlamaSampler and o.sampler is not None for o in gc.get_objects())


def test_chains_are_freed_when_their_text_ends(llm: Any) -> None:
    with attach(llm, LZ):
        gc.collect()
        before = live_chains()
        gc.disable()  # llama-cpp-python's chains wait for it
        try:
            for _ in range(5):
                llm(PROMPT, max_tokens=3)
                next(llm(PROMPT, max_tokens=3, stream=True))
                llm.create_chat_completion(CHAT, max_tokens=3)
                list(itertools.islice(llm.generate(llm.tokenize(b"a")), 3))
                llm.sample()
            assert live_chains() == before
        finally:
            gc.enable()


def test_an_abandoned_stream_does_not_touch_the_next_text(llm: Any) -> None:
    with attach(llm, LZ):
        alone = text_of(llm(LOOPING, max_tokens=30, temperature=0.0))
        chunks = llm(PROMPT, max_tokens=30, stream=True)
        next(chunks)
        tokens = llm.generate(llm.tokenize(LOOPING.encode(), add_bos=False), temp=0.0)
        made = [next(tokens) for _ in range(15)]
        del chunks  # its chain goes now, while another is in use
        made += [next(tokens) for _ in range(15)]
        assert llm.detokenize(made).decode() == alone


def test_sent_tokens_are_drafts(llm: Any) -> None:
    """llama-cpp-python checks them against its own picks; without the logits of each, llama.cpp ends the process."""
    prompt = llm.tokenize(PROMPT.encode())
    with attach(llm, LZ):
        alone = list(itertools.islice(llm.generate(prompt, temp=0.0), 40))
        made = llm.generate(prompt, temp=0.0)
        next(made)
        with pytest.raises(ValueError, match="logits_all=True"):
            made.send(alone[1:3])
    every = new(LZLlama, logits_all=True, params=LZ)
    for drafts in (alone[1:4], [5, 6, 7]):  # right and wrong
        made = every.generate(prompt, temp=0.0)
        assert [next(made), made.send(drafts), *itertools.islice(made, 38)] == alone
    every.close()


def test_a_file_that_cannot_be_loaded_is_told_as_elsewhere(tmp_path: Path) -> None:
    """It is a ValueError, as of `Llama`, which says that it failed and nothing else."""
    weights = default_model().read_bytes()
    for name, content, message in (
        ("cut", weights[:4_000_000], r"cut\.gguf is truncated: 4,089,312 of 8,089,312 bytes are missing"),
        ("header", weights[:1000], r"header\.gguf is truncated: it ends inside its header"),
        ("text", b"once upon a time", r"text\.gguf is not a GGUF file: it starts with b'once', not b'GGUF'"),
    ):
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            LZLlama(str(path), verbose=False)
    with pytest.raises(ValueError, match=r"^Model path does not exist: "):  # which llama_cpp.server looks for
        LZLlama(str(tmp_path / "no.gguf"), verbose=False)


CLOSED = """
    import llama_cpp
    from lzsampler import Grammar, LzsError, attach
    from lzsampler.dropin import LZLlama
    from lzsampler.llama import token_bytes
    from lzsampler.models import default_draft, default_model

    settings = {"n_ctx": 256, "n_threads": 1, "verbose": False}
    own, plain = LZLlama(str(default_model()), **settings), llama_cpp.Llama(str(default_model()), **settings)
    other = llama_cpp.Llama(str(default_model()), **settings)
    attached = attach(plain)
    for model in (own, plain, other):
        model.close()
    schema = {"type": "json_object", "schema": {"type": "object"}}
    for use in (
        lambda: own.lz.token_bytes,
        lambda: attached.token_bytes,
        lambda: Grammar.regex("[a-z]+", own.lz),
        lambda: token_bytes(own),
        lambda: token_bytes(other),
        lambda: attach(other),
        lambda: attach(other, exempt=["a"]),
        lambda: own.lz.use_draft(own, default_draft()),
        lambda: own.create_chat_completion([{"role": "user", "content": "A"}], response_format=schema),
        own.n_ctx, own.n_embd, own.n_vocab, own.pooling_type,
    ):
        try:
            print("no error:", use())
        except LzsError as error:
            assert str(error) in ("this LZLlama is closed: open it again", "this Llama is closed: open it again"), error
    print("all refused")
"""


def test_a_closed_model_refuses_whatever_would_end_the_process() -> None:
    assert run_python(CLOSED) == "all refused\n"


def test_bias_and_processors_work_together(llm: Any) -> None:
    wanted = int(llm.tokenize(b" king", add_bos=False)[0])
    calls = []

    def processor(ids: Any, scores: Any) -> Any:
        calls.append(len(ids))
        return scores

    with attach(llm, Params()):
        usual = llm(PROMPT, max_tokens=1, temperature=0.0)
        biased = llm(
            PROMPT,
            max_tokens=1,
            temperature=0.0,
            logit_bias={str(wanted): 100.0},
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
        )
    assert calls
    assert text_of(biased) != text_of(usual)
    assert text_of(biased) == " king"


# ---- threads ----


def test_two_threads_two_models() -> None:
    models = [new(LZLlama) for _ in range(2)]
    expected = [text_of(models[0](prompt, max_tokens=80, temperature=0.0)) for prompt in (LOOPING, PROMPT)]
    got: dict[int, list[str]] = {}

    def work(i: int) -> None:
        got[i] = [text_of(models[i]((LOOPING, PROMPT)[i], max_tokens=80, temperature=0.0)) for _ in range(5)]

    in_threads(work, 2)
    assert got == {0: [expected[0]] * 5, 1: [expected[1]] * 5}
    for model in models:
        model.close()


def test_two_threads_one_model_with_a_lock(llm: Any) -> None:
    with attach(llm, LZ):
        expected = [text_of(llm(prompt, max_tokens=60, temperature=0.0)) for prompt in (LOOPING, PROMPT)]
        lock, got = threading.Lock(), [[], []]  # type: ignore[var-annotated]

        def work(i: int) -> None:
            for _ in range(6):
                with lock:
                    got[i].append(text_of(llm((LOOPING, PROMPT)[i], max_tokens=60, temperature=0.0)))

        in_threads(work, 2)
        assert got == [[expected[0]] * 6, [expected[1]] * 6]


def in_threads(work: Any, n: int) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- memory ----


def test_two_thousand_calls_leave_nothing_behind() -> None:
    """Resident memory, within 2 %; MALLOC_PERTURB_ overwrites what is freed, so that a use of it would show."""
    pytest.importorskip("resource")
    out = run_python(
        """
        import gc, itertools, os
        import llama_cpp
        from lzsampler import Params
        from lzsampler.dropin import attach
        from lzsampler.models import default_model

        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        llm = llama_cpp.Llama(str(default_model()), n_ctx=256, n_threads=1, verbose=False)
        attach(llm, Params(lz_penalty=0.15))
        prompt = llm.tokenize(b"Once upon a time")
        for i in range(2400):
            if i == 400:
                before = resident()
            if i % 3 == 0:
                next(llm("Once upon a time", max_tokens=8, stream=True))  # cut half-way
            elif i % 3 == 1:
                llm("Once upon a time", max_tokens=2)
            else:
                list(itertools.islice(llm.generate(prompt), 2))
        print(before, resident())
        """,
        MALLOC_PERTURB_="165",
    )
    before, after = map(int, out.split())
    assert after <= 1.02 * before, f"{before} bytes, then {after}"


def test_valgrind_sees_no_use_of_freed_memory(tmp_path: Path) -> None:
    """Invalid reads, writes and frees. (Undefined values it also finds in Python itself.)"""
    program = tmp_path / "short.py"
    program.write_text(
        textwrap.dedent("""
        import itertools, os
        import llama_cpp
        from lzsampler import Params
        from lzsampler.dropin import attach
        from lzsampler.models import default_model

        small = {"n_ctx": 128, "n_batch": 16, "n_threads": 1, "n_threads_batch": 1}
        llm = llama_cpp.Llama(str(default_model()), verbose=False, **small)
        grammar = llama_cpp.LlamaGrammar.from_string("root ::= [a-z ]+", verbose=False)
        processors = llama_cpp.LogitsProcessorList([lambda ids, scores: scores])
        with attach(llm, Params(lz_penalty=0.15, history="all")):
            llm("Once upon", max_tokens=3, temperature=0.0)
            next(llm("Once upon", max_tokens=3, stream=True))
            llm("Once upon", max_tokens=3, grammar=grammar, fast_grammar=True)
            llm("Once upon", max_tokens=2, grammar=grammar, fast_grammar=True, logits_processor=processors)
            list(itertools.islice(llm.generate(llm.tokenize(b"Once")), 2))
            llm.sample()
        llm.close()
        print("done", flush=True)
        os._exit(0)  # the interpreter's own end is not ours to check
        """)
    )
    suppressions = Path(__file__).with_name("valgrind.supp")
    options = ["--error-exitcode=1", "--undef-value-errors=no", f"--suppressions={suppressions}"]
    done = valgrind([sys.executable, program], *options, PYTHONMALLOC="malloc", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "done\n"


@pytest.mark.parametrize("method", ["__call__", "create_completion", "create_chat_completion", "generate"])
@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("lz_penality", "; did you mean 'lz_penalty'?"),
        ("loop_finish_reson", "; did you mean 'loop_finish_reason'?"),
        ("tpo_p", "; did you mean 'top_p'?"),
        ("zzz", ""),
    ],
)
def test_a_misspelt_keyword_of_a_call_is_told(llm: Any, method: str, keyword: str, message: str) -> None:
    given: Any = [{"role": "user", "content": "q"}] if "chat" in method else [1] if method == "generate" else PROMPT
    with attach(llm), pytest.raises(TypeError) as error:
        getattr(llm, method)(given, **{keyword: 1})
    assert str(error.value) == f"Llama.{method}() got an unexpected keyword argument {keyword!r}{message}"


def test_a_subclass_may_take_keywords_of_its_own() -> None:
    class Own(llama_cpp.Llama):  # type: ignore[misc, name-defined]
        def create_completion(self, *arguments: Any, mine: int = 0, **keywords: Any) -> Any:
            return mine, super().create_completion(*arguments, **keywords)

    own = new(Own)
    with attach(own):
        mine, done = own.create_completion(PROMPT, mine=5, lz_penalty=0.1, max_tokens=1)
    assert (mine, done["usage"]["completion_tokens"]) == (5, 1)
    own.close()


def test_a_block_of_an_lzllama_s_penalties_ends() -> None:
    llm = new(LZLlama)
    with llm.lz as lz:
        assert lz is llm.lz
    assert text_of(llm(PROMPT, max_tokens=2))
    llm.close()


@pytest.mark.parametrize("draft", [None, Draft(lookup=3)])
def test_a_stream_after_another_call_says_so(draft: Draft | None) -> None:
    """It went on with the context of the other text, and with a draft there was an AttributeError."""
    llm = new(LZLlama, flash_attn=True, draft=draft)
    stream = llm(PROMPT, max_tokens=30, stream=True, temperature=0.0)
    next(stream)
    other = text_of(llm("One day", max_tokens=5, temperature=0.0))
    with pytest.raises(LzsError, match="another call used this model between two tokens of a stream"):
        list(stream)
    stream = llm(PROMPT, max_tokens=30, stream=True, temperature=0.0)
    next(stream)
    llm.eval(llm.tokenize(b" and then"))  # llama.cpp ended the process at the next token
    with pytest.raises(LzsError, match="another call used this model between two tokens of a stream"):
        list(stream)
    assert text_of(llm("One day", max_tokens=5, temperature=0.0)) == other
    llm.close()
