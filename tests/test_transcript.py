"""Transcripts: what is in a record, and how it gets into a file."""

import errno
import json
import os
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_cpp")

from lzsampler import LzsError, Params
from lzsampler.auditing.repetition import repetition
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.decoding.generation import Generation
from lzsampler.decoding.transcript import TranscriptFile, record, to_line
from lzsampler.llama.model import Model
from lzsampler.models import default_model
from lzsampler.params import SEPARATORS

DOCUMENT = (Path(__file__).parents[1] / "docs" / "transcript.md").read_text(encoding="utf-8")
QUESTION = [{"role": "system", "content": ""}, {"role": "user", "content": "What is 70 + 479?"}]
GREEDY = Params(temperature=0.0, lz_penalty=0.15, seed=7)


@pytest.fixture(scope="module")
def chat() -> dict[str, Any]:
    with Model(default_model(), n_ctx=300, n_threads=1) as model:
        made = generate(model, QUESTION, GenerationConfig(GREEDY, max_tokens=200, stop=("\n",)))
        figures = repetition(made.text).to_json()
        return record(model, QUESTION, GenerationConfig(GREEDY, max_tokens=200, stop=("\n",)), made, figures)


def test_a_chat(chat: dict[str, Any]) -> None:
    assert chat["version"] == 1
    assert re.fullmatch(r"lzs-[0-9a-f]{24}", chat["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", chat["created"])
    assert chat["model"] == {
        "name": "lzsampler tale 7M",
        "file": "tale-7m-q8_0.gguf",
        "size": default_model().stat().st_size,
        "architecture": "llama",
        "quantization": "Q8_0",
    }
    assert chat["messages"][:2] == QUESTION
    answer = chat["messages"][2]
    assert answer["role"] == "assistant"
    assert answer["content"] == "549"
    assert answer["reasoning_content"].startswith("0 + 9 + 0 = 9, write 9, carry 0.")
    assert "prompt" not in chat
    assert (chat["finish_reason"], chat["stop_string"]) == ("stop", None)
    usage = chat["usage"]
    assert usage["completion_tokens"] == len(chat["tokens"]) > 20
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < chat["timings"]["sampling_seconds"] < chat["timings"]["total_seconds"]
    assert chat["repetition"]["loops"] is False


def test_settings_are_all_of_params_and_more(chat: dict[str, Any]) -> None:
    settings = chat["settings"]
    assert {field.name for field in fields(Params)} - set(SEPARATORS) < set(settings)
    assert (settings["lz_penalty"], settings["seed"], settings["n_ctx"], settings["n_threads"]) == (0.15, 7, 300, 1)
    assert (settings["max_tokens"], settings["stop"], settings["chat"]) == (200, ["\n"], True)


def test_a_plain_prompt_has_its_text_and_one_message() -> None:
    with Model(default_model(), n_threads=1) as model:
        made = generate(model, "Once upon a time", GenerationConfig(GREEDY, max_tokens=5))
        plain = record(
            model, "Once upon a time", GenerationConfig(GREEDY, max_tokens=5), made, repetition(made.text).to_json()
        )
    assert plain["prompt"] == "Once upon a time"
    assert plain["messages"] == [{"role": "assistant", "content": made.text.strip()}]
    assert plain["settings"]["chat"] is False


def test_strings_stand_for_the_breakers() -> None:
    with Model(default_model(), n_threads=1) as model:
        params = Params.recommended(model, temperature=0.0, dry_multiplier=0.8)
        made = generate(model, "Once upon a time", GenerationConfig(params, max_tokens=5))
        figures = repetition(made.text).to_json()
        none, named = (
            record(model, "Once upon a time", GenerationConfig(params), made, figures, dry_breakers=given)
            for given in ((), ("\n", "e"))
        )
        off = replace(params, dry_multiplier=0.0)
        unused = record(model, "Once upon a time", GenerationConfig(off), made, figures, dry_breakers=("\n", "e"))
    assert params.lz_separators
    assert not named["settings"].keys() & set(SEPARATORS)  # they are the model's, and large
    assert none["settings"]["dry_breakers"] == unused["settings"]["dry_breakers"] == []
    assert named["settings"] == {**none["settings"], "dry_breakers": ["\n", "e"]}
    assert to_line(named).count('"dry_breakers": ["\\n", "e"]') == 1


def test_the_document_names_every_key(chat: dict[str, Any]) -> None:
    named = {line.split("`")[1] for line in DOCUMENT.splitlines() if line.startswith("| `")}
    assert named == {
        *chat,
        "prompt",
        "draft",
        "forced_tokens",
        "grammar_match",
        "error",
    }  # which a chat without a draft, a grammar and an error has not
    inner = [*chat["usage"], *chat["timings"], *chat["repetition"], *chat["model"]]
    inner += [key for key in chat["settings"] if key not in {field.name for field in fields(Params)}]
    assert [key for key in inner if f"`{key}`" not in DOCUMENT] == []


def test_a_line_is_one_line_for_any_reader() -> None:
    text = 'a\nb\r\x85\u2028\u2029\x1c"é\U0001f600'
    line = to_line({"text": text})
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"text": text}
    assert "é\U0001f600" in line


