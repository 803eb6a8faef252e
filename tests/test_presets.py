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
from lzsampler.params import PENALTIES, PRESETS, SEPARATORS
from reference_lz import tokens_in

llama_cpp = pytest.importorskip("llama_cpp")

from applications import LOOPING, by_chain, default, new  # noqa: E402 (needs llama_cpp)
from lzsampler import llama  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.dropin import LZLlama, attach  # noqa: E402
from lzsampler.evaluation.fitting import params_for  # noqa: E402
from lzsampler.evaluation.grid import quick  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

N = 150
LZ_FIELDS = next(penalty.fields for penalty in PENALTIES if penalty.name == "lz")
PAPER, GUARD = (Params(**PRESETS[name]) for name in ("paper", "guard"))


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=512, n_threads=1, flash_attn=False) as made:
        yield made


# ---- the drop-in ----


def test_attach_takes_keywords(llm: Any) -> None:
    """`attach(llm, lz_penalty=.3)` was a TypeError, and a `history` given in Params switched the penalty off."""
    newline = tuple(sorted(llm.tokenize(b"\n", add_bos=False)))
    dry = llama.dry_breaker_ids(llm)
    lz = default(llm)
    own = bytes(len(lz.lz_separators))

    def but(**changes: Any) -> Params:
        return dataclasses.replace(lz, **changes)

    cases: list[tuple[dict[str, Any], Params]] = [
        ({}, lz),
        ({"lz_penalty": 0.15}, but(lz_penalty=0.15)),
        ({"lz_penalty": 0}, Params()),
        ({"lz_penalty": 0, "lz_run_penalty": 0.2}, Params(lz_run_penalty=0.2)),
        ({"history": "all", "lz_window": 16}, but(history="all", lz_window=16, lz_buffer=None)),
        ({"exempt": ["\n"]}, but(exempt=newline)),
        ({"dry_multiplier": 0.8}, but(dry_multiplier=0.8, dry_breakers=dry)),
        ({"lz_min_match": np.int64(7)}, but(lz_min_match=7)),
        (dict(PRESETS["paper"]), PAPER),
        (dict(PRESETS["guard"]), GUARD),
        ({"lz_rule": "paper"}, PAPER),
        ({"lz_separators": b""}, but(lz_separators=b"", lz_commas=b"")),
        ({"lz_separators": own}, but(lz_separators=own, lz_commas=b"")),
        ({"lz_separators": np.zeros(len(own) // 4, np.uint32)}, but(lz_separators=own, lz_commas=b"")),
        ({"params": Params(), "lz_penalty": 0.2}, but(lz_penalty=0.2, lz_run_penalty=0.0)),
        ({"params": PAPER, "lz_rule": "default"}, lz),
        ({"params": but(lz_separators=b""), "lz_min_match": 4}, but(lz_separators=b"", lz_min_match=4)),
        ({"params": but(lz_separators=own), "lz_min_match": 4}, but(lz_separators=own, lz_min_match=4)),
        ({"params": lz, **PRESETS["paper"]}, PAPER),
        ({"params": lz, **PRESETS["guard"]}, but(**PRESETS["guard"])),
        ({"params": PAPER, "frequency_penalty": 0.1}, dataclasses.replace(PAPER, frequency_penalty=0.1)),
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
    "settings",
    [{}, PRESETS["paper"], PRESETS["guard"], {"lz_separators": b""}],
    ids=["default", "paper", "guard", "no separators"],
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


@pytest.mark.parametrize("settings", [{}, {"lz_separators": b""}, *PRESETS.values(), {"lz_penalty": 0.0}], ids=str)
def test_a_pickled_model_has_the_settings_that_it_had(settings: dict[str, Any]) -> None:
    model = new(LZLlama, **settings)
    twin = pickle.loads(pickle.dumps(model))
    assert twin.lz.params == model.lz.params
    model.close()
    twin.close()


# ---- a model ----


def test_a_model_has_the_default_penalty_for_its_vocabulary(model: Model) -> None:
    lz = default(model.llm)
    dry, bits = llama.dry_breaker_ids(model.llm), lz.lz_separators
    cases: list[tuple[dict[str, Any], Params]] = [
        ({}, lz),
        ({"temperature": 0.5, "top_k": 3}, dataclasses.replace(lz, temperature=0.5, top_k=3)),
        ({"lz_window": 64}, dataclasses.replace(lz, lz_window=64, lz_buffer=None)),
        ({"lz_separators": b""}, dataclasses.replace(lz, lz_separators=b"", lz_commas=b"")),
        ({"lz_commas": bits}, dataclasses.replace(lz, lz_separators=b"", lz_commas=bits)),
        ({"lz_penalty": 0.0}, Params()),  # nothing that is off has separators
        (dict(PRESETS["paper"]), PAPER),
        (dict(PRESETS["guard"]), GUARD),
        ({"dry_multiplier": 0.8}, dataclasses.replace(lz, dry_multiplier=0.8, dry_breakers=dry)),
    ]
    for settings, expected in cases:
        assert Params.recommended(model, **settings) == expected
    with pytest.raises(TypeError, match="unexpected keyword argument 'lz_penalti'; did you mean 'lz_penalty'"):
        Params.recommended(model, lz_penalti=1)
    with pytest.raises(ValueError, match=r"^lz_separators belongs to lz_rule='default', and the rule is 'paper'"):
        Params.recommended(model, lz_separators=lz.lz_separators, lz_rule="paper")


def test_the_separators_are_tokens_without_a_letter(model: Model) -> None:
    """Of a byte vocabulary, too, in which a token may be a piece of a character; special tokens have names."""
    params = Params.recommended(model)
    separators, commas = tokens_in(params.lz_separators), tokens_in(params.lz_commas)
    pieces = [model.llm.detokenize([token], special=True).decode("utf-8", "replace") for token in range(model.n_vocab)]
    assert len(params.lz_separators) == len(params.lz_commas) == (model.n_vocab + 31) // 32 * 4
    marks = {token for token, piece in enumerate(pieces) if piece and set(piece) <= set("0123456789\n()[]{}")}
    assert separators >= marks
    assert not (separators | commas) & {t for t, piece in enumerate(pieces) if any(c.isalpha() for c in piece)}
    assert not separators & {t for t, piece in enumerate(pieces) if piece.strip() in (".", ",", "?", "!", '"', "'")}
    assert commas >= {t for t, piece in enumerate(pieces) if piece.strip() == ","} != set()
    assert 50 < len(separators) < model.n_vocab / 4


# ---- transformers ----


class Tokenizer:
    """A tokenizer of transformers, as far as `lz_separators` asks it."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def batch_decode(self, sequences: list[list[int]]) -> list[str]:
        return ["".join(self.texts[token] for token in tokens) for tokens in sequences]


def test_separators_come_from_the_tokenizer() -> None:
    torch = pytest.importorskip("torch")
    hf = pytest.importorskip("lzsampler.integrations.hf")
    tokenizer = Tokenizer(["the", " a1", ":\n", "", " (", "it's", "e", "\u00e9", ","])
    usual = {"lz_separators": bytes([0b11100, 0, 0, 0]), "lz_commas": bytes([0, 1, 0, 0])}
    assert hf.lz_separators(tokenizer) == usual
    off: dict[str, Any] = dict.fromkeys(usual, b"")
    lz = Params(**PRESETS["default"])
    made = dataclasses.replace(lz, **usual)  # type: ignore[arg-type]
    own = bytes([1, 0, 0, 0])
    for chosen, expected in (
        ({}, made),
        (PRESETS["paper"], PAPER),
        (PRESETS["guard"], GUARD),
        (off, lz),
        ({"lz_commas": own}, dataclasses.replace(lz, lz_commas=own)),
        ({"params": dataclasses.replace(lz, lz_separators=own)}, dataclasses.replace(lz, lz_separators=own)),
        ({"params": PAPER}, PAPER),
    ):
        arguments: dict[str, Any] = dict(chosen)
        assert hf.LZLogitsProcessor(tokenizer=tokenizer, **arguments).params == expected
    text = [6, 2, 3, 0, 6, 5, 6, 2, 3, 0, 6]  # "e:\n...", of which the separators leave "thee", a match of 3 tokens
    scores = torch.zeros(1, 40)  # more logits than the tokenizer has tokens
    free, broken = (hf.LZLogitsProcessor(tokenizer=given, history="all") for given in (None, tokenizer))
    assert free(torch.tensor([text]), scores)[0, 5] < 0
    assert broken(torch.tensor([text]), scores).count_nonzero() == 0


# ---- a grid ----


def test_the_settings_of_a_grid_get_the_separators(model: Model) -> None:
    made = {
        (setting.kind, setting.params.temperature): params_for(
            model, setting.name, setting.params, setting.dry_breakers
        )
        for setting in quick().settings
    }
    assert made["lz-default", 0.0] == Params.recommended(model, temperature=0.0)
    assert made["lz-default", 0.6] == Params.recommended(model, temperature=0.6)
    assert made["lz-paper", 0.0] == dataclasses.replace(PAPER, temperature=0.0)
    assert {kind for (kind, _), params in made.items() if params.lz_separators} == {"lz-default"}


# ---- the command line ----


def lzs(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("lzs")), "generate", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=120, stdin=subprocess.DEVNULL
    )


def test_presets_of_the_command_line_are_those_of_a_sampler(llm: Any, model: Model) -> None:
    """Token for token, against a chain with a `Sampler` whose settings are written out."""
    lz = default(llm)
    cases: dict[str, tuple[tuple[str, ...], Params]] = {
        "default": ((), lz),
        "guard": (("--preset", "guard"), GUARD),
        "paper": (("--preset", "paper"), PAPER),
        "weak": (("--lz-penalty", "0.1"), dataclasses.replace(lz, lz_penalty=0.1)),
        "off": (("--lz-penalty", "0"), Params()),
        "runs": (("--lz-penalty", "0", "--lz-run-penalty", "0.2"), Params(lz_run_penalty=0.2)),
        "short": (
            ("--lz-min-match", "3", "--lz-run-allowance", "8"),
            dataclasses.replace(lz, lz_min_match=3, lz_run_allowance=8),
        ),
        "both": (
            ("--preset", "guard", "--lz-penalty", "0.15", "--lz-window", "512"),
            dataclasses.replace(lz, lz_penalty=0.15, lz_run_allowance=64, lz_window=512, lz_buffer=32),
        ),
        "formula": (
            ("--preset", "paper", "--lz-formula", "distance", "--lz-buffer", "8"),
            dataclasses.replace(PAPER, lz_formula="distance", lz_buffer=8),
        ),
    }
    prompt = llm.tokenize(LOOPING.encode(), add_bos=False, special=True)
    made = {}
    for name, (flags, params) in cases.items():
        done = lzs("--json", "-n", N, "-c", 512, "-t", 1, "-fa", "off", *flags, LOOPING)
        assert done.returncode == 0, done.stderr
        record = json.loads(done.stdout)
        chain = [llama.penalties_sampler(Sampler(llm.n_vocab(), params)), llama_cpp.llama_sampler_init_greedy()]
        by_hand = by_chain(llm, prompt, chain, len(record["tokens"]))
        assert record["tokens"] == by_hand, name
        assert not record["settings"].keys() & set(SEPARATORS)  # those of the model
        for field in LZ_FIELDS:
            assert record["settings"][field] == getattr(params, field), (name, field)
        made[name] = tuple(record["tokens"])
    assert len({made[name] for name in ("default", "guard", "paper", "short", "formula")}) == 5
    ours = generate(model, LOOPING, GenerationConfig(Params.recommended(model, temperature=0.0), max_tokens=N))
    assert tuple(ours.tokens) == made["default"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lz-min-match", 0), "--lz-min-match must be from 1 to 2048, the --lz-window, got 0"),
        (("--lz-min-match", 2049), "--lz-min-match must be from 1 to 2048, the --lz-window, got 2049"),
        (("--lz-min-match", "long"), "--lz-min-match must be a whole number, got 'long'"),
        (("--lz-run-penalty", -1), "--lz-run-penalty must be at least 0, got -1"),
        (("--lz-run-penalty", "nan"), "--lz-run-penalty must be finite, got nan"),
        (("--lz-run-allowance", -1), "--lz-run-allowance must be from 0 to 131072, got -1"),
        (("--preset", "paper", "--lz-min-match", 3), "--lz-min-match has no effect with --preset paper, "),
        (("--preset", "paper", "--lz-run-penalty", 1), "--lz-run-penalty has no effect with --preset paper, "),
        (("--preset", "guard", "--lz-formula", "rate"), "--lz-formula has no effect without the paper's rule: add "),
        (
            ("--lz-buffer", 16),
            "--lz-buffer has no effect without the paper's rule: add --preset paper, or leave it out",
        ),
        (("--save", "-"), "--save needs the name of a file"),
        (("--preset", "best"), "'best' is not one of 'default', 'guard', 'paper'"),
    ],
)
def test_wrong_settings_are_one_line(arguments: tuple[object, ...], message: str) -> None:
    done = lzs("-q", "-n", 1, *arguments, "x")
    assert (done.returncode, done.stdout) == (2, "")
    line, *rest = done.stderr.splitlines()
    assert message in line
    assert rest in ([], ["Try 'lzs generate --help' for help."])
