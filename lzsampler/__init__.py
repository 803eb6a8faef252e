"""A sampler for llama.cpp / GGUF models that stops small and reasoning models from looping.

The LZ penalty (Ginart et al. 2025, arXiv 2504.20131) and the sampler around it, numpy in and numpy out. What touches
llama.cpp is in `lzsampler.llama` and `lzsampler.generate`; importing this package loads numpy and nothing heavier.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import LzsError
from .params import STOP_ON_LOOP, Params, RepetitionDetection
from .sampler import Loop, Sampler, lz_bits, sequence_seed

if TYPE_CHECKING:
    from .auditing.findings import Report, audit
    from .auditing.rules import Rules
    from .auditing.run import audit_files
    from .evaluation.results import Results
    from .evaluation.run import evaluate

__version__ = "0.1.0"

__all__ = [
    "STOP_ON_LOOP",
    "Loop",
    "LzsError",
    "Params",
    "RepetitionDetection",
    "Report",
    "Results",
    "Rules",
    "Sampler",
    "__version__",
    "audit",
    "audit_files",
    "evaluate",
    "lz_bits",
    "sequence_seed",
]

_LATE = {  # name: its module, which a sampler does not need, loaded when it is asked for
    "Report": "auditing.findings",
    "Results": "evaluation.results",
    "Rules": "auditing.rules",
    "audit": "auditing.findings",
    "audit_files": "auditing.run",
    "evaluate": "evaluation.run",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)
