"""`lzs generate` in its other modes: flags of llama.cpp, files, a conversation, what it hints at."""

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lzsampler import sequence_seed
from lzsampler.auditing.repetition import repetition
from lzsampler.models import default_draft

pytest.importorskip("llama_cpp")

LZS = str(Path(sys.executable).with_name("lzs"))
PROMPT = "Once upon a time"
PAPER, GUARD = ("--preset", "paper"), ("--preset", "guard")


def generate(
    *arguments: object, stdin: str | None = None, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    if env is not None:
        source["env"] = {**os.environ, **env}
    command = [LZS, "generate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, **source)


def settings(*arguments: object) -> dict[str, Any]:
    return dict(json.loads(generate("--json", "-n", "1", *arguments, PROMPT).stdout)["settings"])


# -- llama.cpp's flags --


def test_repeat_last_n_has_the_meaning_of_llama_cpp() -> None:
    """0 turns the three penalties off, -1 is the whole context; 0 was once "all" here, and -1 refused."""
    penalties = ("--repeat-penalty", "1.3", "--frequency-penalty", "0.2", "--presence-penalty", "0.1")
    names = ("repetition_penalty", "frequency_penalty", "presence_penalty", "penalty_window")

    def of(*flags: object) -> list[float]:
        made = settings(*penalties, *flags)
        return [made[name] for name in names]

    assert of() == of("--repeat-last-n", -1) == [1.3, 0.2, 0.1, 0]
    assert of("--repeat-last-n", 0) == [1, 0, 0, 0]
    assert of("--repeat-last-n", 64) == [1.3, 0.2, 0.1, 64]


def test_a_scope_that_a_text_has_nothing_of_is_said() -> None:
    note = "this text has no thinking, so --penalty-scope thinking left it without any penalty"
    assert note in generate("-n", "3", "--penalty-scope", "thinking", PROMPT).stderr
    assert note not in generate("-n", "3", "--penalty-scope", "answer", PROMPT).stderr
    assert note not in generate("-n", "20", "--chat", "--penalty-scope", "thinking", "Sort 5 4 3 8 1.").stderr


def test_a_system_message_makes_it_a_chat() -> None:
    for flags in (("--chat", "-sys", "Be brief."), ("-sys", "Be brief."), ("-st", "--system-prompt", "Be brief.")):
        record = json.loads(generate("--json", "-n", "2", *flags, "What is 70 + 479?").stdout)
        assert record["settings"]["chat"]
        assert record["messages"][0] == {"role": "system", "content": "Be brief."}
    assert not settings("-no-cnv")["chat"]


def test_reverse_prompts_are_stop_strings() -> None:
    text = generate("-n", "40", PROMPT).stdout
    word = text.split()[8]
    done = generate("-n", "40", "-r", word, PROMPT)
    assert done.stdout.rstrip("\n") == text[: text.index(word)].rstrip("\n")
    assert settings("-r", "a", "--reverse-prompt", "b")["stop"] == ["a", "b"]


def test_escapes_are_replaced_on_request() -> None:
    def prompt(*flags: str) -> str:
        return str(json.loads(generate("--json", "-n", "1", *flags, "-p", r"a\n\t\"b\\n\x41\q").stdout)["prompt"])

    assert prompt() == r"a\n\t\"b\\n\x41\q"
    assert prompt("-e") == 'a\n\t"b\\nA\\q'
    assert settings("-e", "-r", r"x\n")["stop"] == ["x\n"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-hf", "foo/bar:Q4_K_M"), "hf download foo/bar FILE.gguf --local-dir .), then give it with -m FILE.gguf"),
        (("--hf-repo", "foo/bar", "x"), "lzs does not download models: fetch a GGUF file first"),
        (
            ("--spec-draft-n-max", "4", "x"),
            "--spec-draft-n-max has no effect without a draft: add -md FILE or --draft lookup",
        ),
        (("--spec-mode", "mrs", "x"), "--spec-mode has no effect without a draft"),
        (("--require-exact", "x"), "--require-exact has no effect without a draft"),
        (
            ("--draft", "lookup", "--spec-draft-p-min", "0.5", "x"),
            "--spec-draft-p-min has no effect without a draft model: add -md FILE, or leave it out",
        ),
        (("--draft", "8", "x"), "'8' is not 'lookup'"),
        (("--lora", "a.gguf", "x"), "lzs loads no LoRA adapters"),
        (("--mirostat", "2", "x"), "lzs has no mirostat: use --temp"),
        (("-cnv", "--json"), "--json prints one answer, but -cnv is a conversation"),
        (("-cnv", "-f", "x.txt"), "-cnv reads messages from stdin"),
        (("--prompts", "x.jsonl"), "--prompts needs a place for the texts: --save FILE, or --json"),
        (("--prompts", "x.jsonl", "--json", "x"), "--prompts and PROMPT exclude each other"),
        (("--prompts", "x.jsonl", "--json", "-cnv"), "--prompts and -cnv exclude each other"),
    ],
)
def test_what_lzs_does_not_do_is_said_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    """-hf was once taken for -h, with the help and status 0."""
    done = generate(*arguments)
    line, hint = done.stderr.splitlines()
    assert (done.returncode, done.stdout, hint) == (2, "", "Try 'lzs generate --help' for help.")
    assert message in line


