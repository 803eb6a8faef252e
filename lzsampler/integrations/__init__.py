"""Logits processors for transformers, vLLM and SGLang, and their shared parts: request settings, history, edits."""
