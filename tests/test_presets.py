"""The default penalty and the paper's: how they come to `attach`, a `Model`, transformers, a grid and `lzs`."""

import dataclasses
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Params, Sampler
from lzsampler.models import default_model
from lzsampler.params import LZ_BREAKERS, LZ_NUMBERS, PRESETS

llama_cpp = pytest.importorskip("llama_cpp")

from applications import LOOPING, by_chain, default, new  # noqa: E402 (needs llama_cpp)
from lzsampler import llama  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.evaluation.fitting import params_for  # noqa: E402
from lzsampler.evaluation.grid import quick  # noqa: E402
from lzsampler.llama import LZLlama, attach  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

N = 150


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=512, n_threads=1, flash_attn=False) as made:
        yield made


# ---- the drop-in ----


def test_attach_takes_keywords(llm: Any) -> None:
    """`attach(llm, lz_penalty=.3)` was a TypeError, and a `history` given in Params switched the penalty off."""
    newline = tuple(sorted(llm.tokenize(b"\n", add_bos=False)))
    own, dry = llama.lz_breaker_ids(llm, ["e"]), llama.dry_breaker_ids(llm)
    lz = default(llm)

    def but(**changes: Any) -> Params:
        return dataclasses.replace(lz, **changes)

    cases: list[tuple[dict[str, Any], Params]] = [
        ({}, lz),
        ({"lz_penalty": 0.15}, but(lz_penalty=0.15)),
        ({"history": "all", "lz_window": 16}, but(history="all", lz_window=16, lz_buffer=None)),
        ({"exempt": ["\n"]}, but(exempt=newline)),
        ({"dry_multiplier": 0.8}, but(dry_multiplier=0.8, dry_breakers=dry)),
        ({"lz_min_match": 1}, Params(lz_penalty=0.3)),
        ({"lz_min_match": np.int64(7)}, but(lz_min_match=7)),
        (dict(PRESETS["paper"]), Params(lz_penalty=0.15)),
        ({"lz_breakers": ()}, but(lz_breakers=())),
        ({"lz_breakers": ["e", 5]}, but(lz_breakers=(*own, 5))),
        ({"lz_numbers": []}, but(lz_numbers=())),
        ({"lz_marks": []}, but(lz_marks=())),
        ({"lz_marks": ["e", "letterless", 5]}, but(lz_marks=(*own, *llama.lz_mark_ids(llm), 5))),
        ({"lz_numbers": ["e", 5], "lz_breakers": []}, but(lz_numbers=(*own, 5), lz_breakers=())),
        ({"params": Params(lz_penalty=0.2), "lz_min_match": 4}, but(lz_penalty=0.2, lz_min_match=4)),
        ({"params": but(lz_breakers=()), "lz_min_match": 4}, but(lz_breakers=(), lz_min_match=4)),
        ({"params": but(lz_breakers=own), "lz_min_match": 4}, but(lz_breakers=own, lz_min_match=4)),
        ({"params": but(lz_numbers=own), "lz_min_match": 4}, but(lz_numbers=own, lz_min_match=4)),
        ({"params": lz, "lz_min_match": 1}, Params(lz_penalty=0.3)),
        ({"params": Params(lz_penalty=0.2), "frequency_penalty": 0.1}, Params(lz_penalty=0.2, frequency_penalty=0.1)),
    ]
    for keywords, expected in cases:
        with attach(llm, **keywords) as handle:
            assert handle.params == expected
        model = new(LZLlama, **keywords)
        assert model.lz.params == expected
        model.close()
    with pytest.warns(UserWarning, match="switch no penalty on"):
        attach(llm, Params(history="all")).detach()
    with pytest.warns(UserWarning, match="switch no penalty on"):
        new(LZLlama, params=Params(history="all")).close()


@pytest.mark.parametrize(
    "settings", [{}, PRESETS["paper"], {"lz_breakers": ()}], ids=["default", "paper", "no breakers"]
)
def test_a_call_can_choose_another_preset(llm: Any, settings: dict[str, Any]) -> None:
    with attach(llm, **settings) as handle:
        chosen = handle.params
        alone = llm(LOOPING, max_tokens=N, temperature=0.0)["choices"][0]["text"]
    for before, call in (({}, settings), (PRESETS["paper"], {"params": chosen})):
        with attach(llm, **before) as handle:
            kept = handle.params
            assert llm(LOOPING, max_tokens=N, temperature=0.0, **call)["choices"][0]["text"] == alone
            assert handle.params == kept


