"""Records rows of logits from a model's run into data/logits.npz, for benches with logits as peaked as real ones.

    python bench/record.py [--model MODEL.gguf]

16 rows, float16[16, n_vocab], spread over a sampled text (temperature 0.8, seed 1) from the embedded model.
"""

import argparse
from pathlib import Path

import numpy as np

from lzsampler import Params, Sampler
from lzsampler.llama import llama_cpp
from lzsampler.models import default_model

ROWS, EVERY = 16, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=default_model())
    arguments = parser.parse_args()
    llm = llama_cpp.Llama(str(arguments.model), n_ctx=1024, verbose=False)
    sampler = Sampler(llm.n_vocab(), Params(temperature=0.8, lz_penalty=0.15, seed=1))
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
    path = Path(__file__).with_name("data") / "logits.npz"
    np.savez_compressed(path, logits=np.array(recorded))
    print(f"{path.name}: {len(recorded)} rows of {recorded[0].size} logits")


if __name__ == "__main__":
    main()
