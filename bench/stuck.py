"""How often a right text is called stuck, by kind, and which stuck texts are found, and after how many tokens.

    python bench/stuck.py [--vocab VOCAB.gguf] [--all] [--json]

Right texts: bench/negatives.py. Stuck texts: `data/stuck.jsonl.gz`, greedy texts without a penalty of two models
(data/README.md); and texts made here, a page of a book and then sentences of another one that come again and again:
under rising numbers, with another word in each copy, in another order each time, or just so (tests/planted.py).
Every text goes through the tokenizer of --vocab (the embedded model's, if none is given) into the detector of
`Sampler.stuck`; and whole into the audit, whose rule LZR011 looks at words. --all compares settings, too.
"""

import argparse
import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from lzsampler import STOP_ON_LOOP, STOP_ON_STUCK, Params, Sampler, StuckDetection, audit  # noqa: E402
from lzsampler.auditing.stuck import stretches  # noqa: E402
from lzsampler.models import default_model  # noqa: E402
from lzsampler.util.stats import wilson  # noqa: E402
from measure import DATA, report  # noqa: E402
from negatives import pieces  # noqa: E402
from planted import planted, prose  # noqa: E402

EACH = 60  # texts of a kind that are made here
COPIES = 40
Tokens = npt.NDArray[np.int32]


class Text(NamedTuple):
    """A text of a kind; ``onset``: the character where it begins to repeat itself, if that is known."""

    kind: str
    text: str
    onset: int | None = None


