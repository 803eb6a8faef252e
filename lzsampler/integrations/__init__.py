"""Logits processors for transformers, vLLM and SGLang, and the modules that they share."""