@pytest.mark.parametrize("settings", [{}, {"lz_breakers": ()}, {"lz_min_match": 1}, {"lz_penalty": 0.0}], ids=str)
def test_a_pickled_model_has_the_settings_that_it_had(settings: dict[str, Any]) -> None:
    model = new(LZLlama, **settings)
    twin = pickle.loads(pickle.dumps(model))
    assert twin.lz.params == model.lz.params
    model.close()
    twin.close()


# ---- a model ----


def test_a_model_has_the_default_penalty_for_its_vocabulary(model: Model) -> None:
    lz = default(model.llm)
    dry = llama.dry_breaker_ids(model.llm)
    cases: list[tuple[dict[str, Any], Params]] = [
        ({}, lz),
        ({"temperature": 0.5, "top_k": 3}, dataclasses.replace(lz, temperature=0.5, top_k=3)),
        ({"lz_window": 64}, dataclasses.replace(lz, lz_window=64, lz_buffer=None)),
        ({"lz_breakers": ()}, dataclasses.replace(lz, lz_breakers=())),
        ({"lz_breakers": [7]}, dataclasses.replace(lz, lz_breakers=(7,))),
        ({"lz_numbers": [7]}, dataclasses.replace(lz, lz_numbers=(7,))),
        ({"lz_marks": [7]}, dataclasses.replace(lz, lz_marks=(7,))),
        ({"lz_min_match": 1}, Params(lz_penalty=0.3)),
        ({"lz_penalty": 0.0}, Params(lz_min_match=5)),  # nothing that is off has breakers
        (dict(PRESETS["paper"]), Params(lz_penalty=0.15)),
        ({"dry_multiplier": 0.8}, dataclasses.replace(lz, dry_multiplier=0.8, dry_breakers=dry)),
    ]
    for settings, expected in cases:
        assert model.params(**settings) == expected
    with pytest.raises(TypeError, match="unexpected keyword argument 'lz_penalti'; did you mean 'lz_penalty'"):
        model.params(lz_penalti=1)
    with pytest.raises(ValueError, match=r"^lz_breakers need an lz_min_match above 1: "):
        model.params(lz_breakers=[7], lz_min_match=1)


def test_the_usual_breakers_are_tokens_with_marks_of_structure(model: Model) -> None:
    ids = set(model.params().lz_breakers)
    pieces = [model.llm.detokenize([token]).decode("utf-8", "replace") for token in range(model.n_vocab)]
    assert ids >= {token for token, piece in enumerate(pieces) if "\n" in piece or any(c.isdigit() for c in piece)}
    assert not ids & {token for token, piece in enumerate(pieces) if piece.strip().isalpha()}
    assert ids == set(llama.lz_breaker_ids(model.llm, [s for s in LZ_BREAKERS if any(s in piece for piece in pieces)]))
    digits = [token for token, piece in enumerate(pieces) if any(c in "0123456789" for c in piece)]
    assert list(model.params().lz_numbers) == list(llama.lz_number_ids(model.llm)) == digits


def test_the_usual_marks_are_tokens_without_a_letter(model: Model) -> None:
    pieces = [model.llm.detokenize([token], special=True).decode("utf-8", "replace") for token in range(model.n_vocab)]
    marks = [token for token, piece in enumerate(pieces) if not any(c.isalpha() for c in piece)]
    assert list(model.params().lz_marks) == list(llama.lz_mark_ids(model.llm)) == marks
    assert 100 < len(marks) < model.n_vocab / 4
    assert set(marks) >= set(llama.lz_mark_ids(model.llm, [" "])) & set(marks) != set()


# ---- transformers ----


