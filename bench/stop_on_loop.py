"""When does `--on-loop stop` end a text? Settings of its detector on texts that loop and on texts that should pass.

    python bench/stop_on_loop.py [--vocab VOCAB.gguf] [--files 2000] [--json] FOLDER_OR_FILE ...

Texts that loop: greedy text of the embedded model without LZ for the package's prompts, 512 tokens, where a
unit with two distinct characters comes 20 times in a row. Texts that should pass: the files given (code, documents,
books), the first 60 KB and 8,000 tokens of each, through any GGUF's vocabulary. Every setting gets the same tokens.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lzsampler import STOP_ON_LOOP, Loop, Params, RepetitionDetection, Sampler, audit
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.llama import llama_cpp
from lzsampler.llama.model import Model
from lzsampler.models import default_model, default_prompts
from measure import report

PROMPTS = default_prompts()
N_PREDICT = 512
SETTINGS = [
    STOP_ON_LOOP,
    *(
        RepetitionDetection(512, shortest, count)
        for shortest, count in ((1, 4), (1, 8), (1, 20), (4, 8), (16, 8), (8, 4))
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--vocab", type=Path, default=default_model(), help="GGUF whose tokenizer reads the texts")
    parser.add_argument("--files", type=int, default=2000, help="most files, drawn at random (the same every time)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    n_vocab, passing = read(arguments.texts, arguments.vocab, arguments.files)
    n_model, looping = texts_that_loop()
    results = []
    for setting in SETTINGS:
        found = [first_loop(tokens, n_model, setting) for tokens in looping]
        stopped = sum(first_loop(tokens, n_vocab, setting) is not None for tokens in passing)
        results.append(
            {
                "min_pattern_size": setting.min_pattern_size,
                "min_count": setting.min_count,
                "loops stopped": f"{sum(loop is not None for loop in found)}/{len(looping)}",
                "after tokens": sum(N_PREDICT if loop is None else loop.end for loop in found) / len(looping),
                "files stopped": f"{stopped}/{len(passing)}",
                "percent": 100 * stopped / len(passing),
            }
        )
    report(results, arguments.json)


def read(paths: list[Path], vocab: Path, most: int) -> tuple[int, list[list[int]]]:
    """Return (n_vocab, tokens of each file that is text and not tiny)."""
    llm: Any = llama_cpp.Llama(str(vocab), vocab_only=True, verbose=False)
    files = sorted(file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())
    random.Random(1).shuffle(files)
    texts = []
    for text in decoded(files[:most]):
        tokens = llm.tokenize(text, add_bos=False)[:8000]
        if len(tokens) >= 64:
            texts.append(tokens)
    n_vocab = llm.n_vocab()
    llm.close()
    return n_vocab, texts


def decoded(files: list[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as opened:
            data = opened.read(60_000)
        text = data.decode(errors="ignore").encode()
        if len(text) > len(data) - 4 and b"\0" not in text:  # text, its last character maybe cut
            yield text


def texts_that_loop() -> tuple[int, list[list[int]]]:
    """Return (n_vocab, tokens of each)."""
    params, looping = Params(temperature=0.0), []
    with Model(default_model()) as model:
        for line in PROMPTS.read_text(encoding="utf-8").splitlines():
            made = generate(model, json.loads(line)["prompt"], GenerationConfig(params, max_tokens=N_PREDICT))
            if audit(made.text, levels="char", near=False, length_copies=20).looping:
                looping.append(list(made.tokens))
        return model.n_vocab, looping


def first_loop(tokens: list[int], n_vocab: int, setting: RepetitionDetection) -> Loop | None:
    sampler = Sampler(n_vocab, Params(repetition_detection=setting))
    for token in tokens:
        sampler.accept(token)
    return sampler.loop


if __name__ == "__main__":
    main()
