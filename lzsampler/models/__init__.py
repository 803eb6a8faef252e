"""The embedded models, a target and a draft with one vocabulary, and prompts and tasks that suit them."""

from pathlib import Path


def default_model() -> Path:
    """Return the path of the embedded target model (GGUF, 7.5 M parameters, Q8_0)."""
    return Path(__file__).with_name("tale-7m-q8_0.gguf")


def default_draft() -> Path:
    """Return the path of the embedded draft model (GGUF, 1.1 M parameters, Q8_0, the target's vocabulary)."""
    return Path(__file__).with_name("tale-1m-q8_0.gguf")


def default_prompts() -> Path:
    """Return the path of 40 prompts, beginnings of paragraphs that the models were not trained on (JSON Lines)."""
    return Path(__file__).with_name("prompts.jsonl")


def default_tasks() -> Path:
    """Return the path of 300 small tasks with answers, 50 of each kind the models were trained on (JSON Lines)."""
    return Path(__file__).with_name("tale_tasks.jsonl")


def everyday_tasks() -> Path:
    """Return the path of 382 tasks for any chat model: copies, facts, counting, lists and worked sums (JSON Lines)."""
    return Path(__file__).with_name("everyday_tasks.jsonl")


def everyday_prompts() -> Path:
    """Return the path of 100 prompts that ask for a long answer, held out from every search (JSON Lines)."""
    return Path(__file__).with_name("everyday_prompts.jsonl")


def search_prompts() -> Path:
    """Return the path of 100 more such prompts, to search settings on (JSON Lines)."""
    return Path(__file__).with_name("search_prompts.jsonl")


def chapter_prompts() -> Path:
    """Return the path of 24 prompts that ask for texts of thousands of tokens (JSON Lines)."""
    return Path(__file__).with_name("chapter_prompts.jsonl")
