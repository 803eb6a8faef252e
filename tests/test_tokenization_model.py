"""`tokenization=` with models: `generate`, `lzs generate`, and what it does to the probabilities of a real model."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lzsampler import Grammar, LzsError
from lzsampler.decoding.config import GenerationConfig
from lzsampler.params import Params

pytest.importorskip("llama_cpp")
sys.path.append(str(Path(__file__).parents[1] / "bench"))

from fidelity import CASES, constrained, free
from lzsampler import Model, generate
from lzsampler.models import default_model

LZS = str(Path(sys.executable).with_name("lzs"))


@pytest.fixture(scope="module")
def tale() -> Iterator[Model]:
    with Model(default_model(), n_ctx=256, n_threads=1) as model:
        yield model


def test_generated_tokens_are_those_of_the_tokenizer(tale: Model) -> None:
    pattern = r"[A-Z][a-z]{2,9}( [a-z]{1,9}){2,6}[.!?]"
    for seed in range(4):
        params = Params.recommended(tale, temperature=1.0, seed=seed)
        grammar = Grammar.regex(pattern, tale, tokenization="proper")
        made = generate(tale, "Once upon a time, ", GenerationConfig(params, max_tokens=60, grammar=grammar))
        assert grammar.match(made.text) == "yes"
        tokens = [token for token in made.tokens if not tale.is_eog(token)]
        assert tokens == tale.tokenize(made.text)
        assert grammar.source == {"regex": pattern, "tokenization": "proper"}


def test_free_text_under_proper_is_spelled_as_the_tokenizer_spells_it(tale: Model) -> None:
    grammar = Grammar.proper(tale)
    made = generate(
        tale,
        "Once upon a time",
        GenerationConfig(Params.recommended(tale, temperature=1.5, seed=3), max_tokens=80, grammar=grammar),
    )
    text = b"".join(tale.piece(token) for token in made.tokens)
    assert tale.token_bytes.spelling.wrong([t for t in made.tokens if not tale.is_eog(t)]) is None, text


def lzs(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [LZS, "generate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)


@pytest.mark.parametrize("tokenization", ["any", "forced", "proper"])
def test_the_flag(tokenization: str, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    flags = ["--tokenization", tokenization, "--choice", "the cat sat", "--choice", "the dog ran", "--save", path]
    done = lzs(*flags, "Once upon a time ")
    assert (done.returncode, done.stdout.strip() in ("the cat sat", "the dog ran")) == (0, True), done.stderr
    grammar = json.loads(path.read_text(encoding="utf-8"))["settings"]["grammar"]
    expected = {} if tokenization == "any" else {"tokenization": tokenization}
    assert grammar == {"choices": ["the cat sat", "the dog ran"], **expected}


def test_the_flag_without_a_grammar(tmp_path: Path) -> None:
    done = lzs("--tokenization", "proper", "-n", "12", "--json", "Once upon a time")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["grammar"] == {"tokenization": "proper"}
    assert "matches" not in done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--tokenization", "forced"], "--tokenization forced is about what a grammar forces: give --regex"),
        (["--tokenization", "exact"], "'exact' is not one of 'any', 'forced', 'proper'"),
        (["--tokenization", "proper", "--ignore-eos"], "--ignore-eos forbids the tokens that end a text"),
        (["--tokenization", "proper", "--regex", "a", "--choice", "b"], "--regex and --choice exclude each other"),
        (["--tokenization", "proper", "--regex", "("], "--regex must be as in docs/grammar.md"),
    ],
)
def test_wrong_flags_are_refused_in_one_line(flags: list[str], message: str) -> None:
    done = lzs(*flags, "x")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_whose_tokenizer_is_not_known_is_refused(tale: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from lzsampler.llama import gguf, spelling
    from lzsampler.llama.vocabulary import Vocabulary

    monkeypatch.setattr(spelling, "WORDS_OF", {})
    with pytest.raises(
        LzsError, match=r"lzsampler does not know how the tokenizer of tale-7m-q8_0.gguf splits texts: its pre-"
    ):
        spelling.spelling_of(Vocabulary(tale.path), gguf.read(tale.path), tale.token_bytes)


# ---- the article's effects on a real model ----


@pytest.fixture(scope="module")
def smol(smollm2: Path) -> Iterator[Model]:
    with Model(smollm2, n_ctx=256, n_threads=1) as model:
        yield model


@pytest.mark.real
@pytest.mark.parametrize(("prompt", "texts"), CASES)
def test_proper_tokens_keep_the_probabilities_of_the_model(smol: Model, prompt: str, texts: tuple[str, str]) -> None:
    """The article's William and Theodore, and its shark, whose kind is another one once the word is misspelled."""
    expected = free(smol, prompt, texts)
    loose, proper = constrained(smol, prompt, texts, "any", rest=0.2), constrained(smol, prompt, texts, "proper")
    assert (loose.rest <= 0.2, proper.rest) == (True, 0)
    least = abs(loose.value - expected) - loose.rest / 2
    assert least > 0.05
    assert abs(proper.value - expected) <= least / 10
