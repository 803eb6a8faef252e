"""Texts under a grammar: `generate` and `lzs generate` on the embedded model, with a vocabulary of llama.cpp."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lzsampler import Grammar, Params
from lzsampler.models import default_model

pytest.importorskip("llama_cpp")

from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.decoding.policy import LoopPolicy
from lzsampler.llama import token_bytes
from lzsampler.llama.model import Model

SPM = Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf"
GREEDY = Params(temperature=0.0, lz_penalty=0.15)
PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_threads=1) as opened:
        yield opened


def test_texts_match_and_end_by_themselves(model: Model) -> None:
    patterns = [
        r"(yes|no), [a-z ]{3,40}\.",
        r"\d{4}-\d{2}-\d{2}",
        r'"([^"\\\x00-\x1f]|\\.){0,30}"',
        "[é-ü]{3}",
        "[A-Z ]{12}",
    ]
    for pattern in patterns:
        grammar = Grammar.regex(pattern, model)
        for temperature in (0.0, 1.5):
            made = generate(
                model,
                PROMPT,
                GenerationConfig(Params(temperature=temperature, seed=4), max_tokens=120, grammar=grammar),
            )
            assert made.finish_reason == "stop"
            assert re.fullmatch(pattern, made.text), (pattern, made.text)
            assert b"".join(map(model.piece, made.tokens)).decode() == made.text
    choices = ["a red house", "a red horse", "blue"]
    assert generate(model, PROMPT, GenerationConfig(GREEDY, grammar=Grammar.choices(choices, model))).text in choices


def test_a_text_that_ends_early_is_the_beginning_of_one_that_matches(model: Model) -> None:
    grammar = Grammar.regex("([a-z]+ ){200}end", model)
    made = generate(model, PROMPT, GenerationConfig(GREEDY, max_tokens=20, grammar=grammar))
    assert (made.finish_reason, grammar.match(made.text)) == ("length", "beginning")


def test_a_grammar_that_allows_everything_changes_nothing(model: Model) -> None:
    free = generate(model, PROMPT, GenerationConfig(GREEDY, max_tokens=60))
    assert (
        generate(model, PROMPT, GenerationConfig(GREEDY, max_tokens=60, grammar=Grammar.regex("(?s).*", model))).text
        == free.text
    )


def test_a_loop_under_a_grammar_is_taken_back_within_it(model: Model) -> None:
    pattern = "((ab ){3}|(cd ){2}|ef ){1,60}"
    grammar = Grammar.regex(pattern, model)
    made = generate(
        model,
        PROMPT,
        GenerationConfig(
            Params(temperature=0.0),
            max_tokens=150,
            grammar=grammar,
            on_loop=LoopPolicy(action="rewind", max_recoveries=5),
        ),
    )
    assert made.actions
    assert grammar.match(made.text) != "no"


def test_what_a_grammar_cannot_be_used_with(model: Model) -> None:
    grammar = Grammar.regex("a", model)
    with pytest.raises(ValueError, match="ignore_eos forbids the tokens that end a text"):
        generate(model, PROMPT, GenerationConfig(GREEDY, ignore_eos=True, grammar=grammar))
    with pytest.raises(ValueError, match="on_loop='close-think' writes tokens that a grammar may refuse"):
        generate(model, PROMPT, GenerationConfig(GREEDY, grammar=grammar, on_loop="close-think"))
    with pytest.raises(ValueError, match="grammar must be for 4096 tokens, but its vocabulary has 32000"):
        generate(model, PROMPT, GenerationConfig(GREEDY, grammar=Grammar.regex("a", token_bytes(SPM))))
    with pytest.raises(TypeError, match="source must be a llama_cpp"):
        token_bytes(3)
    with pytest.raises(ValueError, match="does not exist"):
        token_bytes("no.gguf")


def lzs(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("lzs")), "generate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


def test_lzs_generate_with_a_regex_and_with_choices() -> None:
    record = json.loads(lzs("--regex", "[0-9]{4}", "--json", PROMPT).stdout)
    assert re.fullmatch("[0-9]{4}", record["messages"][-1]["content"])
    assert record["settings"]["grammar"] == {"regex": "[0-9]{4}"}
    assert lzs("-q", "--choice", "red", "--choice", "blue", PROMPT).stdout.strip() in ("red", "blue")
    said = "the text ends before it matches the grammar: -n N lets it be longer"
    assert said not in lzs("--choice", "red", "--choice", "blue", PROMPT).stderr
    assert said in lzs("--regex", "[a-z]{200}", "-n", "3", PROMPT).stderr


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
}


def test_texts_meet_a_json_schema(model: Model) -> None:
    for temperature in (0.0, 1.5):
        params = Params(temperature=temperature, lz_penalty=0.15, seed=2)
        made = generate(
            model, PROMPT, GenerationConfig(params, max_tokens=80, grammar=Grammar.json_schema(SCHEMA, model))
        )
        value = json.loads(made.text)
        assert made.finish_reason == "stop"
        assert list(value) == ["name", "age"]
        assert len(value["name"]) <= 12
        assert 0 <= value["age"] <= 120


def test_lzs_writes_json_of_a_schema_or_a_file_with_one(tmp_path: Path) -> None:
    file = tmp_path / "a schema.json"
    file.write_text("\ufeff" + json.dumps(SCHEMA), encoding="utf-8")
    texts = [
        lzs("-q", "-n", "80", *arguments, PROMPT).stdout
        for arguments in (("-j", json.dumps(SCHEMA)), ("-j", str(file)), ("-jf", str(file)))
    ]
    assert texts[0] == texts[1] == texts[2]
    assert list(json.loads(texts[0])) == ["name", "age"]
    record = json.loads(lzs("-n", "80", "-jf", str(file), "--json", PROMPT).stdout)
    assert record["settings"]["grammar"] == {"json_schema": SCHEMA}
    missing = lzs("-jf", str(tmp_path / "missing"), PROMPT)
    assert (missing.returncode, missing.stderr) == (2, f"lzs: {tmp_path / 'missing'}: No such file or directory\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--regex", "a(b"),
            "--regex must be as in docs/grammar.md, but at character 1 ('(b') the group is not closed",
        ),
        (("--regex", "a", "--choice", "b"), "--regex and --choice exclude each other"),
        (("--choice", "b", "--ignore-eos"), "--ignore-eos forbids the tokens that end a text, which --choice needs"),
        (("-j", '{"not": {}}'), "--json-schema must be as in docs/grammar.md, but at #/not: 'not' is not supported"),
        (
            ("-j", '{"pattern": "(a"}'),
            "but at #/pattern: the group is not closed: ) is missing (at character 0 of the pattern)",
        ),
        (
            ("-j", "no such file.json"),
            "-j 'no such file.json' is neither a JSON Schema, such as {...}, nor a file",
        ),
        (("-jf", str(SPM)), "ggml-vocab-llama-spm.gguf: schema must be JSON in UTF-8, but byte "),
        (("-j", ""), "--json-schema must be JSON, but its text is empty"),
        (("-j", "{}", "--regex", "a"), "--regex and -j exclude each other"),
        (("-j", "{}", "-jf", "a"), "-j and -jf exclude each other"),
        (("-jf", "a", "--ignore-eos"), "--ignore-eos forbids the tokens that end a text, which -jf needs"),
        (("--regex", "b", "--on-loop", "close-think"), "--on-loop close-think writes what --regex may forbid"),
    ],
)
def test_lzs_refuses_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = lzs(*arguments, PROMPT)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr
