"""Transcripts: one line of JSON for each generation, as `lzs generate --save` writes it (docs/transcript.md)."""

import errno
import json
import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .. import __version__
from ..constraint.grammar import Grammar
from ..errors import LzsError
from ..llama.model import Messages, Model
from ..params import SEPARATORS, to_json
from .config import GenerationConfig
from .draft import Draft
from .generation import Generation

VERSION = 1
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}  # JSON allows them, but line readers split there
_NOT_A_DISK = {errno.EINVAL, errno.ENOTSUP, errno.EROFS}  # errors of fsync for a pipe or a terminal


def record(
    model: Model,
    prompt: str | Messages,
    config: GenerationConfig,
    generation: Generation | ValueError | LzsError,
    repetition: Mapping[str, Any] | None,
    *,
    dry_breakers: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the transcript of one `generate` call, from its arguments and result, for `to_line` or `json.dumps`.

    ``generation``: the text, or the error of a request that failed, as `generate_many` yields it. ``repetition``: the
    figures of ``generation.text``, as `Repetition.to_json` of `lzsampler.auditing.repetition` returns them; None for a
    failed request. ``dry_breakers``: DRY's sequence breakers as strings. The strings are written instead of the token
    ids, because there may be thousands of ids. Separators are not written, because they come from the model.
    """
    asked = [] if isinstance(prompt, str) else [dict(message) for message in prompt]
    header = model.header
    params = config.params_for(model)
    if not isinstance(generation, Exception):  # the settings of a failed request may raise an error here
        loops, params = config.loops.settled(params)
        config = replace(config, on_loop=loops)
    return {
        "version": VERSION,
        "id": "lzs-" + secrets.token_hex(12),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "lzsampler": __version__,
        "model": {
            "name": header.name,
            "file": header.path.name,
            "size": header.file_bytes,
            "architecture": header.architecture,
            "quantization": header.quantization,
        },
        "settings": {
            **{name: value for name, value in to_json(params).items() if name not in SEPARATORS},
            "dry_breakers": list(dry_breakers) if params.dry_multiplier else [],
            **config.to_json(),
            "chat": not isinstance(prompt, str),
            "n_ctx": model.n_ctx,
            "n_batch": model.n_batch,
            "n_threads": model.n_threads,
            "n_gpu_layers": model.n_gpu_layers,
            "flash_attn": model.flash_attn,
            "sampler": "cpu" if isinstance(generation, Exception) else generation.sampler,
        },
        **({"prompt": prompt} if isinstance(prompt, str) else {}),
        **(
            {"messages": asked, "finish_reason": "failed", "error": str(generation)}
            if isinstance(generation, Exception)
            else _made(asked, generation, repetition or {}, config.grammar, config.draft)
        ),
    }


def _made(
    asked: Sequence[Mapping[str, Any]],
    generation: Generation,
    repetition: Mapping[str, Any],
    grammar: Grammar | None,
    draft: Draft | None,
) -> dict[str, Any]:
    """Return the fields of a transcript for a text that did not fail."""
    answer = {"role": "assistant", "content": generation.content}
    if generation.reasoning is not None:
        answer["reasoning_content"] = generation.reasoning
    timings, speculated = generation.timings, generation.speculated
    return {
        "messages": [*asked, answer],
        "finish_reason": generation.finish_reason,
        "stop_string": generation.stop_string,
        "loop": None if generation.loop is None else asdict(generation.loop),
        "stuck": None if generation.stuck is None else asdict(generation.stuck),
        "actions": [action.to_json() for action in generation.actions],
        "tokens": list(generation.tokens),
        **({} if grammar is None else _under(grammar, generation)),
        **({} if draft is None or speculated is None else {"draft": {**draft.to_json(), **speculated.to_json()}}),
        "usage": {
            "prompt_tokens": generation.prompt_tokens,
            "completion_tokens": generation.completion_tokens,
            "total_tokens": generation.prompt_tokens + generation.completion_tokens,
        },
        "timings": {
            "prompt_seconds": round(timings.prompt, 6),
            "decode_seconds": round(timings.decode, 6),
            "sampling_seconds": round(timings.sampling, 6),
            "total_seconds": round(timings.total, 6),
            "tokens_per_second": round(generation.tokens_per_second, 3),
            "sampling_microseconds_per_token": round(generation.sampling_microseconds, 3),
        },
        "repetition": dict(repetition),
    }


def _under(grammar: Grammar, generation: Generation) -> dict[str, Any]:
    return {"grammar_match": grammar.match(generation.constrained or ""), "forced_tokens": generation.forced}


def to_line(transcript: dict[str, Any]) -> str:
    """Return a transcript as one line of JSON, which contains no line end of any kind.

    Lone surrogates, which UTF-8 cannot represent, are written as JSON escapes such as ``\\ud800``.
    """
    line = json.dumps(transcript, ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS)
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


class TranscriptFile:
    """A file to which transcripts are appended. The constructor opens the file, so that an unwritable path is reported
    early.

    Several processes may append to one file. A new file without transcripts is not removed: another process may be
    about to append to the file, and that process would lose its lines. Raises LzsError, in one line, when the file
    cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        binary: int = getattr(os, "O_BINARY", 0)  # without it, Windows would write "\r\n" for "\n"
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | binary, 0o666)
        except OSError as error:
            raise self._failure(error) from error
        self._is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)

    def append(self, transcript: dict[str, Any]) -> None:
        """Write one line, and return when the line is on the disk. On failure raise LzsError, with the file unchanged.

        If the file's last line has no line end, one is added first.
        """
        line = (to_line(transcript) + "\n").encode("utf-8")
        if not self._ends_a_line():
            line = b"\n" + line
        written = 0
        try:
            written = os.write(self._file, line)
            if written < len(line):  # on a full disk only a part of the line is written
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            try:
                os.fsync(self._file)
            except OSError as error:
                if error.errno not in _NOT_A_DISK:
                    raise
        except OSError as error:
            if written and self._is_regular:
                self._take_back(written)
            raise self._failure(error) from error

    def _ends_a_line(self) -> bool:
        if not self._is_regular or os.fstat(self._file).st_size == 0:
            return True
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) == b"\n"
        except OSError:  # the file may be writable but not readable
            return True

    def _take_back(self, n: int) -> None:
        """Remove the last ``n`` bytes that this object wrote.

        If another process has written after these bytes, spaces replace the bytes. Spaces before a line are harmless.
        """
        end = os.lseek(self._file, 0, os.SEEK_CUR)
        if os.fstat(self._file).st_size == end:
            os.ftruncate(self._file, end - n)
            return
        with suppress(OSError), self.path.open("r+b") as file:
            file.seek(end - n)
            file.write(b" " * n)

    def _failure(self, error: OSError) -> LzsError:
        return LzsError(f"cannot save the transcript to {self.path}: {error.strerror}")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> "TranscriptFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