class Tokenizer:
    """A tokenizer of transformers, as far as `lz_breaker_ids` asks it."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def batch_decode(self, sequences: list[list[int]]) -> list[str]:
        return ["".join(self.texts[token] for token in tokens) for tokens in sequences]


def test_breakers_come_from_the_tokenizer() -> None:
    torch = pytest.importorskip("torch")
    hf = pytest.importorskip("lzsampler.hf")
    tokenizer = Tokenizer(["the", " a1", ":\n", "", " (", "it's", "e", "\u00e9"])
    usual = (1, 2, 4)
    assert (hf.lz_breaker_ids(tokenizer), hf.lz_number_ids(tokenizer)) == (usual, (1,))
    assert hf.lz_mark_ids(tokenizer) == (2, 3, 4)
    assert hf.lz_breaker_ids(tokenizer, ["e"]) == hf.lz_number_ids(tokenizer, ["e"]) == (0, 6)
    assert hf.lz_mark_ids(tokenizer, ["e"]) == (0, 6)
    assert hf.lz_mark_ids(tokenizer, ["e", "letterless"]) == (0, 2, 3, 4, 6)
    lz = Params(lz_penalty=0.3, lz_min_match=5)
    both = dataclasses.replace(lz, lz_breakers=usual, lz_numbers=(1,), lz_marks=(2, 3, 4))
    for chosen, expected in (
        ({}, both),
        ({"lz_min_match": 1}, Params(lz_penalty=0.3)),
        ({"lz_breakers": (), "lz_numbers": (), "lz_marks": ()}, lz),
        ({"lz_breakers": [3]}, dataclasses.replace(both, lz_breakers=(3,))),
        ({"lz_numbers": [3]}, dataclasses.replace(both, lz_numbers=(3,))),
        ({"params": dataclasses.replace(lz, lz_breakers=(3,))}, dataclasses.replace(both, lz_breakers=(3,))),
        ({"params": Params(lz_penalty=0.15)}, Params(lz_penalty=0.15)),
    ):
        arguments: dict[str, Any] = dict(chosen)
        assert hf.LZLogitsProcessor(tokenizer=tokenizer, **arguments).params == expected
    text = [6, 2, 3, 0, 6, 5, 6, 2, 3, 0, 6]  # "e:\n...", which the breaker makes a match of 4 tokens of one of 6
    scores = torch.zeros(1, len(tokenizer))
    free, broken = (hf.LZLogitsProcessor(tokenizer=given, history="all") for given in (None, tokenizer))
    assert free(torch.tensor([text]), scores)[0, 5] < 0
    assert broken(torch.tensor([text]), scores).count_nonzero() == 0


# ---- a grid ----


def test_the_settings_of_a_grid_get_the_breakers(model: Model) -> None:
    made = {
        (setting.kind, setting.params.temperature): params_for(model, setting.name, setting.params, setting.breakers)
        for setting in quick().settings
    }
    assert made["lz-default", 0.0] == model.params(temperature=0.0)
    assert made["lz-default", 0.6] == model.params(temperature=0.6)
    assert made["lz-paper", 0.0] == Params(temperature=0.0, lz_penalty=0.15)
    assert not any(
        params.lz_breakers or params.lz_numbers or params.lz_marks
        for (kind, _), params in made.items()
        if kind != "lz-default"
    )


# ---- the command line ----


def lzs(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("lzs")), "generate", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=120, stdin=subprocess.DEVNULL
    )


def test_presets_of_the_command_line_are_those_of_a_sampler(llm: Any, model: Model) -> None:
    """Token for token, against a chain with a `Sampler` whose settings are written out."""
    ids, digits = llama.lz_breaker_ids(llm), llama.lz_number_ids(llm)
    own = llama.lz_breaker_ids(llm, ["e", "\n"])
    marks = llama.lz_mark_ids(llm)
    long = Params(lz_penalty=0.3, lz_min_match=5, lz_breakers=ids, lz_numbers=digits, lz_marks=marks)
    cases: dict[str, tuple[tuple[str, ...], Params, list[str]]] = {
        "default": ((), long, list(LZ_BREAKERS)),
        "paper": (("--preset", "paper"), Params(lz_penalty=0.15), []),
        "none": (("--lz-breaker", "none"), dataclasses.replace(long, lz_breakers=()), []),
        "own": (("--lz-breaker", "e", "--lz-breaker", r"\n"), dataclasses.replace(long, lz_breakers=own), ["e", "\n"]),
        "priced": (("--lz-number", "none"), dataclasses.replace(long, lz_numbers=()), list(LZ_BREAKERS)),
        "free": (
            ("--lz-number", "e", "--lz-number", r"\n"),
            dataclasses.replace(long, lz_numbers=own),
            list(LZ_BREAKERS),
        ),
        "dense": (("--lz-mark", "none"), dataclasses.replace(long, lz_marks=()), list(LZ_BREAKERS)),
        "marks": (
            ("--lz-mark", "e", "--lz-mark", r"\n"),
            dataclasses.replace(long, lz_marks=own),
            list(LZ_BREAKERS),
        ),
        "short": (("--lz-min-match", "1"), Params(lz_penalty=0.3), []),
        "both": (
            ("--preset", "paper", "--lz-min-match", "3"),
            dataclasses.replace(long, lz_penalty=0.15, lz_min_match=3, lz_window=512, lz_buffer=32),
            list(LZ_BREAKERS),
        ),
    }
    prompt = llm.tokenize(LOOPING.encode(), add_bos=False, special=True)
    made = {}
    for name, (flags, params, strings) in cases.items():
        done = lzs("--json", "-n", N, "-c", 512, "-t", 1, "-fa", "off", *flags, LOOPING)
        assert done.returncode == 0, done.stderr
        record = json.loads(done.stdout)
        chain = [llama.penalties_sampler(Sampler(llm.n_vocab(), params)), llama_cpp.llama_sampler_init_greedy()]
        by_hand = by_chain(llm, prompt, chain, len(record["tokens"]))
        assert record["tokens"] == by_hand, name
        assert record["settings"]["lz_breakers"] == strings
        numbers = {(): [], digits: list(LZ_NUMBERS), own: ["e", "\n"]}
        assert record["settings"]["lz_numbers"] == numbers[params.lz_numbers]
        assert record["settings"]["lz_marks"] == {**numbers, marks: ["letterless"]}[params.lz_marks]
        for field in ("lz_penalty", "lz_min_match", "lz_window", "lz_buffer", "lz_formula"):
            assert record["settings"][field] == getattr(params, field), (name, field)
        made[name] = tuple(record["tokens"])
    assert len({made[name] for name in ("default", "paper", "own", "free", "short")}) == 5
    ours = generate(model, LOOPING, model.params(temperature=0.0), n_predict=N)
    assert tuple(ours.tokens) == made["default"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lz-min-match", 0), "--lz-min-match must be from 1 to 4096, got 0"),
        (("--lz-min-match", 2049), "--lz-min-match must be at most --lz-window (2048), got 2049"),
        (("--lz-buffer", 3), "--lz-buffer must be at least 4, one less than --lz-min-match, got 3"),
        (("--lz-min-match", "long"), "--lz-min-match must be a whole number, got 'long'"),
        (("--lz-min-match", 1, "--lz-breaker", "."), "--lz-breaker needs a --lz-min-match above 1: "),
        (("--preset", "paper", "--lz-breaker", "."), "--lz-breaker needs a --lz-min-match above 1: "),
        (("--lz-breaker", ""), '--lz-breaker must not be empty; the word "none" means no tokens'),
        (("--lz-breaker", "none", "--lz-breaker", "."), "--lz-breaker none means no tokens: leave the others out"),
        (("--lz-breaker", "zqzqzq"), "no token of this vocabulary contains 'zqzqzq'"),
        (("--preset", "paper", "--lz-mark", "1"), "--lz-mark needs a --lz-min-match above 1: "),
        (("--lz-mark", "none", "--lz-mark", "1"), "--lz-mark none means no tokens: leave the others out"),
        (("--preset", "paper", "--lz-number", "1"), "--lz-number needs a --lz-min-match above 1: "),
        (("--lz-number", ""), '--lz-number must not be empty; the word "none" means no tokens'),
        (("--lz-number", "none", "--lz-number", "1"), "--lz-number none means no tokens: leave the others out"),
        (("--lz-number", "zqzqzq"), "no token of this vocabulary contains 'zqzqzq': lz_numbers cannot be made of it"),
        (("--lz-number", "1", "--lz-penalty", 0), "--lz-number has no effect without LZ: leave out --lz-penalty 0"),
        (("--save", "-"), "--save needs the name of a file"),
        (("--preset", "best"), "'best' is not one of 'default', 'paper'"),
    ],
)
def test_wrong_settings_are_one_line(arguments: tuple[object, ...], message: str) -> None:
    done = lzs("-q", "-n", 1, *arguments, "x")
    assert (done.returncode, done.stdout) == (2, "")
    line, *rest = done.stderr.splitlines()
    assert message in line
    assert rest in ([], ["Try 'lzs generate --help' for help."])
