"""The embedded models: a target and a draft with one vocabulary, for demonstrations, tests and benchmarks."""

from pathlib import Path


def default_model() -> Path:
    """Return the path of the embedded target model (GGUF, 7.5 M parameters, Q8_0)."""
    return Path(__file__).with_name("tale-7m-q8_0.gguf")


def default_draft() -> Path:
    """Return the path of the embedded draft model (GGUF, 1.1 M parameters, Q8_0, the target's vocabulary)."""
    return Path(__file__).with_name("tale-1m-q8_0.gguf")
