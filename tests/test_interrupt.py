"""Ctrl-C within a batch of a prompt: it ends the decode, and the context goes on as if the batch had never come."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Params
from lzsampler.models import default_model

pytest.importorskip("llama_cpp")

import llama_cpp

from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.decoding.many import Request, generate_many
from lzsampler.decoding.sequences import Sequences
from lzsampler.llama.decoder import Decoder
from lzsampler.llama.log import captured_log
from lzsampler.llama.model import Model

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="on Windows a decode goes on to its end")

LZS = str(Path(sys.executable).with_name("lzs"))
LONG = np.arange(3900, dtype=np.int32) % 4000 + 90  # takes seconds in one batch
GREEDY = Params(temperature=0.0)


@pytest.fixture
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=4096, n_batch=4096, n_threads=1) as opened:
        yield opened


def interrupted(run: Callable[[], Any]) -> Any:
    """Press Ctrl-C while something runs; it must end before what it does is over."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        return run()
    finally:
        timer.join()


def in_the_cache(model: Model) -> int:
    memory = llama_cpp.llama_get_memory(model.llm.ctx)
    return int(llama_cpp.llama_memory_seq_pos_max(memory, 0)) + 1


def test_a_decode_ends_within_a_batch_and_the_context_goes_on(model: Model) -> None:
    begin, more = LONG[:20], LONG[100:140]
    model.decode(begin)
    model.decode(more)
    expected = model.logits().copy()
    model.keep(begin.size)
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: model.decode(LONG))
    assert (model.past, in_the_cache(model)) == (begin.tolist(), begin.size)  # the whole prompt was in the cache
    with pytest.raises(RuntimeError, match="an interrupted decode"):
        model.logits()
    model.decode(more)
    assert np.array_equal(model.logits(), expected)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: threading.Event().wait(60))


def test_batches_that_were_finished_stay() -> None:
    with Model(default_model(), n_ctx=4096, n_batch=64, n_threads=1) as model:
        with pytest.raises(KeyboardInterrupt):
            interrupted(lambda: model.decode(LONG))
        assert model.n_past % 64 == 0
        assert model.n_past == in_the_cache(model) < LONG.size
        assert model.past == LONG[: model.n_past].tolist()