def takes(name: str) -> bool:
    """Whether the library has a keyword that a flag is for."""
    from lzsampler.decoding.generate import generate as of_generate
    from lzsampler.llama.model import Model

    return name in {*inspect.signature(of_generate).parameters, *inspect.signature(Model).parameters}


def test_flash_attention_and_mlock_reach_the_model() -> None:
    if not takes("flash_attn"):
        pytest.skip("Model takes no flash_attn")
    used = [settings(*flags)["flash_attn"] for flags in ((), ("-fa", "on"), ("--flash-attn", "off"))]
    assert used == ["auto", True, False]
    assert generate("-n", "1", "--mlock", PROMPT).returncode == 0
    done = generate("-fa", PROMPT, "x")
    assert (done.returncode, "is not one of 'auto', 'on', 'off'" in done.stderr) == (2, True)


def test_ignore_eos_goes_on() -> None:
    if not takes("ignore_eos"):
        pytest.skip("generate takes no ignore_eos")
    asked = ("--chat", "-n", "150", "What is 70 + 479?")
    assert json.loads(generate("--json", *asked).stdout)["finish_reason"] == "stop"
    record = json.loads(generate("--json", "--ignore-eos", *asked).stdout)
    assert (record["finish_reason"], record["settings"]["ignore_eos"]) == ("length", True)


def test_explain_says_why_on_stderr() -> None:
    if not takes("on_explanation"):
        pytest.skip("generate takes no on_explanation")
    asked = ("-n", "60", "Still Sunday said nothing, but only")
    plain, told, off = (generate(*flags, *asked) for flags in ((), ("--explain",), ("--explain", "--lz-penalty", "0")))
    assert told.stdout == plain.stdout
    assert re.search(r": repeats \d+ tokens from \d+ tokens ago: -\d", told.stderr)
    assert "repeats" not in off.stderr
    assert "no penalty changed a likely token; the LZ penalty is off" in off.stderr
    unchanged = "no penalty changed a likely token; the LZ penalty "
    short = [generate("--explain", *preset, "-n", "5", "Once upon a time").stderr for preset in ((), PAPER, GUARD)]
    assert f"{unchanged}acts on repetitions of 5 tokens or more (--lz-min-match)" in short[0]
    assert f"{unchanged}begins after 32 tokens (--lz-buffer)" in short[1]
    assert "likely token; the text may copy itself for 64 tokens freely (--lz-run-allowance)" in short[2]
    done = generate("--explain", "-cnv")
    assert (done.returncode, "--explain is for one text" in done.stderr) == (2, True)


# -- what it hints at --


def test_an_empty_answer_of_a_chat_model_hints_at_chat() -> None:
    at_once = ("--logit-bias", "0+1000")  # the end of the text is the likeliest token
    hint = "lzs: the model ended without an answer; it is made for chat: add --chat to ask it a question"
    assert hint in generate(*at_once, PROMPT).stderr.splitlines()
    assert hint not in generate("--chat", *at_once, PROMPT).stderr
    assert hint not in generate("-n", "0", PROMPT).stderr
    assert hint not in generate("-n", "5", PROMPT).stderr
    assert generate("-q", *at_once, PROMPT).stderr == ""


def test_a_near_loop_is_no_contradiction() -> None:
    """A near loop without an exact repeat was once "largest run none (a loop)"."""
    output = import_module("lzsampler.cli.output")
    lines = "".join(f"{i}. The animal is a cat, which is a very good cat.\n" for i in range(60))
    near = repetition(lines)
    assert near.loops
    if near.run is None:
        assert output.repeats(near) == "near loop"
    assert output.repeats(replace(near, run=None)) == "near loop"
    assert output.repeats(repetition("ab " * 200)) == "LOOP: 200 copies of 3 characters"
    assert output.repeats(repetition("nothing here")) == "no loop"


