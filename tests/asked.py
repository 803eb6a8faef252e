"""`asked`: one flat list of settings as a `GenerationConfig` and the other arguments of `generate`."""

from typing import Any

from lzsampler import Params
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.policy import LOOP_KEYS, LoopPolicy

_HOOKS = ("reuse_context", "on_text", "on_explanation")


def asked(params: Params, **settings: Any) -> tuple[GenerationConfig, dict[str, Any]]:
    """Settings of loops have the names that they have in files."""
    hooks = {name: settings.pop(name) for name in _HOOKS if name in settings}
    loops = {name: settings.pop(name) for name in LOOP_KEYS if name in settings}
    return GenerationConfig(params, on_loop=LoopPolicy.from_json(loops), **settings), hooks
