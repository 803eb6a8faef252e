"""llama.cpp through llama-cpp-python; nothing else of lzsampler imports llama_cpp.

- `attach` and `LZLlama` put the penalties into an application of llama-cpp-python (dropin.py).
- `penalties` and `sampler` are links for a sampler chain of your own (links.py).
"""

from .dropin import Attachment, LZLlama, Stats, attach
from .links import check_link, exempt_ids, llama_cpp, penalties, sampler
from .vocabulary import DRY_BREAKERS, dry_breaker_ids

__all__ = [
    "DRY_BREAKERS",
    "Attachment",
    "LZLlama",
    "Stats",
    "attach",
    "check_link",
    "dry_breaker_ids",
    "exempt_ids",
    "llama_cpp",
    "penalties",
    "sampler",
]
