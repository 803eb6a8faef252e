"""`lzs generate --prompts`: many prompts of a file, the bad rows, and the prompts that fail."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_cpp")

from test_cli_generate import LZS, PROMPT, generate, rows


def test_many_prompts_keep_their_order_and_ids(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "What is 70 + 479?"}]
    given: list[dict[str, Any]] = [
        {"id": "long", "prompt": "Then feed us and break us"},
        {"prompt": "Still Sunday said nothing, but only"},
        {"id": 7, "messages": asked},
    ]
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    file.write_text("\n".join(map(json.dumps, given)) + "\n\n")
    done = generate("--prompts", file, "--save", out, "-n", "120", "--json")
    assert done.returncode == 0, done.stderr
    made = rows(out)
    assert done.stdout.splitlines() == out.read_text(encoding="utf-8").splitlines()
    assert [row["id"] for row in made] == ["long", "2", "7"]
    assert made[2]["messages"][:-1] == asked
    assert made[2]["messages"][-1]["content"] == "549"
    assert (
        f"lzs: wrote 3 texts, {sum(row['usage']['completion_tokens'] for row in made)} tokens to {out}" in done.stderr
    )
    for row, prompt in zip(made, given[:2], strict=False):  # the texts are those of one at a time
        alone = json.loads(generate("--json", "-n", "120", prompt["prompt"]).stdout)
        assert row["tokens"] == alone["tokens"]
        assert row.keys() == alone.keys()


def test_a_dash_is_stdin() -> None:
    done = generate("-", "-n", "5", "--json", stdin=PROMPT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["prompt"] == PROMPT
    done = generate("-", "-f", "x.txt")
    assert done.returncode == 2
    assert done.stderr.startswith("lzs: give the prompt once: as PROMPT, with -p or with -f")


def test_settings_of_v_fit_a_screen() -> None:
    (line,) = [line for line in generate("-v", "-n", "1", PROMPT).stderr.splitlines() if "Params(" in line]
    assert len(line) < 2000
    assert re.search(r"lz_separators=\([\d,]+ tokens\)", line)


def test_ctrl_c_says_how_many_texts_were_saved(tmp_path: Path) -> None:
    code = """
import sys
import lzsampler.decoding.many as many
from lzsampler.cli.main import main
generate_many = many.generate_many
def interrupted(*arguments, **named):
    for n, made in enumerate(generate_many(*arguments, **named)):
        if n == 2:
            raise KeyboardInterrupt
        yield made