def test_append_adds_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for n in range(2):
        with TranscriptFile(path) as file:
            file.append({"n": n})
            file.append({"n": n + 10})
    assert [json.loads(line)["n"] for line in path.read_text().splitlines()] == [0, 10, 1, 11]


def test_a_file_that_got_nothing_keeps_what_others_append(tmp_path: Path) -> None:
    """It was once removed by the process that had created it, with the transcripts of the other."""
    path = tmp_path / "t.jsonl"
    with TranscriptFile(path), TranscriptFile(path) as other:
        other.append({"n": 1})
    assert path.read_text() == '{"n": 1}\n'


def test_a_new_file_that_nobody_appends_to_is_empty(tmp_path: Path) -> None:
    with TranscriptFile(tmp_path / "t.jsonl"):
        pass
    assert (tmp_path / "t.jsonl").read_bytes() == b""


def test_a_lone_surrogate_is_saved_as_an_escape(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TranscriptFile(path) as file:
        file.append({"id": "a\ud800é"})
    assert path.read_text(encoding="utf-8") == '{"id": "a\\ud800é"}\n'
    assert json.loads(path.read_bytes()) == {"id": "a\ud800é"}


@pytest.mark.parametrize("name", ["missing/t.jsonl", "."])
def test_a_path_that_cannot_be_written_shows_at_once(tmp_path: Path, name: str) -> None:
    with pytest.raises(LzsError, match=r"cannot save the transcript to .*: (No such file|Is a directory)"):
        TranscriptFile(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with TranscriptFile("/dev/full") as file, pytest.raises(LzsError, match=r"to /dev/full: No space left on device$"):
        file.append({"n": 1})


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"n": 0}\n')
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[: len(data) // 2]))
    with TranscriptFile(path) as file, pytest.raises(LzsError, match="No space left"):
        file.append({"text": "x" * 100})
    assert path.read_text() == '{"n": 0}\n'


@pytest.mark.parametrize("before", ['{"a": 1}', '{"a": 1}\n{"b": '])
def test_a_last_line_that_was_not_ended_is_ended(tmp_path: Path, before: str) -> None:
    """An editor, or a process that was killed, may have left it so; two records on one line would both be lost."""
    path = tmp_path / "t.jsonl"
    path.write_text(before)
    with TranscriptFile(path) as file:
        file.append({"n": 1})
        file.append({"n": 2})
    assert path.read_text() == before + '\n{"n": 1}\n{"n": 2}\n'


def test_a_failed_append_leaves_alone_what_others_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"n": 0}\n')
    write = os.write

    def half(file: int, data: bytes) -> int:
        with path.open("a") as other:  # a process that appended before
            other.write('{"n": 1}\n')
        written = write(file, data[: len(data) // 2])
        with path.open("a") as other:  # and one that appended after
            other.write('{"n": 2}\n')
        return written

    with TranscriptFile(path) as file:
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(LzsError, match="No space left"):
            file.append({"text": "x" * 100})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_failed_append_cuts_nothing_that_came_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    write = os.write

    def half(file: int, data: bytes) -> int:
        with path.open("a") as other:
            other.write('{"n": 1}\n')
        return write(file, data[: len(data) // 2])

    with TranscriptFile(path) as file:
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(LzsError, match="No space left"):
            file.append({"text": "x" * 100})
        monkeypatch.undo()
        file.append({"n": 2})
    assert path.read_text() == '{"n": 1}\n{"n": 2}\n'


def test_lines_end_in_a_line_feed_on_windows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary, given = 1 << 29, list[int]()
    opens = os.open

    def noting(path: Any, flags: int, mode: int = 0o777) -> int:
        given.append(flags)
        return opens(path, flags & ~binary, mode)

    monkeypatch.setattr(os, "O_BINARY", binary, raising=False)
    monkeypatch.setattr(os, "open", noting)
    with TranscriptFile(tmp_path / "t.jsonl") as file:
        file.append({"n": 1})
    assert given[0] & binary


def test_a_line_that_is_not_on_the_disk_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    path = tmp_path / "t.jsonl"
    with TranscriptFile(path) as file, pytest.raises(LzsError, match="Input/output error"):
        file.append({"n": 1})
    assert path.read_bytes() == b""


def test_a_pipe_needs_no_sync(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with TranscriptFile(path) as file:
        file.append({"n": 1})
    assert os.read(reader, 100) == b'{"n": 1}\n'
    os.close(reader)


def test_generation_has_no_figure_that_json_cannot_hold() -> None:
    with Model(default_model(), n_threads=1) as model:
        made: Generation = generate(model, "Once", GenerationConfig(GREEDY, max_tokens=0))
        line = to_line(
            record(model, "Once", GenerationConfig(GREEDY, max_tokens=0), made, repetition(made.text).to_json())
        )
    assert json.loads(line)["repetition"] == {"run": None, "loops": False, "rep4": 0.0, "zlib_ratio": 0.0}
