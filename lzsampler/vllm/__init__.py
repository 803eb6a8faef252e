"""The penalties in vLLM: ``--logits-processors lzsampler.vllm:LZProcessor``. docs/engines.md has the details."""

from .processor import LZProcessor

__all__ = ["LZProcessor"]