many.generate_many = interrupted
main()
"""
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"prompt": f"{n} men"}) + "\n" for n in range(5)))
    arguments = ["generate", "--prompts", "in.jsonl", "--save", "out.jsonl", "-n", "4", "-np", "1"]
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (130, "lzs: interrupted: wrote 2 of 5 texts to out.jsonl\n")
    assert len(rows(tmp_path / "out.jsonl")) == 2


def test_many_prompts_as_questions_drawn_with_seeds_of_their_own(tmp_path: Path) -> None:
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    file.write_text('{"prompt": "What is 70 + 479?"}\n' * 2)
    done = generate("--prompts", file, "--save", out, "-sys", "Add.", "--temp", "1.5", "-s", "5", "-np", "2")
    assert done.returncode == 0, done.stderr
    first, second = rows(out)
    assert first["messages"][0] == {"role": "system", "content": "Add."}
    assert first["settings"]["seed"] != second["settings"]["seed"]
    assert "lzs: seed 5" in done.stderr
    again = generate("--json", "-sys", "Add.", "--temp", "1.5", "-s", second["settings"]["seed"], "What is 70 + 479?")
    assert json.loads(again.stdout)["tokens"] == second["tokens"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " has no prompts: it needs a JSON object per line"),
        ("{", ", line 1: not JSON: "),
        ('{"prompt": "a"}\n\n[1]', ', line 3: a row is an object with either "prompt" (text) or "messages" (a list)'),
        ('{"prompt": "a", "messages": []}', ', line 1: a row is an object with either "prompt"'),
        ('{"prompt": ""}', ', line 1: "prompt" must be a text that is not empty'),
        ('{"messages": [{"role": "user"}]}', ', line 1: "messages" must be a list of objects'),
        (
            '{"id": 1, "prompt": "a"}\n{"id": "1", "prompt": "b"}',
            ", line 2: the id '1' is there twice; ids must differ",
        ),
        ("\udcff", ", line 1: not UTF-8 (byte 0): convert it first"),
        ('{"prompt": "a"}\n{"prompt": "b\\ud800"}', ', line 2: "prompt" has half of a surrogate pair'),
        ('{"messages": [{"role": "user", "content": "\\udfff"}]}', ', line 1: "messages" has half of a surrogate pair'),
        ('{"messages": [{"role": "user", "content": null}]}', ', line 1: "messages" must be a list of objects'),
        ('{"id": [1], "prompt": "a"}', ', line 1: "id" must be a text or a number'),
        ('{"id": true, "prompt": "a"}', ', line 1: "id" must be a text or a number'),
        ("[" * 200_000, ", line 1: JSON that is nested too deeply"),
    ],
)
def test_a_bad_row_is_named_before_anything_is_written(tmp_path: Path, text: str, message: str) -> None:
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = generate("--prompts", file, "--save", out, "-c", "100")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert not out.exists() or out.read_bytes() == b""
    assert line.startswith(f"lzs: {file}{message}")


def test_ids_of_many_prompts(tmp_path: Path) -> None:
    """A null is no id, so that the line stands for it; half of a surrogate pair once ended the run at its row."""
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    ids = [None, "a\ud800", None]
    file.write_text("".join(json.dumps({"id": name, "prompt": PROMPT}) + "\n" for name in ids))
    done = generate("--prompts", file, "--save", out, "--json", "-n", "2")
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in rows(out)] == ["1", "a\ud800", "3"]
    assert done.stdout.splitlines() == out.read_text(encoding="utf-8").splitlines()


def test_a_prompt_that_fails_is_recorded_and_the_others_are_written(tmp_path: Path) -> None:
    """One that is too long, and one that the chat template refuses; once both ended the run before the first text."""
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    refused = [{"role": "bishop", "content": "x"}]
    given: list[dict[str, Any]] = [
        {"id": "long", "prompt": "word " * 300},
        {"prompt": PROMPT},
        {"id": "bishop", "messages": refused},
        {"prompt": "The captain said"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in given))
    code = (
        "from lzsampler import LzsError\n"
        "from lzsampler.cli.main import main\n"
        "from lzsampler.llama.model import Model\n"
        "def refuse(self, messages): raise LzsError('the template fails')\n"
        "Model.chat_prompt = refuse\n"
        "main()"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "generate",
        "--prompts",
        str(file),
        "--json",
        "--save",
        str(out),
        "-c",
        "100",
        "-n",
        "9",
    ]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 1
    wrote, failed = done.stderr.splitlines()
    assert wrote == f"lzs: wrote 2 texts, 18 tokens to {out}"
    assert failed.startswith("lzs: 2 prompts failed (ids 'long', 'bishop'); the first, of line 1: the prompt has 3")
    made = rows(out)
    assert done.stdout.splitlines() == out.read_text(encoding="utf-8").splitlines()
    assert [row["id"] for row in made] == ["long", "2", "bishop", "4"]
    assert [row["finish_reason"] for row in made] == ["failed", "length", "failed", "length"]
    long, first, template, second = made
    assert long["error"].startswith("the prompt has 3")
    assert (long["prompt"], long["messages"]) == (given[0]["prompt"], [])
    assert (template["error"], template["messages"]) == ("the template fails", refused)
    assert long.keys() == {*first} - {*_OF_A_TEXT} | {"error"}
    assert long["settings"].keys() == first["settings"].keys()
    for row, prompt in ((first, given[1]), (second, given[3])):
        alone = json.loads(generate("--json", "-c", "100", "-n", "9", prompt["prompt"]).stdout)
        assert row["tokens"] == alone["tokens"]
    done = subprocess.run([LZS, "audit", str(out)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1  # half of the records are bad
    assert "2 bad records" in done.stdout
    assert "the request failed: the template fails" in " ".join(done.stdout.split())
    done = generate("--prompts", file, "--save", out, "-c", "100", "-n", "1", "-q", "-np", "1")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


_OF_A_TEXT = ("stop_string", "loop", "stuck", "actions", "tokens", "usage", "timings", "repetition")