def test_ctrl_c_between_a_decode_and_its_books(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own handler runs between any two instructions: the cache had tokens that the model did not know of."""
    decode = Decoder.decode

    def interrupted_late(self: Decoder, batch: Any) -> int:
        assert decode(self, batch) == 0
        raise KeyboardInterrupt

    model.decode(LONG[:10])
    with monkeypatch.context() as patched:
        patched.setattr(Decoder, "decode", interrupted_late)
        with pytest.raises(KeyboardInterrupt):
            model.decode(LONG[:30])
    assert model.n_past == in_the_cache(model) == 10


def test_a_text_is_returned_without_tokens_and_the_next_one_is_that_of_a_fresh_context(model: Model) -> None:
    expected = generate(model, "Once upon a time", GenerationConfig(GREEDY, max_tokens=30))
    made = interrupted(lambda: generate(model, LONG, GenerationConfig(GREEDY, max_tokens=5)))
    assert (made.finish_reason, made.tokens, in_the_cache(model)) == ("interrupted", (), 0)
    assert (
        generate(model, "Once upon a time", GenerationConfig(GREEDY, max_tokens=30), reuse_context=True).tokens
        == expected.tokens
    )


def test_another_handler_is_left_alone(model: Model) -> None:
    """It may do something else than to raise, and then the decode has to go on."""
    called = []
    before = signal.signal(signal.SIGINT, lambda *_: called.append(1))
    try:
        interrupted(lambda: model.decode(LONG[:1500]))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (called, model.n_past) == ([1], 1500)


def test_a_decode_in_another_thread_is_not_ended(model: Model) -> None:
    thread = threading.Thread(target=model.decode, args=(LONG[:1500],))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: threading.Event().wait(60))
    thread.join()
    assert model.n_past == 1500


@pytest.mark.parametrize("n_contexts", [1, 2])
def test_many_texts_end_in_the_middle_of_their_prompts(
    model: Model, n_contexts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two contexts decode in threads, for which Ctrl-C has to wait."""
    statuses = []
    decode = Decoder.decode
    begun = threading.Event()

    def press() -> None:
        begun.wait(60)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    def noting(self: Decoder, batch: Any) -> int:
        begun.set()
        statuses.append(decode(self, batch))
        return statuses[-1]

    monkeypatch.setattr(Decoder, "decode", noting)
    requests = [Request(i, LONG[i:], GenerationConfig(GREEDY, max_tokens=5)) for i in range(2)]
    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        list(generate_many(model, requests, n_parallel=2, n_contexts=n_contexts))
    assert statuses == [2] * n_contexts


def test_a_context_that_is_interrupted_while_it_is_made_lets_go_of_its_model(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupting(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(llama_cpp, "llama_init_from_model", interrupting)
    with pytest.raises(KeyboardInterrupt):
        Sequences(model, 2, 1)
    model.close()
    assert model.closed


def started(line: bytes, *flags: str) -> "subprocess.Popen[bytes]":
    """Return lzs generate when it has printed a line with some text."""
    command = [LZS, "generate", "-v", "-t", "1", "-c", "4096", "-b", "4096", *flags]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    while line not in process.stderr.readline():
        pass
    return process


def long_text() -> str:
    return " ".join(f"{word} and {word + 1}" for word in range(400))


def test_the_command_says_that_it_was_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text(long_text())
    process = started(b"Params(", "-n", "3", "--json", "-f", str(path))
    threading.Timer(0.5, process.send_signal, (signal.SIGINT,)).start()
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    made = json.loads(out)
    assert (made["finish_reason"], made["tokens"]) == ("interrupted", [])
    assert b"Traceback" not in errors
    assert b"removing memory" not in errors


def test_a_conversation_goes_on() -> None:
    process = started(b" loaded in ", "-cnv", "-n", "200")
    assert process.stdin is not None
    process.stdin.write(long_text().encode() + b"\n")
    process.stdin.flush()
    threading.Timer(2, process.send_signal, (signal.SIGINT,)).start()
    out, errors = process.communicate(b"What is 70 + 479?\n", timeout=120)
    assert (process.returncode, b"549" in out) == (0, True)
    assert errors.count(b"tokens/s") == 2


def test_ctrl_c_comes_after_the_block_whose_log_is_collected() -> None:
    """llama.cpp calls back into Python for each line of its log, and an exception of a callback is lost."""
    reached = []

    def load() -> None:
        with captured_log():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def in_a_program(code: str) -> "subprocess.CompletedProcess[str]":
    begin = """
        import os, signal, sys
        from lzsampler.util.signals import end_by_signals, ended_by, interrupting, uninterrupted

        def send(number):
            os.kill(os.getpid(), number)

        end_by_signals()
    """
    code = textwrap.dedent(begin) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_program_has_several_signals_that_end_it(name: str) -> None:
    done = in_a_program(f"""
        number = signal.{name}
        for _ in range(2):
            reached = []
            try:
                with uninterrupted():
                    with uninterrupted():
                        send(number)
                        reached.append("inside")
                    reached.append("outside")
            except KeyboardInterrupt:
                reached.append("raised")
            assert reached == ["inside", "outside", "raised"], reached
            try:
                send(number)
                raise SystemExit("not raised")
            except KeyboardInterrupt:
                pass
        assert ended_by() == (0 if number == signal.SIGINT else number)
        with uninterrupted():
            pass  # nothing is left over
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_ignored_signal_stays_ignored() -> None:
    """As nohup ignores SIGHUP, and a shell SIGINT for what runs in the background."""
    done = in_a_program("""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_by_signals()
        assert interrupting() == (signal.SIGTERM,)
        send(signal.SIGHUP)
        send(signal.SIGINT)
        try:
            with uninterrupted():
                send(signal.SIGTERM)
        except KeyboardInterrupt:
            sys.exit(7)
    """)
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_long_prompt_ends_at_other_signals_of_the_command(tmp_path: Path, number: int) -> None:
    path = tmp_path / "long.txt"
    path.write_text(long_text())
    process = started(b"Params(", "-n", "3", "--json", "-f", str(path))
    threading.Timer(0.5, process.send_signal, (number,)).start()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert (json.loads(out)["finish_reason"], json.loads(out)["tokens"]) == ("interrupted", [])


def test_ctrl_c_ends_texts_that_are_decoded_token_by_token(model: Model) -> None:
    """A line of the log came with each decode, and Ctrl-C in its callback was lost."""
    request = Request(0, "A", GenerationConfig(GREEDY, max_tokens=4000, ignore_eos=True))
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: list(generate_many(model, [request], n_parallel=1)))
    assert generate(model, "A", GenerationConfig(GREEDY, max_tokens=4)).tokens


def test_a_second_ctrl_c_is_not_left_for_the_next_decode(model: Model) -> None:
    model._decoder.stop()  # as a signal between the decode and `check` leaves it
    model.decode(LONG[:4])
    assert model.n_past == 4


def test_several_ctrl_c_free_no_context_that_a_thread_uses() -> None:
    code = """
        import os, signal, threading, time
        from lzsampler.decoding.config import GenerationConfig
        from lzsampler.decoding.many import Request, generate_many
        from lzsampler.llama.model import Model
        from lzsampler.models import default_model

        model = Model(default_model(), n_ctx=1024, n_threads=1)
        asked = GenerationConfig(max_tokens=10)
        requests = [Request(i, "The king went to the sea. " * 90 + str(i), asked) for i in range(60)]

        def press():
            time.sleep(0.4)
            for _ in range(4):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.003)

        threading.Thread(target=press).start()
        list(generate_many(model, requests, n_parallel=2, n_contexts=2))
    """
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == -signal.SIGINT, done.stderr
        assert "KeyboardInterrupt" in done.stderr


def test_a_signal_in_the_start_of_a_thread_loses_none_that_uses_a_context() -> None:
    code = """
        import os, signal, threading
        from lzsampler.decoding.config import GenerationConfig
        from lzsampler.decoding.many import Request, generate_many
        from lzsampler.llama.model import Model
        from lzsampler.models import default_model

        start = threading.Thread.start

        def start_and_press(thread):
            start(thread)
            if thread.name.startswith("ThreadPoolExecutor"):
                threading.Thread.start = start
                os.kill(os.getpid(), signal.SIGINT)

        model = Model(default_model(), n_ctx=1024, n_threads=1)
        asked = GenerationConfig(max_tokens=10)
        requests = [Request(i, "The king went to the sea. " * 90 + str(i), asked) for i in range(8)]
        threading.Thread.start = start_and_press
        list(generate_many(model, requests, n_parallel=2, n_contexts=2))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGINT, done.stderr
