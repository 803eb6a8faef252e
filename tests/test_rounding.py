"""Flash attention is llama.cpp's "auto" everywhere, and where a draft may still change a text, one line says so."""

import copy
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Params, attach
from lzsampler.models import default_draft, default_model

pytest.importorskip("llama_cpp")

import llama_cpp

from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft
from lzsampler.decoding.generate import generate
from lzsampler.decoding.many import Request, generate_many
from lzsampler.decoding.sequences import Sequences
from lzsampler.dropin import LZLlama
from lzsampler.evaluation.evaluate import evaluate
from lzsampler.llama import rounding as module
from lzsampler.llama.attention import TYPES
from lzsampler.llama.model import Model
from lzsampler.llama.rounding import FAR, RoundingWarning, rounding

LZS = str(Path(sys.executable).with_name("lzs"))
PROMPT = "Once upon a time there was a king. Once upon a time"
AUTO, ON, OFF = TYPES["auto"], TYPES[True], TYPES[False]


@pytest.fixture(scope="module")
def off() -> Iterator[Model]:
    """A model whose logits depend on how many tokens are decoded together."""
    with Model(default_model(), n_threads=1, n_ctx=512, flash_attn=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def auto() -> Iterator[Model]:
    with Model(default_model(), n_threads=1, n_ctx=512) as opened:
        yield opened


# -- flash attention --


@pytest.mark.parametrize(("given", "value"), [({}, AUTO), ({"flash_attn": True}, ON), ({"flash_attn": False}, OFF)])
def test_what_llama_cpp_is_asked_for(given: dict[str, Any], value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    make = llama_cpp.llama_init_from_model

    def noting(model: Any, params: Any) -> Any:
        asked.append(params.flash_attn_type)
        return make(model, params)

    for place in (llama_cpp, llama_cpp.llama_cpp):
        monkeypatch.setattr(place, "llama_init_from_model", noting)
    with Model(default_model(), n_ctx=64, n_threads=1, **given) as model:
        Sequences(model, 2, 1).close()
        assert model.flash_attn == given.get("flash_attn", "auto")
        with copy.copy(model) as twin:
            assert twin.flash_attn == model.flash_attn
    llm = LZLlama(str(default_model()), n_ctx=64, n_threads=1, verbose=False, **given)
    again = copy.copy(llm)
    assert again.context_params.flash_attn_type == value
    for each in (llm, again):
        each.close()
    assert asked == [value] * 5


def test_auto_is_on_where_it_can_be(auto: Model) -> None:
    rows = []
    for flash_attn in ("auto", True, False):
        with Model(default_model(), n_ctx=512, n_threads=1, flash_attn=flash_attn) as model:
            rows.append(model.decode_rows(model.tokenize(PROMPT * 5)))
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_what_it_cannot_be() -> None:
    for given, said in (("yes", "must be auto, True or False, got 'yes'"), (2, "must be True or False, got 2")):
        with pytest.raises(ValueError, match=f"flash_attn {said}"):
            Model(default_model(), flash_attn=given)  # type: ignore[arg-type]


def test_a_llama_with_penalties_off_is_the_plain_one() -> None:
    """What attach does not open, it does not change."""
    for flash_attn in (True, False):
        plain: Any = llama_cpp.Llama(str(default_model()), n_ctx=256, n_threads=1, verbose=False, flash_attn=flash_attn)
        expected = plain(PROMPT, max_tokens=60, temperature=0.8, seed=3)["choices"]
        plain.reset()
        with attach(plain, lz_penalty=0.0, draft=default_draft()) if flash_attn else attach(plain, lz_penalty=0.0):
            assert plain(PROMPT, max_tokens=60, temperature=0.8, seed=3)["choices"] == expected
        plain.close()


# -- what depends on how many tokens are decoded together --


@pytest.mark.parametrize("together", [2, 3, 6, 17, 26, 33])
def test_the_difference_is_found_where_there_is_one(off: Model, auto: Model, together: int) -> None:
    found = rounding(off.llm, together, 512)
    assert 0 < found.most < 1
    assert (found.begin, found.positions <= 33 + 5) == (0, True)
    same = rounding(auto.llm, together, 512)
    assert same[::2] == (0, 0)
    assert same.positions > 32


def test_several_threads_share_a_longer_context(auto: Model) -> None:
    """llama.cpp has another kernel for one token then, so that texts of more than 256 tokens differ."""
    long, short = rounding(auto.llm, 3, FAR + 1, 2), rounding(auto.llm, 3, FAR, 2)
    assert short.most == 0
    if llama_cpp.__version__ == "0.3.36":
        assert (long.most > 0, long.begin) == (True, FAR)
        assert "from token 257 of a context on, " in module.what_it_means(auto.llm, "m", long)
    with Model(default_model(), n_threads=2, n_ctx=512) as model:  # as it is in a text
        tokens = np.random.default_rng(1).integers(0, model.n_vocab, 303).tolist()
        model.decode(tokens[:300])
        rows = model.decode_rows(tokens[300:])
        model.keep(300)
        alone = [model.decode_rows([token])[0] for token in tokens[300:]]
        assert np.array_equal(rows, alone) == (long.most == 0)


def test_the_context_stays_as_it_is_and_it_is_done_once(off: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    off.keep(0)
    off.decode(off.tokenize(PROMPT))
    before, row = off.past[:], off.logits().copy()
    rounding(off.llm, 5, 100)
    assert off.past == before
    assert np.array_equal(off.logits(), row)
    monkeypatch.setattr(module, "_compared", None)
    assert rounding(off.llm, 5, 100).most > 0


def test_a_draft_warns_where_it_may_change_a_text(off: Model, auto: Model) -> None:
    for draft in (Draft(lookup=3, n_max=2), Draft(lookup=3)):
        for run in (
            lambda model, draft=draft: generate(model, PROMPT, GenerationConfig(Params(), max_tokens=5, draft=draft)),
            lambda model, draft=draft: list(
                generate_many(model, [Request(1, PROMPT, GenerationConfig(Params(), max_tokens=5))], draft=draft)
            ),
        ):
            with pytest.warns(
                RoundingWarning, match="depend on how many tokens .*; flash_attn=True prevents it"
            ) as said:
                run(off)
            assert [warning.filename for warning in said] == [__file__]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                run(auto)


def test_as_an_error_it_refuses_before_anything_is_written(off: Model, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RoundingWarning)
        with pytest.raises(RuntimeError, match="texts with a draft may differ from texts without a draft"):
            generate(off, PROMPT, GenerationConfig(Params(), max_tokens=5, draft=Draft(lookup=3)), on_text=pytest.fail)
        prompts = tmp_path / "p.jsonl"
        prompts.write_text('{"prompt": "Once"}\n')
        with pytest.raises(RuntimeError, match="texts with a draft may differ"):
            evaluate(default_model(), tmp_path / "run", prompts=prompts, flash_attn=False, draft=Draft(lookup=3))
        assert not (tmp_path / "run" / "transcripts.jsonl").exists()


def test_a_text_in_mode_mrs_and_no_draft_warn_of_nothing(off: Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for draft in (Draft(lookup=3, mode="mrs"), Draft(lookup=3, n_max=0), None):
            generate(off, PROMPT, GenerationConfig(Params(), max_tokens=5, draft=draft))


def test_an_application_is_warned() -> None:
    llm = llama_cpp.Llama(str(default_model()), n_ctx=512, n_threads=1, verbose=False)
    with pytest.warns(RoundingWarning, match="flash_attn=True prevents it"), attach(llm, draft=Draft(lookup=3)):
        pass
    llm.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        own = LZLlama(str(default_model()), n_ctx=512, n_threads=1, verbose=False, draft=Draft(lookup=3))
    own.close()


def test_without_flash_attention_equal_bits_prove_nothing() -> None:
    """The first difference of this model's texts is at token 180, long after the positions that are compared."""
    with Model(default_draft(), n_ctx=128, n_threads=1, flash_attn=False) as small:
        assert rounding(small.llm, 4, small.n_ctx).most == 0
        with pytest.warns(RoundingWarning, match="positions have the same bits; flash_attn=True prevents it"):
            generate(small, PROMPT, GenerationConfig(Params(), max_tokens=5, draft=Draft(lookup=2, n_max=3)))


def test_what_cannot_be_known_is_said(off: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_known", {off.llm: {}})
    monkeypatch.setattr(llama_cpp, "llama_init_from_model", lambda *_: None)
    with pytest.warns(RoundingWarning, match="cannot tell whether .*: llama.cpp cannot make a second context"):
        generate(off, PROMPT, GenerationConfig(Params(), max_tokens=5, draft=Draft(lookup=3)))


# -- the command line --


def lzs(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [LZS, "generate", "-t", "1", "-n", "12", "--draft", "lookup", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def test_one_line_says_it_and_require_exact_refuses(tmp_path: Path) -> None:
    alone = lzs("-q", PROMPT)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert lzs("-q", "--require-exact", PROMPT).stdout == alone.stdout
    rounded = lzs("-q", "-fa", "off", PROMPT)
    assert rounded.returncode == 0
    (line,) = rounded.stderr.splitlines()
    assert line.startswith("lzs: texts with a draft may differ from texts without a draft: the logits of tale-7m-q8_0")
    assert line.endswith("; -fa on prevents it for weights such as Q8_0")
    saved = tmp_path / "x.jsonl"
    refused = lzs("-fa", "off", "--require-exact", "--save", str(saved), PROMPT)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"{line} (--require-exact)\n"
    refused = lzs("-fa", "off", "--require-exact", "-cnv", "Hello")
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", f"{line} (--require-exact)\n")


def test_many_prompts_are_refused_too(tmp_path: Path) -> None:
    prompts = tmp_path / "p.jsonl"
    prompts.write_text(json.dumps({"prompt": PROMPT}) + "\n")
    refused = lzs("-fa", "off", "--require-exact", "--json", "--prompts", str(prompts))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.endswith("(--require-exact)\n")
    refused = lzs("--require-exact", "--spec-mode", "mrs", PROMPT)
    assert refused.returncode == 2
    assert "--require-exact and --spec-mode mrs exclude each other" in refused.stderr
