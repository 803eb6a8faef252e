"""The installed `lzs`, run as a user runs it: output, one line for every bad input, every way to break off."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_cpp")

from lzsampler import __version__
from lzsampler.models import default_model

LZS = str(Path(sys.executable).with_name("lzs"))
VOCABULARY = Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf"
PROMPT = "Once upon a time"
TEXT_BEFORE_END = ("-n", "-1", "Then feed us and break us")  # some 1000 tokens, and lines early on


def lzs(*arguments: str, stdin: str | bytes | None = None, **settings: Any) -> subprocess.CompletedProcess[str]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    source = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
    done = subprocess.run([LZS, *arguments], capture_output=True, timeout=120, **source, **settings)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def generate(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return lzs("generate", *arguments, **settings)


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    # Without a buffer, whose content communicate() would leave out.
    return subprocess.Popen([LZS, "generate", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# -- what it prints --


def test_generate_prints_the_text_and_a_summary() -> None:
    done = generate("-n", "20", PROMPT)
    assert done.returncode == 0
    assert done.stdout.endswith("\n")
    assert len(done.stdout.split()) > 8
    model, summary = done.stderr.splitlines()
    assert "embedded model tale-7m-q8_0.gguf" in model
    for part in ("lzs: 20 tokens, ", " tokens/s, sampling ", " µs/token; no loop", ", rep-4 0.", ", zlib "):
        assert part in summary
    own = generate("-n", "20", "-m", str(default_model()), PROMPT)
    assert own.stdout == done.stdout
    assert len(own.stderr.splitlines()) == 1


def test_every_source_of_a_prompt_gives_the_same(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(PROMPT.encode() + b"\r\n")
    ways = [
        generate("-n", "9", PROMPT),
        generate("-n", "9", "-p", PROMPT),
        generate("-n", "9", "-f", str(file)),
        generate("-n", "9", "-f", "-", stdin=PROMPT),
        generate("-n", "9", stdin=PROMPT + "\n"),
    ]
    assert len({way.stdout for way in ways}) == 1
    assert {way.returncode for way in ways} == {0}


def test_json_and_save_are_the_same_record(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = generate("--chat", "--json", "--save", str(path), "-sys", "", "What is 70 + 479?")
    assert done.returncode == 0
    record = json.loads(done.stdout)
    assert lines(path) == [record]
    assert [message["role"] for message in record["messages"]] == ["system", "user", "assistant"]
    assert record["messages"][2]["content"] == "549"
    assert (record["settings"]["lz_penalty"], record["settings"]["temperature"]) == (0.3, 0.0)
    generate("-n", "2", "--save", str(path), PROMPT)
    assert [entry["finish_reason"] for entry in lines(path)] == ["stop", "length"]


def test_a_random_seed_is_printed_and_gives_the_text_again() -> None:
    first = generate("-n", "20", "--temp", "1.2", PROMPT)
    seed = first.stderr.rpartition("lzs: seed ")[2].partition(";")[0]
    again = generate("-n", "20", "--temp", "1.2", "-s", seed, PROMPT)
    assert again.stdout == first.stdout
    assert generate("-n", "20", "--temp", "1.2", "-s", str(int(seed) + 1), PROMPT).stdout != first.stdout


def test_flags_reach_the_sampler() -> None:
    flags = {
        "--top-k": ("top_k", 40),
        "--top-p": ("top_p", 0.9),
        "--min-p": ("min_p", 0.05),
        "--lz-penalty": ("lz_penalty", 0.2),
        "--lz-window": ("lz_window", 256),
        "--lz-min-match": ("lz_min_match", 6),
        "--lz-run-penalty": ("lz_run_penalty", 0.7),
        "--lz-run-allowance": ("lz_run_allowance", 32),
        "--history": ("history", "all"),
        "--structure": ("structure", "free"),
        "--repeat-penalty": ("repetition_penalty", 1.1),
        "--frequency-penalty": ("frequency_penalty", 0.1),
        "--presence-penalty": ("presence_penalty", 0.3),
        "--repeat-last-n": ("penalty_window", 64),
        "--ties": ("ties", "keep"),
        "--temp": ("temperature", 0.7),
        "--seed": ("seed", 5),
        "--dry-multiplier": ("dry_multiplier", 0.8),
        "--dry-base": ("dry_base", 1.5),
        "--dry-allowed-length": ("dry_allowed_length", 3),
        "--dry-penalty-last-n": ("dry_penalty_last_n", 128),
        "-c": ("n_ctx", 128),
        "-b": ("n_batch", 16),
        "-t": ("n_threads", 1),
        "-n": ("max_tokens", 3),
    }
    words = [word for flag, (_, value) in flags.items() for word in (flag, str(value))]
    words += ["--temp-last", "-r", "xyz", "--regex", "[^~]+"]
    done = generate("--json", *words, PROMPT)
    settings = json.loads(done.stdout)["settings"]
    assert {field: settings[field] for field, _ in flags.values()} == dict(flags.values())
    assert (settings["temperature_last"], settings["stop"]) == (True, ["xyz"])
    assert (settings["dry_breakers"], settings["logit_bias"]) == (["\n", ":", '"', "*"], [])
    assert (settings["repetition_detection"], settings["on_loop"]) == (None, "off")
    sizes = {"--loop-max-pattern": "40", "--loop-min-pattern": "2", "--loop-min-count": "5"}
    words = [word for flag in sizes.items() for word in flag]
    settings = json.loads(generate("--json", "-n", "1", "--on-loop", "trim", *words, PROMPT).stdout)["settings"]
    expected = {"max_pattern_size": 40, "min_pattern_size": 2, "min_count": 5}
    assert (settings["repetition_detection"], settings["on_loop"]) == (expected, "trim")
    short = generate("--json", "-n", "1", "--on-loop", "stop", "--loop-max-pattern", "4", PROMPT).stdout
    expected = {"max_pattern_size": 4, "min_pattern_size": 4, "min_count": 8}
    assert json.loads(short)["settings"]["repetition_detection"] == expected


def test_dry_breakers_and_logit_bias_reach_the_sampler() -> None:
    def settings(*arguments: str) -> dict[str, Any]:
        return dict(json.loads(generate("--json", "-n", "1", *arguments, PROMPT).stdout)["settings"])

    assert settings()["dry_breakers"] == []
    dry = ("--dry-multiplier", "0.8", "--dry-sequence-breaker")
    assert settings(*dry, "none")["dry_breakers"] == []
    assert settings(*dry, "e", "--dry-sequence-breaker", r"\n")["dry_breakers"] == ["e", "\n"]
    biased = settings("--logit-bias", "100+1.5", "-l", "7-inf", "--logit-bias", "8-2e3")
    assert biased["logit_bias"] == [[7, False], [8, -2000.0], [100, 1.5]]


def test_dry_ends_a_loop_and_a_bias_forbids_a_token() -> None:
    assert "; LOOP: 15 copies of 28 characters, rep-4" in generate("-n", "200", *LOOPING).stderr
    assert "LOOP" not in generate("-n", "200", "--dry-multiplier", "0.8", *LOOPING).stderr
    tokens = json.loads(generate("--json", "-n", "30", PROMPT).stdout)["tokens"]
    forbidden = [word for token in set(tokens) for word in ("--logit-bias", f"{token}-inf")]
    others = json.loads(generate("--json", "-n", "30", *forbidden, PROMPT).stdout)["tokens"]
    assert len(others) == 30
    assert not set(tokens) & set(others)


LOOPING = ("--lz-penalty", "0", "-p", "Still Sunday said nothing, but only")


def test_stop_on_loop() -> None:
    done = generate("--on-loop", "stop", *LOOPING)
    assert done.returncode == 0
    assert done.stdout.count(" I am a man, and") == 8
    assert "lzs: stopped in a loop: 8 copies of 11 tokens from token 29\nlzs: 117 tokens, " in done.stderr
    assert generate("--loop-min-count", "3", "--on-loop", "stop", *LOOPING).stdout.count(" I am a man, and") == 3
    assert "stopped" not in generate("-n", "150", *LOOPING).stderr
    assert "stopped" not in generate("-n", "300", "--on-loop", "stop", *LOOPING[2:]).stderr  # with LZ there is no loop


def test_trim_prints_and_saves_the_first_copy(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = generate("--on-loop", "trim", "--save", str(path), *LOOPING)
    assert done.stdout.count(" I am a man, and") == 1
    assert "from token 29; only the first copy is kept\nlzs: 117 tokens, " in done.stderr
    (record,) = lines(path)
    assert done.stdout.strip() == record["messages"][0]["content"]
    assert (record["finish_reason"], record["loop"]) == ("repetition", {"start": 29, "period": 11, "count": 8})
    assert (len(record["tokens"]), record["usage"]["completion_tokens"]) == (29 + 11, 29 + 88)


def test_what_was_done_about_a_loop_is_said_and_saved(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = generate("-n", "100", "--on-loop", "rewind", "--loop-min-count", "4", "--save", str(path), *LOOPING)
    assert (
        "lzs: a loop at token 73, 4 copies of 11 tokens from token 29: went back to token 43 and continued"
        in done.stderr
    )
    (record,) = lines(path)
    assert done.stdout.strip() == record["messages"][0]["content"]
    first = record["actions"][0]
    assert (first["name"], first["rule"], first["at"], first["keep"]) == ("rewind", "period", 73, 43)
    assert first["found"] == {"start": 29, "period": 11, "count": 4}
    assert len(first["cut"]) == 30
    assert record["settings"]["on_loop"] == "rewind"
    assert record["usage"]["completion_tokens"] == 100 + sum(len(action["cut"]) for action in record["actions"])
    boosted = generate("-n", "120", "--on-loop", "boost", "-s", "7", "--loop-min-count", "4", *LOOPING)
    assert (
        "a loop at token 73, 4 copies of 11 tokens from token 29: drew at a higher temperature until" in boosted.stderr
    )
    assert "lzs: seed 7; 120 tokens" in boosted.stderr


def test_a_full_context_is_said() -> None:
    done = generate("-n", "-1", "-c", "40", PROMPT)
    assert done.returncode == 0
    assert "lzs: the context of 40 tokens is full" in done.stderr


def test_info() -> None:
    done = lzs("info")
    assert done.returncode == 0
    for part in (
        "llama\n",
        "7.48 million, Q8_0",
        "4,096 tokens (gpt2",
        "eos 0 <|endoftext|>",
        "8.09 MB",
        "264 characters",
    ):
        assert part in done.stdout
    facts = json.loads(lzs("info", "--json", str(VOCABULARY)).stdout)
    assert (facts["parameters"], facts["vocabulary"], facts["chat_template"]) == (0, 32_000, None)
    assert "none: a vocabulary without weights" in lzs("info", str(VOCABULARY)).stdout


def test_info_shows_control_characters_and_does_not_send_them(tmp_path: Path) -> None:
    path = tmp_path / "named.gguf"
    name, steering = b"lzsampler tale 7M", b"lz\x1b]0;x\x07r tale\n7M"
    assert len(name) == len(steering)
    path.write_bytes(default_model().read_bytes().replace(name, steering))
    shown = lzs("info", str(path)).stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "name            lz\ufffd]0;x\ufffdr tale ⏎ 7M\n" in shown


def test_info_of_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(default_model().read_bytes()[:-1000])
    assert "TRUNCATED: 1,000 bytes are missing" in lzs("info", str(path)).stdout


def test_demo() -> None:
    done = lzs("demo", env={**os.environ, "COLUMNS": "100"})
    assert done.returncode == 0
    rows = done.stdout.splitlines()
    assert max(map(len, rows)) <= 100
    figures = [row.partition(" | ") for row in rows if row.startswith("LOOP: ")]
    assert len(figures) == 3
    assert all(with_lz.startswith("no loop") for _, _, with_lz in figures)


@pytest.mark.parametrize("columns", [80, 66, 50, 24])
def test_demo_fits_any_terminal(columns: int) -> None:
    """At 80 columns the line of figures was one character too long for its column, and all to the right moved."""
    done = lzs("demo", "-n", "60", env={**os.environ, "COLUMNS": str(columns)})
    rows = done.stdout.splitlines()
    assert max(map(len, rows)) <= columns
    if columns >= 66:
        assert {row.index(" | ") for row in rows if " | " in row} == {(columns - 3) // 2}
    else:
        assert rows.count("-" * columns) == 6
    figures = lzs("demo", "-q", "-n", "60", env={**os.environ, "COLUMNS": str(columns)}).stdout
    assert len(figures) < len(done.stdout) / 2


def test_help_is_complete_and_light() -> None:
    done = lzs("generate", "--help")
    assert done.returncode == 0
    for part in (
        "Model:",
        "Prompt:",
        "Output:",
        "Sampling:",
        "LZ penalty:",
        "What to do about a loop (",
        "(default: 0.3, or the",
        "(default: 512)",
    ):
        assert part in " ".join(done.stdout.split())
    for command in ("generate", "info", "demo"):
        assert f"  {command} " in lzs("--help").stdout
    assert lzs("--version").stdout == f"lzs, version {__version__}\n"
    heavy = ["llama_cpp", "jinja2", "lzsampler.llama.gguf"]
    code = f"import sys, lzsampler.cli.main; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- bad input: one line, and where help would help a second one that says how to get it --


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error."""
    line, *hint = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("lzs: ")
    command = done.args[1]
    allowed = [[], [f"Try 'lzs {command} --help' for help."], ["Try 'lzs --help' for help."]]
    assert hint in allowed, done.stderr
    return line


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder, model = tmp_path_factory.mktemp("bad"), default_model().read_bytes()
    contents = {
        "cut": model[:4_000_000],
        "header": model[:40_000],
        "text": b"not a model",
        "empty": b"",
        "newline": b"\n",
        "latin1": "Voilà".encode("latin-1"),
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return {name: str(folder / name) for name in contents} | {"folder": str(folder), "vocabulary": str(VOCABULARY)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "nothing.gguf", "x"], "nothing.gguf does not exist"),
        (["-m", "{folder}", "x"], "is a directory: give the .gguf file in it"),
        (["-m", "{cut}", "x"], "is truncated: 4,089,312 of 8,089,312 bytes are missing; fetch it again"),
        (["-m", "{header}", "x"], "is truncated: it ends inside its header"),
        (["-m", "{text}", "x"], "is not a GGUF file"),
        (["-m", "{empty}", "x"], "is empty"),
        (["-m", "{vocabulary}", "x"], "holds a vocabulary without weights"),
        (["-p", ""], "the prompt is empty"),
        (["-f", "{newline}"], "the prompt is empty"),
        (["-f", "{latin1}"], "latin1 is not UTF-8 text (byte 4): convert it first"),
        (["-f", "nothing.txt"], "nothing.txt: No such file or directory"),
        (["-f", "{folder}"], "Is a directory"),
        (["-p", "a", "b"], "give the prompt once"),
        (
            ["-c", "4", "Once upon a time there was"],
            "shorten the prompt or ",
        ),
        (["--lz-penalty=-0.1", "x"], "--lz-penalty must be at least 0, got -0.1"),
        (["--lz-penalty", "nan", "x"], "--lz-penalty must be finite, got nan"),
        (["--lz-penalty", "much", "x"], "--lz-penalty must be a number, got 'much'"),
        (["--lz-window", "1", "x"], "--lz-window must be from 2 to 131072, got 1"),
        (
            ["--preset", "paper", "--lz-window", "32", "--lz-buffer", "32", "x"],
            "--lz-buffer must be below --lz-window (32), got 32",
        ),
        (["--preset", "paper", "--lz-buffer", "3000", "x"], "--lz-buffer must be below --lz-window (512), got 3000"),
        (["--lz-penalty", "1e40", "x"], "--lz-penalty must be from 0 to 3.4e+38, got 1e+40"),
        (["--lz-formula", "best", "x"], "'best' is not one of 'rate', 'distance', 'codelength'"),
        (["--history", "some", "x"], "'some' is not one of 'generated', 'all'"),
        (["--temp=-1", "x"], "--temp must be from 0 to 1e+06, got -1.0"),
        (["--temp", "nan", "x"], "--temp must be finite, got nan"),
        (["--top-k=-1", "x"], "--top-k must be from 0"),
        (["--top-p", "1.5", "x"], "--top-p must be from 0 to 1, got 1.5"),
        (["--min-p", "nan", "x"], "--min-p must be finite, got nan"),
        (["--repeat-penalty", "0", "x"], "--repeat-penalty must be above 0"),
        (["--frequency-penalty", "inf", "x"], "--frequency-penalty must be finite, got inf"),
        (["--presence-penalty", "nan", "x"], "--presence-penalty must be finite, got nan"),
        (["--repeat-last-n=-2", "x"], "--repeat-last-n must be at least -1, got -2"),
        (["--dry-multiplier=-1", "x"], "--dry-multiplier must be at least 0, got -1.0"),
        (["--dry-multiplier", "1e40", "x"], "--dry-multiplier must be from 0 to 3.4e+38, got 1e+40"),
        (["--dry-multiplier", "nan", "x"], "--dry-multiplier must be finite, got nan"),
        (["--dry-base", "0.5", "x"], "--dry-base must be at least 1, got 0.5"),
        (["--dry-allowed-length=-1", "x"], "--dry-allowed-length must be from 0"),
        (["--dry-penalty-last-n=-2", "x"], "--dry-penalty-last-n must be from -1 to 131072, got -2"),
        (["--dry-penalty-last-n", "131073", "x"], "--dry-penalty-last-n must be from -1 to 131072, got 131073"),
        (["--dry-sequence-breaker=", "x"], "--dry-sequence-breaker must not be empty"),
        (
            ["--dry-sequence-breaker", "a", "--dry-sequence-breaker", "none", "x"],
            "--dry-sequence-breaker none removes all of them: leave the others out",
        ),
        (
            ["--dry-multiplier", "1", "--dry-sequence-breaker", "zqzqzq", "x"],
            "no token of this vocabulary contains 'zqzqzq'",
        ),
        (["--logit-bias", "5", "x"], "takes a token id and a signed number like 15043+1 or 15043-1, got '5'"),
        (["--logit-bias", "a+1", "x"], "--logit-bias takes a token id and a signed number like"),
        (["--logit-bias", "5+much", "x"], "like 15043+1 or 15043-1, got '5+much'"),
        (["--logit-bias", "5+nan", "x"], "--logit-bias must be finite, or -inf to forbid the token, got nan"),
        (["--logit-bias", "5+inf", "x"], "--logit-bias must be finite, or -inf to forbid the token, got inf"),
        (
            ["--logit-bias", "5+1", "-l", "5-1", "x"],
            "--logit-bias must have one number for each token, got two",
        ),
        (
            ["--logit-bias", "4096+1", "x"],
            "lzs: --logit-bias must be tokens below 4096, the size of the vocabulary, got 4096",
        ),
        (["--seed=-2", "x"], "--seed must be from 0"),
        (["-n", "-2", "x"], "--n-predict must be at least -1, got -2"),
        (["-n", "3000000000", "x"], "--n-predict must be from -1 to 2147483647, got 3000000000"),
        (["-t", "0", "x"], "--threads must be at least 1, got 0"),
        (["-b", "0", "x"], "--batch-size must be at least 1, got 0"),
        (["-c", "-1", "x"], "--ctx-size must be at least 0, got -1"),
        (["--loop-min-count", "3", "x"], "--loop-min-count has no effect without --on-loop: add --on-loop stop"),
        (["--loop-rule", "stuck", "x"], "--loop-rule has no effect without --on-loop: add --on-loop stop"),
        (["--loop-scope", "tool", "x"], "--loop-scope has no effect without --on-loop: add --on-loop stop"),
        (
            ["--on-loop", "stop", "--loop-rule", "stuck", "--loop-min-count", "3", "x"],
            "--loop-min-count has no effect with --loop-rule stuck: use --loop-rule period or both",
        ),
        (["--on-loop", "stop", "--loop-max-pattern=-1", "x"], "--loop-max-pattern must be from 0 to 65536, got -1"),
        (["--on-loop", "stop", "--loop-max-pattern", "0", "x"], "--loop-max-pattern must be at least 1, got 0"),
        (["--on-loop", "stop", "--loop-max-pattern", "99999", "x"], "--loop-max-pattern must be from 0 to 65536"),
        (
            ["--on-loop", "stop", "--loop-max-pattern", "nan", "x"],
            "--loop-max-pattern must be a whole number, got 'nan'",
        ),
        (["--on-loop", "stop", "--loop-min-pattern", "513", "x"], "--loop-min-pattern must be at most"),
        (["--on-loop", "stop", "--loop-min-pattern=-1", "x"], "--loop-min-pattern must be from 0 to 65536, got -1"),
        (["--on-loop", "stop", "--loop-min-count", "1", "x"], "--loop-min-count must be from 2 to 131072, got 1"),
        (["--on-loop", "stop", "--loop-min-count", "1000", "x"], "must be at most 131072 tokens, got 512 * 1000"),
        (["--on-loop", "stop", "--loop-min-count", "many", "x"], "--loop-min-count must be a whole number, got 'many'"),
        (["-r", "", "x"], "--reverse-prompt must be "),
        (["--save", "{folder}/no/t.jsonl", "x"], "no/t.jsonl: No such file or directory"),
        (["--save", "{folder}", "x"], "Is a directory"),
        (["--bogus", "x"], "No such option"),
    ],
)
def test_bad_input(files: dict[str, str], arguments: list[str], message: str) -> None:
    done = generate(*(word.format_map(files) for word in arguments))
    assert message in complaint(done)


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["generate"], b"", "the prompt is empty"),
        (["generate", "", "-n", "1"], None, "the prompt is empty"),
        (["generate"], b"ab\xff", "stdin is not UTF-8 text (byte 2)"),
        (["generate", "-n", "1", b"a\xff"], None, "PROMPT is not UTF-8 text: convert it first"),
        (["bogus"], None, "No such command 'bogus'"),
        (["--bogus"], None, "No such option"),
        (["info", "nothing.gguf"], None, "nothing.gguf does not exist"),
    ],
)
def test_more_bad_input(arguments: list[Any], stdin: bytes | None, message: str) -> None:
    done = lzs(*arguments, stdin=stdin)
    assert message in complaint(done)


