"""A sampler for llama.cpp / GGUF models that stops small and reasoning models from looping.

The sampler has the LZ penalty (Ginart et al. 2025, arXiv 2504.20131). Functions take and return numpy arrays. A name's
module is loaded when the name is first used, so `import lzsampler` does not even load numpy. `attach`, `generate`,
`evaluate` and `Model` need llama-cpp-python (``pip install llama-cpp-python``). Without llama-cpp-python they can be
imported, but a call raises an ImportError that names the missing package.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import_module("._ffi", __name__)
except ModuleNotFoundError as error:
    if error.name != f"{__name__}._ffi":
        raise
    raise ImportError(
        f"the C extension of lzsampler is not built in {Path(__file__).parents[1]}: run `pip install -e .` there, "
        "or start Python in another folder to use the lzsampler that is installed",
        name=error.name,
    ) from None

from .errors import LzsError, MissingExtra

if TYPE_CHECKING:
    from .auditing.audit_files import audit_files
    from .auditing.audit_texts import audit_texts
    from .auditing.diff import compare
    from .auditing.findings import Report, audit
    from .auditing.rules import Rules
    from .constraint.grammar import Grammar
    from .constraint.tokens import Spelling, TokenBytes
    from .decoding.config import GenerationConfig
    from .decoding.generate import generate
    from .decoding.policy import LoopPolicy
    from .detection import STOP_ON_LOOP, STOP_ON_STUCK, Loop, RepetitionDetection, Stuck, StuckDetection
    from .dropin.attachment import attach
    from .evaluation.cost import cost
    from .evaluation.costs import Costs
    from .evaluation.evaluate import evaluate
    from .evaluation.results import Results
    from .llama.model import Model
    from .params import Params
    from .probing.probe import probe
    from .quantizing.quantize import quantize
    from .reports.save import save, table
    from .sampler import Sampler, lz_bits, sequence_seed
    from .separators import separators_of

__version__ = "0.1.0"

__all__ = [
    "STOP_ON_LOOP",
    "STOP_ON_STUCK",
    "Costs",
    "GenerationConfig",
    "Grammar",
    "Loop",
    "LoopPolicy",
    "LzsError",
    "Model",
    "Params",
    "RepetitionDetection",
    "Report",
    "Results",
    "Rules",
    "Sampler",
    "Spelling",
    "Stuck",
    "StuckDetection",
    "TokenBytes",
    "__version__",
    "attach",
    "audit",
    "audit_files",
    "audit_texts",
    "compare",
    "cost",
    "evaluate",
    "generate",
    "lz_bits",
    "probe",
    "quantize",
    "save",
    "separators_of",
    "sequence_seed",
    "table",
]

_LATE = {  # name -> its module, which is loaded when the name is first used
    "GenerationConfig": "decoding.config",
    "Grammar": "constraint.grammar",
    "Loop": "detection",
    "LoopPolicy": "decoding.recovery",
    "Model": "llama.model",
    "Params": "params",
    "RepetitionDetection": "detection",
    "Report": "auditing.findings",
    "Results": "evaluation.results",
    "Rules": "auditing.rules",
    "STOP_ON_LOOP": "detection",
    "STOP_ON_STUCK": "detection",
    "Sampler": "sampler",
    "Spelling": "constraint.tokens",
    "Stuck": "detection",
    "StuckDetection": "detection",
    "Costs": "evaluation.costs",
    "TokenBytes": "constraint.tokens",
    "attach": "dropin.attachment",
    "audit": "auditing.findings",
    "audit_files": "auditing.audit_files",
    "audit_texts": "auditing.audit_texts",
    "compare": "auditing.diff",
    "evaluate": "evaluation.evaluate",
    "generate": "decoding.generate",
    "lz_bits": "sampler",
    "probe": "probing.probe",
    "quantize": "quantizing.quantize",
    "separators_of": "separators",
    "save": "reports.save",
    "sequence_seed": "sampler",
    "table": "reports.save",
    "cost": "evaluation.cost",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(f".{_LATE[name]}", __name__), name)
    except MissingExtra as error:
        return _without_extra(name, str(error))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _without_extra(name: str, message: str) -> type:
    """Return a substitute for a function or class whose optional package is missing. Calling it raises MissingExtra.

    Without a substitute, `hasattr`, `inspect.getmembers` and ``from lzsampler import *`` would fail.
    """

    def refuse(*_: object, **__: object) -> None:
        raise MissingExtra(message)

    return type(name, (), {"__new__": refuse, "__doc__": message, "__module__": __name__})
