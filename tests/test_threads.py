"""Two threads on one object: it works, or one of them gets an LzsError that names the object; the process goes on."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import Grammar, LzsError, Model, Params, Sampler, generate  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.many import Request, generate_many  # noqa: E402
from lzsampler.dropin.lzllama import LZLlama  # noqa: E402
from lzsampler.llama.log import captured_log  # noqa: E402
from lzsampler.models import default_model  # noqa: E402
from threads import OPERATIONS  # noqa: E402 (needs llama_cpp)

NAMES = list(OPERATIONS)
ROUNDS = 2


@pytest.mark.parametrize("first", NAMES)
def test_two_threads_do_anything_at_a_time(first: str) -> None:
    """Each pair of operations, in a process of its own, so that a crash is a failed test."""
    script = str(Path(__file__).with_name("threads.py"))
    command = [sys.executable, script, first, *NAMES[NAMES.index(first) :], str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "done"), (done.stdout[-200:], done.stderr[-1000:])


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=128, n_threads=1) as opened:
        yield opened


def elsewhere(call: Any) -> BaseException | None:
    """Call something in another thread, and return what it raised."""
    raised = list[BaseException]()

    def work() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    return raised[0] if raised else None


def test_the_error_names_the_model_and_what_to_do(model: Model) -> None:
    def busy(_: str) -> bool:
        for call in (
            lambda: generate(model, "A", GenerationConfig(Params(), max_tokens=1)),
            lambda: model.decode([1]),
            model.close,
        ):
            error = elsewhere(call)
            assert isinstance(error, LzsError)
            assert str(error) == (
                f"this Model ({model.path.name}) is in use by another thread: give each thread a Model of its own"
            )
        assert elsewhere(lambda: model.tokenize("A")) is None  # of which any number of threads may ask
        with pytest.raises(LzsError, match=r"is in use: close it when nothing uses it any more"):
            model.close()
        return True

    assert (
        generate(model, "Once", GenerationConfig(Params(temperature=0.0), max_tokens=3), on_text=busy).finish_reason
        == "interrupted"
    )
    assert elsewhere(lambda: generate(model, "A", GenerationConfig(Params(), max_tokens=1))) is None


def test_a_grammar_is_in_use_as_long_as_a_text_is(model: Model) -> None:
    grammar = Grammar.regex("[a-z ]+", model)
    sampler = Sampler(model.n_vocab)
    sampler.set_grammar(grammar)
    row = np.zeros(model.n_vocab, np.float32)

    def busy(_: str) -> bool:
        error = elsewhere(lambda: sampler.step(row))
        assert str(error) == "this Grammar is in use by another thread: give each thread a copy() of it"
        assert elsewhere(lambda: grammar.copy().match("a")) is None
        return True

    generate(model, "Once", GenerationConfig(Params(temperature=0.0), max_tokens=9, grammar=grammar), on_text=busy)
    assert elsewhere(lambda: sampler.step(row)) is None


def test_a_sampler_that_a_thread_uses_serves_that_thread_alone(model: Model) -> None:
    sampler, row = Sampler(50), np.zeros(50, np.float32)
    with sampler.in_use:
        assert sampler.step(row) >= 0
        assert sampler.sample(row) >= 0
        sampler.accept(3)
        for call in (lambda: sampler.step(row), lambda: sampler.accept(1), sampler.clone, lambda: sampler.sample(row)):
            message = "this Sampler is in use by another thread: give each thread a Sampler of its own"
            assert str(elsewhere(call)) == message
    assert elsewhere(lambda: sampler.step(row)) is None
    assert sampler.position == 3


def test_a_model_is_not_freed_under_texts_that_are_not_finished() -> None:
    model = Model(default_model(), n_ctx=64, n_threads=1)
    texts = generate_many(
        model, [Request(i, "Once", GenerationConfig(Params(), max_tokens=2 + i)) for i in range(3)], n_parallel=2
    )
    next(texts)
    with pytest.raises(LzsError, match="is in use: close it when nothing uses it any more"):
        model.close()
    assert len(list(texts)) == 2
    model.close()
    assert model.closed


def test_a_stream_that_is_given_up_locks_nothing() -> None:
    """It may be closed by any thread, also while another one uses the model."""
    llm: Any = LZLlama(str(default_model()), n_ctx=128, n_threads=1, verbose=False)
    stream = llm("Once upon", max_tokens=20, stream=True)
    next(stream)
    expected = llm("One day", max_tokens=5, temperature=0.0)["choices"][0]["text"]
    assert elsewhere(lambda: llm("One day", max_tokens=2)) is None
    closed = threading.Event()

    def close_the_stream(ids: Any, scores: Any) -> Any:
        if not closed.is_set():
            assert elsewhere(stream.close) is None
            error = elsewhere(lambda: llm("A", max_tokens=1))
            assert "this LZLlama" in str(error)
            assert "in use by another thread" in str(error)
            closed.set()
        return scores

    made = llm("One day", max_tokens=5, temperature=0.0, logits_processor=[close_the_stream])
    assert made["choices"][0]["text"] == expected
    assert closed.is_set()
    assert elsewhere(llm.close) is None
    with pytest.raises(LzsError, match="this LZLlama is closed"):
        llm("A", max_tokens=1)
    llm.close()


def test_messages_of_llama_cpp_go_to_their_own_thread_and_the_users_callback_comes_back() -> None:
    said = list[bytes]()

    @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
    def own(level: int, text: bytes, _: object) -> None:
        said.append(text)

    def load(path: str) -> None:
        assert not llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())

    def of_another_thread() -> None:
        load("/no/such/file")
        with captured_log() as errors:
            load("/another/file")
        assert "/another/file" in "".join(errors)
        assert "/no/such/file" not in "".join(errors)

    if not hasattr(llama_cpp, "llama_log_get"):
        pytest.skip("needs llama_log_get")
    before, data = llama_cpp.llama_log_callback(), llama_cpp.ctypes.c_void_p()
    llama_cpp.llama_log_get(llama_cpp.ctypes.byref(before), llama_cpp.ctypes.byref(data))
    llama_cpp.llama_log_set(own, data)
    try:
        with captured_log() as errors:
            assert elsewhere(of_another_thread) is None
            load("/first/file")
        assert "/first/file" in "".join(errors)
        assert "another" not in "".join(errors)
        assert b"/no/such/file" in b"".join(said)
        assert b"first" not in b"".join(said)
        said.clear()
        load("/last/file")
        assert b"/last/file" in b"".join(said)
    finally:
        llama_cpp.llama_log_set(before, data)


def test_two_models_that_are_opened_at_a_time_leave_stdout_alone() -> None:
    """llama-cpp-python has stdout point to nowhere while it loads: the later of two put back that of the first."""
    code = (
        "import threading\nfrom lzsampler import Model\nfrom lzsampler.models import default_model\n"
        "def work():\n    for _ in range(5): Model(default_model(), n_ctx=64, n_threads=1).close()\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nprint('here')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr[-500:]
