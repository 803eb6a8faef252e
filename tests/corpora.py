"""Records after an audit, made up: what the tests of summaries, folders and comparisons are about."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lzsampler.auditing.records import LOOPING, Audited, Finding


def finding(**changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "field": "answer",
        "level": "char",
        "rule": "LZR001",
        "start": 30,
        "end": 130,
        "period": 5,
        "copies": 20.0,
        "unit": "ab cd",
        "share": 0.23,
        "tail": True,
        "wasted_tokens": 24,
    }
    return Finding(**{**fields, **changes})


def audited(number: int = 0, *findings: Finding, **changes: Any) -> Audited:
    fields: dict[str, Any] = {
        "file": "a.jsonl",
        "id": f"r{number}",
        "groups": {"model": f"m{number % 2}", "temperature": "0.6"},
        "looping": any(f.rule in LOOPING for f in findings),
        "literal": any(f.rule == "LZR020" for f in findings),
        "characters": 130,
        "metrics": {"rep4": 0.1 * number, "zlib_ratio": 1.5},
        "texts": (("answer", "x" * 130),) if findings else (),
    }
    return Audited(number=number, findings=findings, **{**fields, **changes})


PROSE = (Path(__file__).parents[1] / "bench" / "train_embedded" / "corpus" / "baum-oz.txt").read_text("utf-8")


def transcript(number: int, text: str, model: str = "m") -> str:
    """A line of chat JSONL."""
    messages = [{"role": "user", "content": "Tell me more."}, {"role": "assistant", "content": text}]
    return json.dumps({"id": f"r{number}", "model": model, "messages": messages}) + "\n"


def corpus(folder: Path, files: int = 6, records: int = 40) -> Path:
    """Write files of transcripts, of which record i loops when i % 7 == 3, and line 2 of each file is broken."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        lines = []
        for i in range(records):
            start = (file * records + i) * 97
            text = PROSE[start : start + 300 + 10 * i]
            if i % 7 == 3:
                text += f" and the {i} of it" * (25 + i)
            lines.append(transcript(i, text, f"m{i % 3}"))
        lines.insert(1, "{broken\n")
        (folder / f"{file}.jsonl").write_text("".join(lines))
    return folder


def looping(records: int) -> int:
    """How many records of a file of `corpus` loop."""
    return sum(i % 7 == 3 for i in range(records))


def deadly_file(task: Any, start: Callable[[int], None]) -> Callable[[int], None]:
    """Return ``start`` that kills its process at the file 1.jsonl."""

    def deadly(number: int) -> None:
        start(number)
        if any(shard.file.endswith("1.jsonl") for n, shard in task.shards if n == number):
            os.kill(os.getpid(), signal.SIGKILL)

    return deadly
