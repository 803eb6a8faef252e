"""Records what benches make rows of logits from: data/logits.npz by a model's run, data/vocabularies.npz by tokenizers.

    python bench/record.py [--model MODEL.gguf] [--vocabulary VOCAB.gguf ...]

logits.npz: 16 rows, float16[16, n_vocab], spread over a sampled text (temperature 0.8, seed 1) from the embedded model.
vocabularies.npz, when vocabularies are named (GGUF files, weights not needed): how often each token, and each token
after some frequent one, comes in four books of train_embedded/corpus. measure.py makes bigram log-probabilities of it,
whose large values lie at the ids where a real model of that vocabulary has them.
"""

import argparse
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lzsampler import Params, Sampler
from lzsampler.llama import llama_cpp
from lzsampler.models import default_model, find_model

ROWS, EVERY = 16, 20
CONTEXTS = 8
BOOKS = ("carroll-alice", "doyle-sherlock", "grimm-tales", "melville-moby_dick")
DATA = Path(__file__).with_name("data")


def record_model(path: Path) -> None:
    """Sample a text and keep some rows."""
    llm = llama_cpp.Llama(str(path), n_ctx=1024, verbose=False)
    sampler = Sampler(llm.n_vocab(), Params(temperature=0.8, lz_rule="paper", lz_penalty=0.15, seed=1))
    llm.eval(llm.tokenize(b"Once upon a time there was"))
    recorded = []
    for i in range(ROWS * EVERY):
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(llm.ctx, -1), (llm.n_vocab(),))
        if i % EVERY == EVERY - 1:
            recorded.append(logits.astype(np.float16))
        token = sampler.sample(logits)
        sampler.accept(token)
        llm.eval([token])
    llm.close()
    np.savez_compressed(DATA / "logits.npz", logits=np.array(recorded))
    print(f"logits.npz: {len(recorded)} rows of {recorded[0].size} logits")


def record_vocabularies(paths: list[Path]) -> None:
    """Count tokens and pairs of tokens."""
    books = [Path(__file__).parent / "train_embedded" / "corpus" / f"{book}.txt" for book in BOOKS]
    counts: dict[str, npt.NDArray[np.int32]] = {}
    for path in paths:
        llm = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
        tokens = [t for book in books for t in llm.tokenize(book.read_bytes(), add_bos=False)]
        n_vocab = llm.n_vocab()
        llm.close()
        frequent = [token for token, _ in Counter(tokens).most_common(CONTEXTS)]
        rows = [Counter(tokens)] + [Counter(b for a, b in pairwise(tokens) if a == context) for context in frequent]
        for i, row in enumerate(rows):  # row 0: every token; the others: after a context
            counts[f"{n_vocab}_{i}"] = np.array(sorted(row.items()), np.int32).T
        print(f"vocabularies.npz: {path.name}, {n_vocab} tokens, {len(rows[0])} of them in the books")
    np.savez_compressed(DATA / "vocabularies.npz", allow_pickle=False, **counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=find_model, default=default_model())
    parser.add_argument("--vocabulary", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    record_model(arguments.model)
    if arguments.vocabulary:
        record_vocabularies(arguments.vocabulary)


if __name__ == "__main__":
    main()
