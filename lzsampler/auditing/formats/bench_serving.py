"""Results of vLLM's `bench serve --save-detailed` (JSON) and SGLang's `bench_serving --output-details` (JSONL)."""

from collections.abc import Iterator
from typing import Any

from ..._values import counted
from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import groups


def matches(row: Any) -> bool:
    """Recognise a run by its array of texts. If the texts were not saved, recognise the run by its summary."""
    return isinstance(row, dict) and (
        "generated_texts" in row or {"total_output_tokens", "request_throughput"} <= row.keys()
    )


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the text of every request that did not fail."""
    texts, errors = row.get("generated_texts"), row.get("errors") or []
    if not matches(row):
        raise KeyError("generated_texts")
    if texts is None:
        raise NoTextError("the texts were not saved: run it with --save-detailed (vLLM) or --output-details (SGLang)")
    server = row.get("server_info")
    settings = server if isinstance(server, dict) else {}
    model = row.get("model_id") or row.get("model") or settings.get("model_path") or row.get("tokenizer_id")
    found = groups({**row, "model": model}, source.by)
    failed = 0
    for i, text in enumerate(texts):
        if i < len(errors) and errors[i]:
            failed += 1
        else:
            yield Message(text, None, None, found, i)
    if failed:
        first = str(next(error for error in errors if error))
        raise NoTextError(f"{failed:,} of {counted(len(texts), 'request')} failed: {first[:200]}")


FORMAT = Format("bench", "results of vLLM bench serve and SGLang bench_serving, with texts", matches, messages)
