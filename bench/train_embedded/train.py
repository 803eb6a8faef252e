"""Train a small target or draft model from a folder of text and write it as GGUF.

    python bench/train_embedded/train.py --text DIR --out DIR --model target --minutes 55

Writes `tokenizer.json`, `train-<model>.jsonl` (the log, appended to) and `tale-<millions>m-q8_0.gguf` into
the output folder. Ctrl-C ends the training after the step under way; what there is is measured and exported.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from data import SPECIAL_TOKENS, Batches, Encode, Tokens, draw_tasks, held_out_windows, join_books, read_books
from export import model_name, write_gguf
from model import SHAPES, Llama, make_optimizers, scale_rates
from tokenizer import Vocabulary, load_tokenizer, train_tokenizer, vocabulary

STEP_TOKENS = 8192
PART_TOKENS = 4096  # a step runs in parts of this size, whose logits are 64 MiB in float32; more is slower
SHORT_CONTEXT, LONG_CONTEXT = 256, 1024  # the long one must not exceed `Shape.context`
WARM_UP_STEPS = 50
# The schedule is by share of the time, so that it fits any machine: the rate stays constant up to
# CONSTANT_UNTIL and falls linearly to FINAL_RATE; rows are long from LONG_FROM on.
CONSTANT_UNTIL, FINAL_RATE, LONG_FROM = 0.40, 0.02, 0.78
TOKENIZER_TASKS = 4000  # beside the books; that many give the words of the tasks tokens of their own
LOG_EVERY, HELD_OUT_EVERY = 20, 200  # steps
HELD_OUT_WINDOWS, HELD_OUT_LENGTH = 24, 512


@dataclass(frozen=True)
class Corpus:
    """A folder of books as two token streams, and the vocabulary that they are in."""

    encode: Encode
    vocabulary: Vocabulary
    train: Tokens
    held_out: Tokens


class Log:
    """One JSON object a line, to standard output and to the end of a file; seconds count from its making."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._start = time.monotonic()

    def seconds(self) -> float:
        """The time since the log was made."""
        return time.monotonic() - self._start

    def write(self, step: int, **values: float) -> None:
        """A line for `step`, the number of steps done; losses are in nats a token."""
        record = {"step": step, "seconds": round(self.seconds(), 1), "tokens": step * STEP_TOKENS, **values}
        line = json.dumps({key: round(value, 4) for key, value in record.items()})
        print(line, flush=True)
        self._file.write(line + "\n")
        self._file.flush()


def rate_factor(step: int, share: float) -> float:
    """The learning rate as a share of its full value, at `step` (from 0) and `share` of the time."""
    fall = max(0.0, (share - CONSTANT_UNTIL) / (1 - CONSTANT_UNTIL))
    return min(1.0, (step + 1) / WARM_UP_STEPS) * (1 - (1 - FINAL_RATE) * min(1.0, fall))


