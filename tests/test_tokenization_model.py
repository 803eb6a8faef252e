"""`tokenization=` with models: `generate`, `lzs generate`, and what it does to the probabilities of a real model."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import Grammar, LzsError, Sampler

pytest.importorskip("llama_cpp")

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
        params = tale.params(temperature=1.0, seed=seed)
        grammar = Grammar.regex(pattern, tale, tokenization="proper")
        made = generate(tale, "Once upon a time, ", params, n_predict=60, grammar=grammar)
        assert grammar.match(made.text) == "yes"
        tokens = [token for token in made.tokens if not tale.is_eog(token)]
        assert tokens == tale.tokenize(made.text)
        assert grammar.source == {"regex": pattern, "tokenization": "proper"}


def test_free_text_under_proper_is_spelled_as_the_tokenizer_spells_it(tale: Model) -> None:
    grammar = Grammar.proper(tale)
    made = generate(tale, "Once upon a time", tale.params(temperature=1.5, seed=3), n_predict=80, grammar=grammar)
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
    from lzsampler.llama import spelling

    monkeypatch.setattr(spelling, "WORDS_OF", {})
    with pytest.raises(
        LzsError, match=r"it is not known how the tokenizer of tale-7m-q8_0.gguf writes texts: its pre-"
    ):
        spelling.spelling(tale.path, tale.token_bytes)


# ---- the article's effects on a real model ----


def probabilities(model: Model, tokens: Sequence[int]) -> npt.NDArray[np.float64]:
    model.keep(0)
    model.decode(list(tokens))
    logits = model.logits().astype(np.float64)
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), np.float64)


def free(model: Model, prompt: str, texts: Sequence[str]) -> float:
    """Return the model's probability of the first text, of all of them as the tokenizer writes them."""
    begin, masses = model.tokenize(prompt), []
    for text in texts:
        tokens, mass = model.llm.tokenize(text.encode(), add_bos=False), 1.0
        for i, token in enumerate(tokens):
            mass *= probabilities(model, [*begin, *tokens[:i]])[token]
        masses.append(mass)
    return masses[0] / sum(masses)


def constrained(model: Model, prompt: str, texts: Sequence[str], tokenization: str) -> float:
    """Return the probability of the first text when each token is drawn from those that are allowed, exactly."""
    grammar = Grammar.choices(texts, model, tokenization=tokenization)  # type: ignore[arg-type]
    sampler = Sampler(model.n_vocab)
    sampler.set_grammar(grammar)
    pieces, begin, mass_of_first = model.token_bytes.pieces, model.tokenize(prompt), 0.0
    todo: list[tuple[Sampler, list[int], float]] = [(sampler, [], 1.0)]
    while todo:
        sampler, tokens, mass = todo.pop()
        text = b"".join(pieces[token] for token in tokens)
        possible = [i for i, one in enumerate(texts) if one.encode().startswith(text)]
        if len(possible) == 1:
            mass_of_first += mass * (possible == [0])
            continue
        words = sampler.allowed()
        assert words is not None
        choices = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        p = probabilities(model, [*begin, *tokens])
        for token in choices.tolist():
            after = sampler.clone()
            after.accept(token)
            todo.append((after, [*tokens, token], mass * p[token] / p[choices].sum()))
    return mass_of_first


@pytest.fixture(scope="module")
def smol(smollm2: Path) -> Iterator[Model]:
    with Model(smollm2, n_ctx=256, n_threads=1) as model:
        yield model


@pytest.mark.real
@pytest.mark.parametrize(
    "prompt",
    [
        "Question: What is the first name of the US president who was a member of the Sigma Alpha Epsilon "
        "fraternity?\nAnswer:",
        "The president who built the Panama Canal was called",
        "The Conqueror of England in 1066 was called",
    ],
)
def test_proper_tokens_keep_the_probabilities_of_william_and_theodore(smol: Model, prompt: str) -> None:
    texts = [" William", " Theodore"]
    expected = free(smol, prompt, texts)
    any_error = abs(constrained(smol, prompt, texts, "any") - expected)
    proper_error = abs(constrained(smol, prompt, texts, "proper") - expected)
    assert any_error > 0.05
    assert proper_error <= any_error / 10


@pytest.mark.real
@pytest.mark.parametrize("kind", ["whale", "tiger", "cow"])
def test_a_shark_that_is_spelled_otherwise_is_another_animal(smol: Model, kind: str) -> None:
    """The article's self-intoxication: the tokens of a word change what the model thinks of it."""
    texts = [f" shark is a kind of {animal}" for animal in ("mammal", "fish")]
    begin = smol.tokenize(f"A {kind}")
    mammal, fish = (smol.llm.tokenize(name, add_bos=False)[0] for name in (b" mammal", b" fish"))

    def share(tokens: list[int]) -> float:
        p = probabilities(smol, [*begin, *tokens])
        return float(p[mammal] / (p[mammal] + p[fish]))

    rest = smol.llm.tokenize(b" is a kind of", add_bos=False)
    words = {}
    for tokenization in ("any", "proper"):
        sampler = Sampler(smol.n_vocab)
        sampler.set_grammar(Grammar.choices(texts, smol, tokenization=tokenization))
        mask = sampler.allowed()
        assert mask is not None
        bits = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        words[tokenization] = {smol.token_bytes.pieces[token]: int(token) for token in bits}
    assert set(words["proper"]) == {b" shark"}
    usual = share([words["proper"][b" shark"], *rest])
    errors = []
    for piece, token in words["any"].items():
        if b" shark".startswith(piece) and piece != b" shark":
            others = smol.llm.tokenize(b" shark".removeprefix(piece), add_bos=False)
            errors.append(abs(share([token, *others, *rest]) - usual))
    assert max(errors) > 0.02
