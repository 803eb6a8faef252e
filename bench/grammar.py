"""A token under a grammar: llama-cpp-python's chain against ours with fast_grammar, on the same logits in turn.

    python bench/grammar.py [--vocabulary VOCAB.gguf] [--tokens 60] [--json]

Timed is `LlamaSampler.sample`, all of it: candidates, chain, grammar, accept. The chain is llama-cpp-python's own with
the LZ penalty: greedy, or temperature 0.8 after top-k 40, top-p 0.95, min-p 0.05. `text` allows anything but a tilde,
`prose` letters, spaces and a few marks, `json` a JSON value; `refused` is how many of our picks the grammar refused,
and those cost more.

Without --vocabulary the model is the embedded one (V = 4,096). With it, a model of one layer with random weights and
that vocabulary is made for the run (needs `pip install gguf`); its logits are noise, so a narrow grammar refuses nearly
every pick, which is the worst case.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from lzsampler import Params
from lzsampler.dropin import attach
from lzsampler.llama import llama_cpp
from lzsampler.models import default_model
from measure import report

GRAMMARS = {
    "text": "root ::= [^~]*",
    "prose": "root ::= [a-z ,.;'\\n\"A-Z-]*",
    "json": r"""
root   ::= value
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" [^"\\\x7F\x00-\x1F]* "\"" ws
number ::= "-"? [0-9]+ ("." [0-9]+)? ws
ws     ::= [ \n\t]*
""",
}
SAMPLING: dict[str, dict[str, Any]] = {"greedy": {"temp": 0.0}, "temperature 0.8": {"temp": 0.8}}
WIDTH, FEED_FORWARD = 64, 128


def write_random_model(vocabulary: Path, path: Path) -> None:
    """Write a Llama model of one layer with random weights and the vocabulary of another file."""
    import gguf

    reader = gguf.GGUFReader(vocabulary)
    writer = gguf.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], kind)
    n_vocab = len(reader.fields["tokenizer.ggml.tokens"].data)
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(n_vocab)
    rng = np.random.default_rng(1)

    def add(name: str, *shape: int) -> None:
        values = np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))

    add("token_embd", n_vocab, WIDTH)
    add("output", n_vocab, WIDTH)
    add("output_norm", WIDTH)
    for name in ("attn_norm", "ffn_norm"):
        add(f"blk.0.{name}", WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}", WIDTH, WIDTH)
    for name, rows, columns in (
        ("gate", FEED_FORWARD, WIDTH),
        ("up", FEED_FORWARD, WIDTH),
        ("down", WIDTH, FEED_FORWARD),
    ):
        add(f"blk.0.ffn_{name}", rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextmanager
def opened(vocabulary: Path | None) -> Iterator[Any]:
    """Open the model, random or embedded, for as long as the bench runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = default_model()
        if vocabulary:
            path = Path(folder) / "random.gguf"
            write_random_model(vocabulary, path)
        llm = llama_cpp.Llama(str(path), n_ctx=1024, n_threads=1, verbose=False)
        yield llm
        llm.close()


def measure(llm: Any, name: str, sampling: str, n_tokens: int) -> dict[str, Any]:
    """Return one row of the table."""
    grammar = llama_cpp.llama_grammar.LlamaGrammar.from_string(GRAMMARS[name], verbose=False)
    settings = {**SAMPLING[sampling], "grammar": grammar}
    llm.reset()
    llm.set_seed(1)
    llm.eval(llm.tokenize(b"The answer is"))
    slow = llm._init_sampler(**settings)
    with attach(llm, Params(lz_rule="paper", lz_penalty=0.15), fast_grammar=True):
        fast = llm._init_sampler(**settings)
    times = np.empty((n_tokens, 2))
    for i in range(n_tokens):
        start = perf_counter_ns()
        fast.sample(llm._ctx, -1)
        middle = perf_counter_ns()
        token = slow.sample(llm._ctx, -1)
        times[i] = middle - start, perf_counter_ns() - middle
        if llama_cpp.llama_vocab_is_eog(llm._model.vocab, token):
            times = times[: i + 1]
            break
        llm.eval([token])
    refused = fast.refused
    fast.close()
    slow.close()
    ours, theirs = np.median(times, axis=0) / 1e3
    mean_ours, mean_theirs = np.mean(times, axis=0) / 1e3
    return {
        "V": llm.n_vocab(),
        "grammar": name,
        "sampling": sampling,
        "tokens": len(times),
        "refused": refused,
        "llama-cpp-python us": float(theirs),
        "ours us": float(ours),
        "ratio": float(theirs / ours),
        "ratio of means": float(mean_theirs / mean_ours),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with opened(arguments.vocabulary) as llm:
        results = [measure(llm, name, sampling, arguments.tokens) for name in GRAMMARS for sampling in SAMPLING]
    report(results, arguments.json)


if __name__ == "__main__":
    main()