def stuck_texts() -> Iterator[Text]:
    """Yield the texts that are stuck: recorded ones, in which the audit finds a loop or LZR011, and made ones."""
    with gzip.open(DATA / "stuck.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            yield Text(row["model"], row["text"])
    for kind, make in MADE.items():
        rng = random.Random(kind)
        for _ in range(EACH):
            before = prose(rng, rng.randrange(500, 4000)) + "\n\n"
            yield Text(kind, before + make(rng, _sentences(rng)), len(before))
    for sample in planted(seed=13, n=2 * EACH):
        if sample.end - sample.start >= 3 * sample.period + 2000:
            yield Text("planted loops", sample.text, sample.start)


def _sentences(rng: random.Random) -> list[str]:
    """Return 12 sentences of a book, of 10 to 40 words each."""
    while True:
        found = [" ".join(s.split()) for s in re.split(r"(?<=[.!?])\s", prose(rng, 9000))]
        found = [s for s in dict.fromkeys(found) if 10 <= len(s.split()) <= 40]
        if len(found) >= 12:
            return found[:12]


def _rising(rng: random.Random, sentences: list[str]) -> str:
    return "".join(f"{number}. {sentences[0]}\n" for number in range(1, COPIES + 1))


def _number_inside(rng: random.Random, sentences: list[str]) -> str:
    words = sentences[0].split()
    at = rng.randrange(2, len(words) - 2)
    return "".join(" ".join([*words[:at], str(number), *words[at:]]) + " " for number in range(100, 100 + COPIES))


def _another_word(rng: random.Random, sentences: list[str]) -> str:
    """Two sentences, of which one has another word somewhere in each copy."""
    words, pool = sentences[0].split(), " ".join(sentences[2:]).split()
    made = []
    for _ in range(COPIES):
        copy = list(words)
        copy[rng.randrange(len(copy))] = rng.choice(pool)
        made += [" ".join(copy), sentences[1]]
    return " ".join(made)


def _another_order(rng: random.Random, sentences: list[str]) -> str:
    made = []
    for _ in range(COPIES // 3):
        made += rng.sample(sentences[:5], 5)
    return " ".join(made)


MADE: dict[str, Callable[[random.Random, list[str]], str]] = {
    "rising numbers": _rising,
    "a number inside": _number_inside,
    "another word": _another_word,
    "another order": _another_order,
}


def first(tokens: Tokens, n_vocab: int, setting: StuckDetection) -> tuple[int, int] | None:
    """Return where `Sampler.stuck` begins and ends when the tokens are accepted one after the other."""
    sampler = Sampler(n_vocab, Params(stuck_detection=setting))
    accept = sampler.accept
    for n, token in enumerate(tokens.tolist(), 1):
        accept(token)
        if n % 64 == 0 and sampler.stuck:
            break
    return (sampler.stuck.start, sampler.stuck.end) if sampler.stuck else None


def is_stuck(tokens: Tokens, setting: StuckDetection) -> bool:
    """Return whether `first` finds something, by the scan for whole texts, which finds the same and is faster."""
    found = stretches(
        tokens,
        threshold=setting.threshold,
        ngram=setting.ngram_size,
        min_count=setting.min_count,
        weight=setting.weight,
        window=setting.window,
    )
    return bool(found.start.size)


def loop_end(tokens: Tokens, n_vocab: int) -> int | None:
    """Return where the safe setting for exact loops stops."""
    sampler = Sampler(n_vocab, Params(repetition_detection=STOP_ON_LOOP))
    for n, token in enumerate(tokens.tolist(), 1):
        sampler.accept(token)
        if n % 64 == 0 and sampler.loop:
            break
    return sampler.loop.end if sampler.loop else None


def rate(found: int, of: int) -> str:
    low, high = wilson(found, of)
    return f"{found} of {of}: {100 * found / of:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=Path, default=default_model(), help="GGUF whose tokenizer reads the texts")
    parser.add_argument("--all", action="store_true", help="compare settings as well")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    from lzsampler.llama.vocabulary import vocabulary  # llama-cpp-python is needed here only

    vocab = vocabulary(arguments.vocab)
    n_vocab = vocab.n_vocab
    rights = [Text(piece.kind, piece.text) for piece in pieces()]
    stuck = list(stuck_texts())
    tokens = {id(text): vocab.tokenize(text.text) for text in (*rights, *stuck)}
    rows: list[dict[str, Any]] = []
    settings = [STOP_ON_STUCK]
    if arguments.all:
        settings += [
            StuckDetection(threshold, ngram, count, weight)
            for ngram in (8, 10, 12)
            for count in (2, 3)
            for weight in (2, 4, 8)
            for threshold in (96, 128, 192)
        ]
    for setting in settings:
        false = sum(is_stuck(tokens[id(text)][0], setting) for text in rights)
        true = sum(is_stuck(tokens[id(text)][0], setting) for text in stuck)
        rows.append(
            {"setting": str(setting), "false alarms": rate(false, len(rights)), "found": rate(true, len(stuck))}
        )
    report(rows, arguments.json)
    rows = []
    for kind in dict.fromkeys(text.kind for text in rights):
        of = [text for text in rights if text.kind == kind]
        online = sum(is_stuck(tokens[id(text)][0], STOP_ON_STUCK) for text in of)
        words = sum(any(f.rule == "LZR011" for f in audit(text.text).findings) for text in of)
        rows.append({"right texts": kind, "Sampler.stuck": rate(online, len(of)), "LZR011": rate(words, len(of))})
    report(rows, arguments.json)
    rows = []
    for kind in dict.fromkeys(text.kind for text in stuck):
        of = [text for text in stuck if text.kind == kind]
        found = [first(tokens[id(text)][0], n_vocab, STOP_ON_STUCK) for text in of]
        exact = sum(loop_end(tokens[id(text)][0], n_vocab) is not None for text in of)
        audits = [audit(text.text) for text in of]
        delays = [
            hit[1] - int(np.searchsorted(tokens[id(text)][1], text.onset))
            for text, hit in zip(of, found, strict=True)
            if hit and text.onset is not None
        ]
        rows.append(
            {
                "stuck texts": kind,
                "n": len(of),
                "Sampler.stuck": sum(hit is not None for hit in found),
                "Sampler.loop": exact,
                "tokens after the onset, median": float(np.median(delays)) if delays else None,
                "audit loops": sum(made.looping for made in audits),
                "LZR011": sum(any(f.rule == "LZR011" for f in made.findings) for made in audits),
                "either": sum(made.looping or any(f.rule == "LZR011" for f in made.findings) for made in audits),
            }
        )
    report(rows, arguments.json)


if __name__ == "__main__":
    main()
