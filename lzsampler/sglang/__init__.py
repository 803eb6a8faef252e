"""The penalties in SGLang: ``LZProcessor.to_str()`` as ``custom_logit_processor``. docs/engines.md has the details."""

from .processor import LZProcessor

__all__ = ["LZProcessor"]
