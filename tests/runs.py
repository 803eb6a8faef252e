"""Made-up work folders of an evaluation: what the tests of its results and its report are given."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lzsampler import Params
from lzsampler.auditing.repetition import repetition
from lzsampler.evaluation.grid import Grid, Setting
from lzsampler.evaluation.run_folder import RUN, TIMINGS, TRANSCRIPTS

LOOP = "Wait, let me think. " * 30


def grid(kinds: Sequence[str] = ("lz", "repetition"), temperatures: Sequence[float] = (0.0, 0.6)) -> Grid:
    """Settings of no penalty, and of each kind at two strengths."""
    settings = [Setting(f"T={t:g}", "none", Params(temperature=t)) for t in temperatures]
    for kind in kinds:
        for strength in (0.1, 0.2):
            for t in temperatures:
                params = Params(temperature=t, lz_penalty=strength)
                settings.append(Setting(f"T={t:g} {kind}={strength}", kind, params, strength))
    return Grid("made up", tuple(settings), (1, 2), 200)


def transcript(
    setting: Setting, prompt: str, seed: int, text: str, *, task: str = "", right: bool | None = None, asked: str = "?"
) -> dict[str, Any]:
    found = repetition(text)
    ours = {"setting": setting.name, "kind": setting.kind, "prompt": prompt, "task": task, "seed": seed}
    return {
        "eval": {**ours, "answer": None if right is None else "42", "right": right},
        "version": 1,
        "lzsampler": "0.1.0",
        "model": {"name": "made up", "file": "made-up.gguf"},
        "settings": {"temperature": setting.params.temperature},
        "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": text}],
        "finish_reason": "length",
        "tokens": [sum(map(ord, word)) for word in text.split()],
        "usage": {"prompt_tokens": 1, "completion_tokens": max(1, len(text) // 3), "total_tokens": 1 + len(text) // 3},
        "repetition": {"run": None, "loops": found.loops, "rep4": found.rep4, "zlib_ratio": found.zlib_ratio},
    }


def timing(made: dict[str, Any], sampling: float, rest: float) -> dict[str, Any]:
    ours = {name: made["eval"][name] for name in ("setting", "prompt", "seed")}
    seconds = {"prompt_seconds": rest / 4, "decode_seconds": 3 * rest / 4, "sampling_seconds": sampling}
    return {**ours, "tokens": made["usage"]["completion_tokens"], **seconds}


def write_run(
    path: Path,
    of: Grid,
    transcripts: Iterable[dict[str, Any]],
    timings: Iterable[dict[str, Any]] = (),
    model: str = "made-up.gguf",
) -> Path:
    path.mkdir(parents=True)
    manifest = {"version": 1, "model": {"file": model, "sha256": "0"}, "n_ctx": 256, "grid": of.to_json(), "rows": "0"}
    (path / RUN).write_text(json.dumps(manifest), encoding="utf-8")
    for name, rows in ((TRANSCRIPTS, transcripts), (TIMINGS, timings)):
        lines = [json.dumps(row) + "\n" for row in rows]
        if lines:
            (path / name).write_text("".join(lines), encoding="utf-8")
    return path