def test_quiet_prints_the_text_only() -> None:
    loud, quiet = (generate("-n", "12", *flags, PROMPT) for flags in ((), ("-q",)))
    assert quiet.stdout == loud.stdout
    assert (quiet.stderr, loud.stderr == "") == ("", False)
    verbose = generate("-n", "12", "-v", PROMPT).stderr
    assert "loaded in " in verbose
    assert "Params(" in verbose


# -- files --


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["t.csv", "T.PARQUET", "model.gguf", "t.jsonl.gz"])
def test_transcripts_are_not_put_into_a_file_of_another_format(name: str, tmp_path: Path) -> None:
    done = generate("--save", tmp_path / name, "-n", "1", PROMPT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith("lzs: --save writes JSON Lines, not .")
    assert not any(tmp_path.iterdir())


def test_nothing_is_appended_to_the_prompts(tmp_path: Path) -> None:
    file, same = tmp_path / "in.jsonl", tmp_path / "same.jsonl"
    file.write_text(json.dumps({"prompt": PROMPT}) + "\n")
    same.symlink_to(file)
    for flag in ("--prompts", "-f", "-j", "-jf", "--yaml-schema"):
        done = generate(flag, file, "--save", same, "-n", "1")
        assert done.returncode == 2
        line = f"lzs: --save {same} would append to the file of {flag}: name another file"
        assert done.stderr.splitlines()[0] == line
    assert len(rows(file)) == 1


@pytest.mark.parametrize("flag", ["-p", "-sys", "-r", "--dry-sequence-breaker"])
def test_a_flag_that_is_not_utf8_is_refused_before_any_text(tmp_path: Path, flag: str) -> None:
    """The text was once written, and then it could not be saved."""
    out = tmp_path / "out.jsonl"
    text = [] if flag == "-p" else [PROMPT]
    done = generate("--save", out, "-n", "2", flag, "\udcff", *text)
    assert (done.returncode, done.stdout, out.exists()) == (2, "", False)
    assert done.stderr.splitlines()[0] == f"lzs: {flag} is not UTF-8 text: convert it first"


# -- a conversation --

DOUBLE = """
import sys, types
from lzsampler import LzsError
from lzsampler.decoding.generate import generate

class Turn:
    def __init__(self, messages, config):
        self.messages, self.config = messages, config

class Chat:
    def __init__(self, model, config, *, system=None):
        self.model, self.config = model, config
        self.first = [] if system is None else [{"role": "system", "content": system}]
        self.messages = list(self.first)

    def say(self, text, on_text=None):
        if text == "too long":
            raise LzsError("the context is full")
        asked = [*self.messages, {"role": "user", "content": text}]
        made = generate(self.model, asked, self.config, on_text=on_text)
        self.turn = Turn(asked, self.config)
        self.messages = [*asked, {"role": "assistant", "content": made.content}]
        return made

    def reset(self):
        self.messages = list(self.first)
"""
USE_DOUBLE = (
    "module = types.ModuleType('lzsampler.decoding.chat'); module.Chat = Chat; sys.modules[module.__name__] = module"
)


def chatting(*arguments: str, stdin: str, double: bool) -> "subprocess.CompletedProcess[str]":
    code = "from lzsampler.cli.main import main; main()"
    code = f"{DOUBLE}\n{USE_DOUBLE}\n{code}" if double else code
    command = [sys.executable, "-c", code, "generate", "-cnv", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", input=stdin, timeout=120)


@pytest.fixture(params=["double", "real"])
def double(request: pytest.FixtureRequest) -> bool:
    """Whether the conversation is a stand-in; the real one is tried where there is one."""
    if request.param == "real":
        pytest.importorskip("lzsampler.decoding.chat")
    return bool(request.param == "double")


def test_a_conversation(tmp_path: Path, double: bool) -> None:
    out = tmp_path / "t.jsonl"
    typed = "What is 70 + 479?\n\n/reset\nWhat is \\\n12 + 30?\n/exit\nnobody reads this\n"
    done = chatting("--save", str(out), "-q", stdin=typed, double=double)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = rows(out)
    answers = done.stdout.splitlines()
    assert [answer.rpartition("</think>")[2] for answer in answers] == [
        r["messages"][-1]["content"] for r in (first, second)
    ]
    assert [m["content"] for m in first["messages"]] == ["What is 70 + 479?", "549"]
    assert second["messages"][0]["content"] == "What is \n12 + 30?"
    assert len(second["messages"]) == 2


def test_a_conversation_goes_on(tmp_path: Path, double: bool) -> None:
    out = tmp_path / "t.jsonl"
    done = chatting("--save", str(out), "-sys", "Add.", "What is 70 + 479?", stdin="What is 1 + 2?", double=double)
    assert done.returncode == 0
    assert [m["role"] for m in rows(out)[1]["messages"]] == ["system", "user", "assistant", "user", "assistant"]
    assert "embedded model" in done.stderr


def test_an_answer_that_never_began_is_saved_with_its_own_question(tmp_path: Path) -> None:
    """It was once saved as the answer to the first question, with the seed of the first turn."""
    out = tmp_path / "t.jsonl"
    code = (
        "from lzsampler.cli.main import main\n"
        "from lzsampler.llama.model import Model\n"
        "decode, prompts = Model.decode, []\n"
        "def decode_once(self, tokens):\n"
        "    prompts.append(len(tokens) > 1)\n"
        "    if sum(prompts) == 2: raise KeyboardInterrupt\n"
        "    return decode(self, tokens)\n"
        "Model.decode = decode_once\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "generate", "-cnv", "--save", str(out), "--temp", "0.1", "-s", "5"]
    typed = "What is 70 + 479?\nWhat is 1 + 2?\n"
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", input=typed, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = rows(out)
    assert second["finish_reason"] == "interrupted"
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2:] == [
        {"role": "user", "content": "What is 1 + 2?"},
        {"role": "assistant", "content": "", "reasoning_content": ""},
    ]
    assert (first["settings"]["seed"], second["settings"]["seed"]) == (5, sequence_seed(5, 1))


def test_a_conversation_survives_an_error() -> None:
    done = chatting(stdin="too long\nWhat is 70 + 479?\n", double=True)
    assert done.returncode == 0
    assert done.stdout.endswith("549\n")
    assert "lzs: the context is full (/reset begins a new conversation)" in done.stderr
    for command, message in (("/help", "lzs: /exit or"), ("/clean", "lzs: there is no command /clean: /exit or")):
        done = chatting(stdin=f"{command}\n", double=True)
        assert message in done.stderr
        assert "/reset starts over" in done.stderr
        assert done.stdout == ""


def test_a_message_that_is_not_utf8_does_not_end_a_conversation() -> None:
    """A terminal may send such bytes, which Python reads as halves of surrogate pairs."""
    code = (
        "from lzsampler.cli import chat\n"
        "from lzsampler.cli.main import main\n"
        "chat._messages = lambda first: iter(['\\udcff', 'What is 70 + 479?'])\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "generate", "-cnv", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stderr) == (0, "lzs: the message is not UTF-8 text: write it again\n")
    assert done.stdout.endswith("549\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_conversation_on_a_terminal() -> None:
    pty = pytest.importorskip("pty")
    pytest.importorskip("lzsampler.decoding.chat")
    ours, theirs = pty.openpty()
    command = [LZS, "generate", "-cnv", "-n", "200"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        assert b"/exit or Ctrl-D ends" in until(ours, b"> ")
        os.write(ours, b"What is 70 + 479?\n")
        assert b"549\r\n" in until(ours, b"\r\n> ")
        os.write(ours, b"\x04")  # Ctrl-D
        assert process.wait(timeout=60) == 0
    os.close(ours)


def until(descriptor: int, end: bytes) -> bytes:
    """What a terminal shows up to something, which must come."""
    shown = b""
    while end not in shown:
        piece = os.read(descriptor, 4096)
        assert piece, shown
        shown += piece
    return shown


def test_a_draft_changes_no_text() -> None:
    asked = ("-fa", "on", "-t", "1", "-n", "40", "--temp", "0.8", "-s", "5", PROMPT)
    alone, together = generate(*asked), generate("-md", "tale-1m", "--spec-draft-n-max", "5", *asked)
    assert together.stdout == alone.stdout
    assert re.search(
        r"^lzs: speculation: accepted \d+ %, \d\.\d tokens a call(, \d\.\d\dx)?$", together.stderr, re.MULTILINE
    )
    assert "speculation" not in alone.stderr
    larger = generate("-m", "tale-1m", "-md", "tale-7m", "-n", "4", PROMPT)
    assert re.search(
        r"the draft tale-7m-q8_0.gguf is larger than tale-1m-q8_0.gguf: by their sizes, the speed is at most 0\.\d\dx, "
        "even if every token is accepted",
        larger.stderr,
    )
    assert "may differ" not in together.stderr


def test_a_draft_changes_no_text_of_a_batch_or_a_chat(tmp_path: Path) -> None:
    rows = [{"prompt": PROMPT}, {"prompt": "The king said that"}, {"messages": [{"role": "user", "content": "Hi"}]}]
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("-fa", "on", "-t", "1", "-n", "30", "--temp", "0.8", "-s", "5")
    alone = generate(*asked, "--prompts", file, "--json")
    for flags in (("-md", "tale-1m", "--spec-draft-n-max", "3"), ("--draft", "lookup")):
        together = generate(*asked, *flags, "--prompts", file, "--json")
        assert together.returncode == 0, together.stderr
        first, second = ([json.loads(line) for line in done.stdout.splitlines()] for done in (alone, together))
        assert [one["tokens"] for one in second] == [one["tokens"] for one in first]
        assert all(one["draft"]["mode"] == "gumbel" for one in second)
        assert re.search(r"^lzs: speculation: ", together.stderr, re.MULTILINE)
    assert "speculation" not in alone.stderr
    talk = "What is 12 + 30?\nAnd what is 5 + 6?\n"
    plain = generate(*asked, "-cnv", stdin=talk)
    drafted = generate(*asked, "-cnv", "-md", "tale-1m", "-v", stdin=talk)
    assert drafted.stdout == plain.stdout
    assert len(re.findall(r"^lzs: speculation: ", drafted.stderr, re.MULTILINE)) == 2
    refused = generate("-fa", "on", "-md", "tale-1m", "--spec-mode", "mrs", "--prompts", file, "--json")
    assert refused.returncode == 2
    assert "mrs is for one text" in refused.stderr
    same = generate("-m", "tale-1m", "-md", "tale-1m", "-fa", "on", "-n", "4", PROMPT)
    assert "is as large as tale-1m-q8_0.gguf: by their sizes, the speed is at most 1.00x" in same.stderr


COPY = "The king said: bring me seven apples and a jug of milk. The queen said: bring me seven"


def test_what_a_match_proposed_is_saved(tmp_path: Path) -> None:
    """The text is the same, and the transcript says what drafted, and how well."""
    file = tmp_path / "t.jsonl"
    asked = ("-fa", "on", "-t", "1", "-n", "60", "-s", "5", COPY)
    alone = generate(*asked, "--save", str(file))
    flags = ("--draft", "lookup", "--spec-draft-n-max", "5", "--save", str(file))
    assert generate(*flags, *asked).stdout == alone.stdout
    first, second = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert "draft" not in first
    assert second["tokens"] == first["tokens"]
    draft = second["draft"]
    expected = {"kind": "lookup", "model": None, "mode": "gumbel", "n_max": 5, "n_min": 0, "p_min": 0.0, "lookup": 3}
    assert {name: draft[name] for name in expected} == expected
    assert 0 < draft["accepted"] <= draft["proposed"] <= 5 * draft["calls"]
    both = generate("-md", "tale-1m", "--draft", "lookup", "--json", *asked)
    draft = json.loads(both.stdout)["draft"]
    assert (draft["kind"], draft["n_max"]) == ("model+lookup", "auto")
    assert draft["model"]["file"] == "tale-1m-q8_0.gguf"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--spec-draft-n-max", "33"), "--spec-draft-n-max must be from 0 to 32, got 33"),
        (
            ("--spec-draft-n-min", "4", "--spec-draft-n-max", "3"),
            "--spec-draft-n-min must be from 0 to 3, which is --spec-draft-n-max, got 4",
        ),
        (("--spec-draft-n-max", "many"), "--spec-draft-n-max must be auto or a whole number, got 'many'"),
        (("-c", "16", "--spec-draft-n-max", "15"), "--spec-draft-n-max must be at most 14 in a context of 16, got 15"),
        (("-b", "1"), "--batch-size must be at least 2 with a draft, which is judged in one batch, got 1"),
        (("--spec-draft-p-min", "2"), "--spec-draft-p-min must be from 0 to 1, got 2.0"),
        (("--spec-draft-n-min", "1", "--spec-mode", "mrs"), "--spec-draft-n-min must be 0 in mode mrs"),
        (("--spec-mode", "eagle"), "'eagle' is not one of 'gumbel', 'mrs', 'match'"),
    ],
)
def test_settings_of_a_draft_out_of_range(flags: tuple[str, ...], message: str) -> None:
    done = generate("-md", "tale-1m", *flags, PROMPT)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[0]  # and no note comes before it
    assert "Traceback" not in done.stderr


def test_a_draft_that_cannot_be_opened(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(default_draft().read_bytes()[:100_000])
    for file, message in ((tmp_path / "no.gguf", "no.gguf"), (broken, "broken.gguf is truncated")):
        done = generate("-md", str(file), PROMPT)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