@pytest.mark.parametrize("command", ["eval", "cost"])
def test_a_setting_for_a_command_with_a_grid_is_sent_there(command: str) -> None:
    done = lzs(command, "--lz-run-allowance", "3")
    assert done.stderr.splitlines() == [
        "lzs: No such option '--lz-run-allowance'.",
        "Set it in the file of --grid, as lz_run_allowance.",
    ]
    assert lzs(command, "--lz", "3").stderr.splitlines()[1] == f"Try 'lzs {command} --help' for help."


def test_without_llama_cpp_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "llama_cpp.py").write_text("raise ModuleNotFoundError('No module', name='llama_cpp')")
    done = generate("x", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lzs: llama-cpp-python is needed for this: pip install llama-cpp-python\n"
    assert lzs("info", env={**os.environ, "PYTHONPATH": str(tmp_path)}).returncode == 0


# -- breaking off --


def test_ctrl_c_keeps_and_saves_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    process = started("--save", str(path), *TEXT_BEFORE_END)
    assert process.stdout is not None
    begun = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    (record,) = lines(path)
    assert record["finish_reason"] == "interrupted"
    assert 0 < len(record["tokens"]) < 1000
    assert record["messages"][0]["content"] == (begun + rest).decode().strip()


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with started("--save", str(path), *TEXT_BEFORE_END) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()  # as head -1 does
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode == 0
    assert len(errors.splitlines()) == 2, errors  # which model, and the figures
    (record,) = lines(path)
    assert record["finish_reason"] == "interrupted"
    assert record["messages"][0]["content"].startswith(line.decode().strip())


def test_a_closed_pipe_of_other_commands() -> None:
    for arguments in (["info", "--json"], ["generate", "--json", "-n", "1", "x"], ["generate", "--help"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([LZS, *arguments], stdout=write, stderr=subprocess.PIPE, timeout=60)
        os.close(write)
        assert done.returncode == 0, arguments
        assert b"Traceback" not in done.stderr
        assert b"Exception" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(tmp_path: Path) -> None:
    done = generate("-n", "5", "--save", "/dev/full", PROMPT)
    assert done.returncode == 2
    assert len(done.stdout) > 5  # the text is not lost
    assert done.stderr == "lzs: cannot save the transcript to /dev/full: No space left on device\n"
    path = tmp_path / "t.jsonl"
    with open("/dev/full", "wb") as full:
        process = subprocess.run([LZS, "generate", "-n", "5", "--save", str(path), PROMPT], stdout=full, stderr=-1)
    assert process.returncode == 2
    assert process.stderr.decode().splitlines()[-1] == "lzs: stdout: No space left on device"
    assert len(lines(path)) == 1
