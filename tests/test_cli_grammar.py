"""`lzs grammar`, and the options of a grammar with many prompts, in a chat, and with forced tokens."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from lzsampler import Grammar, TokenBytes
from lzsampler.constraint.automaton import automaton_of
from lzsampler.decoding.forced import forced_of
from lzsampler.reports.automaton_svg import automaton_svg

pytest.importorskip("llama_cpp")

SPM = Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf"
TOKENS = TokenBytes([b"", *(bytes([i]) for i in range(256)), b"abc", b"<b>"], end=[0])
PERSON = '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}, "required": ["name"]}'


def lzs(*arguments: object, **settings: Any) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("lzs")), *map(str, arguments)]
    settings.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **settings)


# ---- the automaton ----


def test_the_automaton_has_the_states_of_the_grammar() -> None:
    automaton = automaton_of(Grammar.regex("a(b|c)*d", TOKENS))
    assert automaton.complete
    begin, inside, end = automaton.states
    assert (begin.matches, begin.edges, begin.allowed) == (False, {1: (97,)}, 2)  # a, and abc
    assert (inside.matches, inside.edges, inside.allowed) == (False, {1: (98, 99), 2: (100,)}, 3)
    assert (end.matches, end.edges, end.allowed) == (True, {}, 1)
    assert automaton.forced == 1


def test_an_automaton_that_is_too_large_is_not_complete() -> None:
    automaton = automaton_of(Grammar.regex("[a-z]{50}", TOKENS), 20)
    assert (len(automaton.states), automaton.complete) == (20, False)
    assert automaton_of(Grammar.regex("[a-z]{50}", TOKENS), 51).complete
    with pytest.raises(TypeError, match="grammar must be a Grammar, got 'a'"):
        automaton_of("a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit must be"):
        automaton_of(Grammar.regex("a", TOKENS), 0)


def test_tokens_that_are_forced_are_counted() -> None:
    assert forced_of(Grammar.choices(["<b>x", "<b>y"], TOKENS), "<b>x") == (0, 2)
    assert forced_of(Grammar.regex("xyz[01]", TOKENS), "xyz1") == (3, 4)
    assert forced_of(Grammar.regex("a", TOKENS), "b") is None
    assert forced_of(Grammar.regex("ab", TOKENS), "a") is None
    assert forced_of(Grammar.regex("", TOKENS), "") == (0, 0)


def test_a_picture_has_each_state_and_edge_that_remain() -> None:
    """States that one byte each leads through are one edge with a text."""
    picture = automaton_svg(automaton_of(Grammar.regex('hello (<b>|"&")[0-9]*', TOKENS)))
    root = ElementTree.fromstring(picture)
    name = "{http://www.w3.org/2000/svg}"
    titles = [title.text for title in root.iter(f"{name}title")]
    assert sorted(filter(None, titles)) == sorted(["hello␣", '"&" | <b>', "0-9"])
    circles = [circle for circle in root.iter(f"{name}circle") if circle.get("class", "").startswith("state")]
    assert len(circles) == 3
    assert len([circle for circle in root.iter(f"{name}circle") if circle.get("class") == "end"]) == 1
    with pytest.raises(ValueError, match="a picture shows at most 60 states, but this automaton has 101: leave out -o"):
        automaton_svg(automaton_of(Grammar.regex("[ab]{100}", TOKENS)))


# ---- lzs grammar ----


def test_texts_are_checked(tmp_path: Path) -> None:
    done = lzs("grammar", "check", "--regex", r"\d{4}-\d{2}", "2024-01", "2024-", "2024-x1", "y" * 90)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "yes        '2024-01': 7 tokens, 1 forced (14 %)",
        "beginning  '2024-': a longer text can match",
        "no         '2024-x1': wrong at character 5, 'x1'",
        f"no         '{'y' * 40}'…: wrong at character 0, '{'y' * 20}'…",
    ]
    assert lzs("grammar", "check", "--choice", "a", "a").returncode == 0
    ready = lzs("grammar", "check", "-j", PERSON)
    assert (ready.returncode, ready.stdout) == (0, "the grammar can be used; give texts to check them\n")
    file = tmp_path / "text.json"
    file.write_text('{"name": "Anna"}\n', encoding="utf-8")
    made = json.loads(lzs("grammar", "check", "-j", PERSON, "-f", file, "--json").stdout)
    assert made["texts"][0]["match"] == "yes"
    assert made["texts"][0]["text"] == '{"name": "Anna"}'
    assert 0 < made["texts"][0]["forced"] < made["texts"][0]["tokens"]
    piped = lzs("grammar", "check", "--yaml-schema", PERSON, "-f", "-", stdin=None, input='name: "Anna"\n')
    assert piped.stdout.startswith("yes ")
    assert lzs("grammar", "check", "-q", "--choice", "a", "b").stdout == ""


def test_the_automaton_is_shown_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "a.svg"
    done = lzs("grammar", "show", "-m", SPM, "--regex", "(yes|no)!*", "-o", picture)
    assert (done.returncode, done.stderr) == (0, f"lzs: picture: {picture}\n")
    assert re.fullmatch(
        r"states  5; in 1 of them the text may end\nmasks   \d+ to \d+ of 32,000 tokens, median \d+\n"
        r"forced  \d states allow one token only \(\d+ %\)\n",
        done.stdout,
    ), done.stdout
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    figures = json.loads(lzs("grammar", "show", "-m", SPM, "--regex", "(yes|no)!*", "--json").stdout)
    assert (figures["states"], figures["matching"], figures["complete"]) == (5, 1, True)
    more = lzs("grammar", "show", "--regex", "[a-z]{3000}")
    assert more.stdout.startswith("states  2,000 looked at; there are more; in 0 of them")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check",), "there is no grammar: give --regex, --choice, -j, -jf, --yaml-schema, --grammar or"),
        (("show", "--regex", "a", "text"), "lzs grammar show takes no texts"),
        (("check", "--regex", "a", "-o", "x.svg"), "-o draws an automaton: use it with lzs grammar show"),
        (("check", "--regex", "a(b"), "--regex must be as in docs/grammar.md, but at character 1"),
        (("show", "-j", '{"not": {}}'), "--json-schema must be as in docs/grammar.md, but at #/not"),
        (("show", "--yaml-schema", '{"not": {}}'), "--yaml-schema must be as in docs/grammar.md, but at #/not"),
        (("show", "--yaml-schema", '{"not": {}}'), "at #/not: 'not' is not supported"),
        (("show", "--yaml-schema", "nothing.json"), "--yaml-schema 'nothing.json' is neither a JSON Schema"),
        (("check", "--grammar", __file__, "a"), "it has no rule; for a file there is --grammar-file"),
        (
            ("check", "-j", '{"a": 1, "a": 2}'),
            "--json-schema must have each key of an object once, but one has 'a' twice",
        ),
        (
            ("show", "--regex", "[ab]{300}", "-o", "no.svg"),
            "a picture shows at most 60 states, but this automaton has 301",
        ),
        (("show", "--regex", "a", "-o", "a.png"), "cannot write a.png: its name must end in .svg"),
        (("check", "--regex", "a", "--regex", "b"), "--regex can be given once: join the patterns with |"),
        (("check", "--regex", ""), "--regex is empty, and matches only an empty text: give a pattern"),
        (("check", "--choice", ""), "the only --choice is an empty text: give the texts to choose from"),
        (
            ("check", "-j", '{"type": "string", "maxlength": 3}'),
            "at #/maxlength: 'maxlength' is not a supported keyword: did you mean 'maxLength'?",
        ),
        (
            ("check", "-j", '{"format": "email", "maxLength": 9}'),
            "at #/format: format does not go with these lengths: leave",
        ),
        (("check", "-j", "x" * 5000), "is neither a JSON Schema, such as {...}, nor a file"),
        (("check", "--regex", "a", "-f", "missing.txt"), "missing.txt: No such file or directory"),
        (("check", "--regex", "a", "-f", str(SPM)), "is not UTF-8 text"),
        (("look", "--regex", "a"), "'look' is not one of 'check', 'show'"),
        (("check", "--regex", "a", "-m", "missing.gguf"), "missing.gguf does not exist"),
    ],
)
def test_wrong_arguments_are_said_in_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = lzs("grammar", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


# ---- lzs generate ----


def test_many_prompts_under_one_grammar(tmp_path: Path) -> None:
    prompts, saved = tmp_path / "prompts.jsonl", tmp_path / "made.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"Number {n}: "}) + "\n" for n in range(5)), encoding="utf-8")
    done = lzs("generate", "--prompts", prompts, "--save", saved, "--regex", "[0-9]{3}|[a-z]{2,4}!", "-np", 3)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 5
    for row in rows:
        assert re.fullmatch("[0-9]{3}|[a-z]{2,4}!", row["messages"][-1]["content"])
        assert row["settings"]["grammar"] == {"regex": "[0-9]{3}|[a-z]{2,4}!"}
    short = lzs("generate", "--prompts", prompts, "--json", "--regex", "[0-9]{50}", "-n", 3)
    said = "5 texts end before they match the grammar (ids '1', '2', '3', '4', '5'): -n N allows longer texts"
    assert said in short.stderr


def test_many_prompts_say_which_texts_do_not_match(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    asked = [{"id": f"p{n}", "prompt": f"Number {n}: "} for n in range(7)]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    some = lzs("generate", "--prompts", prompts, "--json", "--regex", "[0-9]{50}", "-n", 3)
    named = "(ids 'p0', 'p1', 'p2', 'p3', 'p4', and 2 more): -n N allows longer texts"
    assert f"7 texts end before they match the grammar {named}" in some.stderr
    prompts.write_text(json.dumps(asked[3]) + "\n", encoding="utf-8")
    stopped = lzs("generate", "--prompts", prompts, "--json", "--regex", "a{30}b", "-r", "aa")
    assert "lzs: 1 text ends before it matches the grammar (id 'p3')\n" in stopped.stderr


def test_a_chat_under_a_grammar(tmp_path: Path) -> None:
    saved = tmp_path / "made.jsonl"
    done = lzs(
        "generate", "-cnv", "-j", PERSON, "-n", 60, "--save", saved, stdin=None, input="Who is it?\nAnd who else?\n"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 2
    for row in rows:
        answer = row["messages"][-1]  # content, though the template of this model opens a thought
        assert list(json.loads(answer["content"])) == ["name"]
        assert row["settings"]["grammar"] == {"json_schema": json.loads(PERSON)}
    short = lzs("generate", "-cnv", "--regex", "[0-9]{50}", "-n", 3, stdin=None, input="Who?\n")
    assert "the text ends before it matches the grammar: -n N lets it be longer" in short.stderr


def test_what_is_said_of_a_text_that_does_not_match() -> None:
    ends = "the text ends before it matches the grammar"
    short = lzs("generate", "--regex", "a{30}b", "-n", 5, "x")
    assert f"{ends}: -n N lets it be longer" in short.stderr
    stopped = lzs("generate", "--regex", "a{30}b", "-r", "aa", "x")
    assert ends in stopped.stderr
    assert "-n N" not in stopped.stderr
    empty = lzs("generate", "--regex", "()", "x")
    assert empty.returncode == 0
    assert "add --chat" not in empty.stderr
    thinking = lzs("generate", "--chat", "--regex", "a{3}b", "x")
    assert (
        "the chat template opens a thought, so all of this text is thinking: add --grammar-scope answer"
        in thinking.stderr
    )
    closed = lzs("generate", "--chat", "--regex", "a</think>b", "x")
    assert "the model closes a thought within this text, so its beginning is thinking" in closed.stderr
    unopened = lzs("generate", "--regex", "a{3}b", "--grammar-scope", "answer", "x")
    assert "the chat template opens no thought, so the grammar applied from the first token" in unopened.stderr
    answer = lzs("generate", "--chat", "--regex", "a{3}b", "--grammar-scope", "answer", "-n", 100, "x")
    assert "opens a thought" not in answer.stderr


def test_lzs_says_how_many_tokens_were_not_sampled() -> None:
    asked = ("generate", "-fa", "on", "-j", PERSON, "-n", 60, "--json", "A king: ")
    fast = lzs(*asked)
    record = json.loads(fast.stdout)
    said = re.search(r"(\d+) of (\d+) tokens were not sampled: the grammar allowed nothing else", fast.stderr)
    assert said is not None
    assert (int(said[1]), int(said[2])) == (record["forced_tokens"], len(record["tokens"]))
    assert record["forced_tokens"] > 0
    assert record["grammar_match"] == "yes"
    assert "forced_tokens" not in json.loads(lzs("generate", "--json", "-n", 2, "A king").stdout)


def test_yaml_is_written() -> None:
    done = lzs("generate", "-q", "--yaml-schema", PERSON, "-n", 60, "A king: ")
    assert re.fullmatch(r'name: "[^\n]*"\n', done.stdout), done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--grammar-scope", "answer", "x"), "--grammar-scope has no effect without a grammar"),
        (("--structure", "free", "x"), "--structure has no effect without a grammar"),
        (("--yaml-schema", "{}", "-j", "{}", "x"), "-j and --yaml-schema exclude each other"),
        (("--regex", "(", "-cnv"), "--regex must be as in docs/grammar.md"),
        (("--regex", "a", "-cnv", "--ignore-eos"), "--ignore-eos forbids the tokens that end a text"),
    ],
)
def test_conflicts_are_said_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = lzs("generate", *arguments)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[0]