def mean_loss(model: Llama, tokens: Tensor) -> Tensor:
    """Cross-entropy in nats a token of `tokens` (rows, length + 1), each predicted from those before it."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(tokens[:, :-1])
        return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def backward(model: Llama, batch: Tensor) -> float:
    """Add the gradient of the batch's mean loss to the parameters, part by part; the loss."""
    total = 0.0
    for part in torch.split(batch, PART_TOKENS // (batch.shape[1] - 1)):
        loss = mean_loss(model, part) * (len(part) / len(batch))
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    return total


@torch.inference_mode()
def held_out_loss(model: Llama, stream: Tokens) -> float:
    """Mean loss over windows of held-out book text, one at a time."""
    windows = torch.from_numpy(held_out_windows(stream, HELD_OUT_WINDOWS, HELD_OUT_LENGTH))
    return fmean(mean_loss(model, window.unsqueeze(0)).item() for window in windows)


@contextmanager
def stop_on_ctrl_c() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; a second one interrupts as usual."""
    stop = threading.Event()

    def handle(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def train(model: Llama, corpus: Corpus, minutes: float, seed: int, log: Log) -> bool:
    """Train `model` for `minutes`; whether it came to the end without Ctrl-C."""
    batches = Batches(corpus.train, corpus.encode, seed)
    optimizers = make_optimizers(model)
    step = 0
    with stop_on_ctrl_c() as stop:
        while not stop.is_set() and (share := log.seconds() / (60 * minutes)) < 1:
            context = LONG_CONTEXT if share >= LONG_FROM else SHORT_CONTEXT
            batch = torch.from_numpy(batches.draw(STEP_TOKENS // context, context))
            rate = rate_factor(step, share)
            scale_rates(optimizers, rate)
            loss = backward(model, batch)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            step += 1
            if step == 1 or step % LOG_EVERY == 0:
                log.write(step, context=context, rate=rate, loss=loss)
            if step % HELD_OUT_EVERY == 0:
                log.write(step, held_out_loss=held_out_loss(model, corpus.held_out))
        log.write(step, held_out_loss=held_out_loss(model, corpus.held_out))
        return not stop.is_set()


def read_corpus(text: Path, saved_tokenizer: Path, reuse: bool) -> Corpus:
    """The books of a folder as tokens, by a tokenizer trained on them and then saved, or by a saved one."""
    books = read_books(text)
    if not books:
        raise ValueError(f"no .txt file in {text}")
    if reuse:
        tokenizer = load_tokenizer(saved_tokenizer, SPECIAL_TOKENS)
    else:
        texts = [book.train for book in books]
        for task in islice(draw_tasks(seed=0), TOKENIZER_TASKS):
            texts += [task.question, task.worked, task.answer]
        tokenizer = train_tokenizer(texts, SPECIAL_TOKENS)
        tokenizer.save(str(saved_tokenizer))

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text).ids)

    train_stream = join_books([book.train for book in books], encode)
    if len(train_stream) <= LONG_CONTEXT:
        raise ValueError(f"{len(train_stream)} tokens in {text}, a row of training needs {LONG_CONTEXT + 1}")
    held_out = join_books([book.held_out for book in books], encode)
    return Corpus(encode, vocabulary(tokenizer), train_stream, held_out)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line; wrong values end the program with status 2."""
    parser = argparse.ArgumentParser(prog="train.py", description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="folder of *.txt, one paragraph a line")
    parser.add_argument("--out", type=Path, required=True, help="folder for model, tokenizer and log")
    parser.add_argument("--model", choices=SHAPES, required=True)
    parser.add_argument("--minutes", type=float, default=55.0, help="training time (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="CPU threads (default: torch's choice)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches (default: %(default)s)")
    parser.add_argument(
        "--tokenizer",
        choices=("train", "reuse"),
        default="train",
        help="reuse: OUT/tokenizer.json as it is, so that a draft shares the target's vocabulary for certain",
    )
    parser.add_argument(
        "--license",
        default="CC0-1.0",
        help="SPDX id written into the file (default: %(default)s, fits the corpus)",
    )
    options = parser.parse_args(arguments)
    if not 0 < options.minutes < math.inf:
        parser.error(f"--minutes must be positive, not {options.minutes}")
    if options.threads is not None and options.threads < 1:
        parser.error(f"--threads must be at least 1, not {options.threads}")
    if options.seed < 0:
        parser.error(f"--seed must not be negative, not {options.seed}")
    if not options.text.is_dir():
        parser.error(f"--text {options.text} is not a folder")
    if options.tokenizer == "reuse" and not (options.out / "tokenizer.json").is_file():
        parser.error(f"--tokenizer reuse: no tokenizer.json in {options.out}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Train, export; the exit status: 0, 1 where text or folder are of no use, 130 after Ctrl-C."""
    options = parse(arguments)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        corpus = read_corpus(options.text, options.out / "tokenizer.json", options.tokenizer == "reuse")
    except (OSError, ValueError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    shape = SHAPES[options.model]
    model = Llama(shape, len(corpus.vocabulary.tokens))
    log = Log(options.out / f"train-{options.model}.jsonl")
    finished = train(model, corpus, options.minutes, options.seed, log)

    tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    path = options.out / f"{model_name(tensors).replace(' ', '-').lower()}-q8_0.gguf"
    write_gguf(path, shape, tensors, corpus.vocabulary, options.license)
    print(path, file=sys.stderr)
    return 0 if finished else 130


if __name__ == "__main__":
    sys.exit(main())
