"""What the processors for transformers, vLLM and SGLang share: settings of a request, its history, edits of a batch."""
