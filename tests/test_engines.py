"""What the processors for transformers, vLLM and SGLang share, without any of them; tests/engines has the rest."""

import importlib.util
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine_rows import SETTINGS, expected, params_of, same_bits
from lzsampler import Params, Sampler
from lzsampler.integrations.history import Edits, Request
from lzsampler.integrations.logit_rows import _edit_on_device, apply_edits
from lzsampler.integrations.request_settings import FIELDS, request_params
from lzsampler.integrations.tokenizer import fitted, lz_separators, separators_of_server
from lzsampler.params import PRESETS

V = 40
DEFAULT = Params(**PRESETS["default"])

# ---- settings of a request ----


@pytest.mark.parametrize("arguments", SETTINGS, ids=str)
def test_settings_of_a_request(arguments: dict[str, Any]) -> None:
    assert request_params(arguments, "vLLM") == params_of(arguments)


def test_what_is_not_ours_is_left_alone() -> None:
    for arguments in (None, {}, {"dry_multiplier": 0.8}, {"temperature": 2}, {"lzma": 1, "kv_transfer_params": {}}):
        assert request_params(arguments, "vLLM") is None
    assert request_params({"dry_multiplier": 0.8, "lz_penalty": 0.2}, "vLLM") == replace(DEFAULT, lz_penalty=0.2)


def test_a_field_of_its_own_goes_before_the_preset() -> None:
    made = request_params({"lzsampler": "paper", "lz_penalty": 0.2}, "vLLM")
    assert made == Params(**{**PRESETS["paper"], "lz_penalty": 0.2})
    assert request_params({"lzsampler": json.dumps({"lz_penalty": 0.1}), "lz_penalty": 0.2}, "vLLM") == replace(
        DEFAULT, lz_penalty=0.2
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lz_penalty": -1}, "lz_penalty must be at least 0, got -1"),
        ({"lz_penalty": "0.3"}, "lz_penalty must be a number, got '0.3'"),
        ({"lz_penalty": float("nan")}, "lz_penalty must be finite, got nan"),
        ({"lz_penalty": True}, "lz_penalty must be a number, got True"),
        ({"lz_window": 2.5}, "lz_window must be an integer, got 2.5"),
        ({"lz_formula": "best"}, "lz_formula must be one of rate, distance, codelength, got 'best'"),
        ({"lz_formula": "distance"}, "lz_formula belongs to lz_rule='paper', and the rule is 'default': leave it out"),
        (
            {"lzsampler": "paper", "lz_min_match": 3},
            "lz_min_match belongs to lz_rule='default', and the rule is 'paper'",
        ),
        ({"lz_min_match": 2049}, "lz_min_match must be from 1 to 2048, the lz_window, got 2049"),
        ({"lz_penalti": 1}, "lzsampler has no setting 'lz_penalti'; did you mean 'lz_penalty'?"),
        ({"lzsampler": {"xyz": 1}}, "lzsampler has no setting 'xyz'"),
        (
            {"lzsampler": {"temperature": 1}},
            "applies penalties only, and vLLM does the rest: leave out temperature",
        ),
        ({"lzsampler": {"logit_bias": {"1": 2}}}, "vLLM does the rest: leave out logit_bias"),
        ({"lzsampler": {"repetition_detection": {}}}, "vLLM does the rest: leave out repetition_detection"),
        ({"lzsampler": {"lz_separators": ["\n"]}}, "lz_separators must be bytes or an array of uint32 words"),
        ({"lzsampler": {1: 2}}, "lzsampler has no setting 1"),
        (
            {"lzsampler": "papper"},
            "must be a dict of settings, a JSON object, or one of default, guard, paper",
        ),
        ({"lzsampler": "[1]"}, "lzsampler must be a dict of settings"),
        ({"lzsampler": None}, "lzsampler must be a dict of settings"),
        ({"lzsampler": 0.3}, "got 0.3"),
        ({"lzsampler": "[" * 10**6}, "lzsampler must be a dict of settings"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_bad_settings_are_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        request_params(arguments, "vLLM")
    assert "\n" not in str(refused.value)


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize(
    "arguments",
    [
        {"lz_penalty": "x" * 10**6},
        {"lz_min_match": 10**5000},  # whose repr is an error of Python
        {"lz_window": nested(100_000)},
        {"lz_separators": ["x" * 10**6]},
        {"lz_formula": ["x"] * 10**6},
        {"lz_" + "x" * 10**6: 1},
        {"lzsampler": "x" * 10**6},
        {"lzsampler": {"x" * 10**6: 1}},
        {"lzsampler": [1] * 10**6},
    ],
    ids=range(9),
)
def test_a_message_shows_the_beginning_of_a_value(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\.\.\.|cannot be shown") as error:
        request_params(arguments, "vLLM")
    assert len(str(error.value)) < 200


def test_separators_are_asked_for_only_where_they_have_an_effect() -> None:
    asked = []
    bits: dict[str, Any] = {"lz_separators": b"\x18\0\0\0", "lz_commas": b"\x01\0\0\0"}

    def usual() -> dict[str, bytes]:
        asked.append(1)
        return bits

    assert request_params({"lzsampler": {}}, "vLLM", usual) == replace(DEFAULT, **bits)
    assert request_params({"lz_min_match": 3}, "vLLM", usual) == replace(DEFAULT, lz_min_match=3, **bits)
    assert len(asked) == 2
    own: dict[str, Any] = {"lz_separators": b"\x01\0\0\0"}
    assert request_params(own, "vLLM", usual) == replace(DEFAULT, **own)
    others: list[dict[str, Any]] = [{"lzsampler": "paper"}, {"lzsampler": "guard"}, {"lz_penalty": 0}, {}]
    for arguments in others:
        request_params(arguments, "vLLM", usual)
    assert len(asked) == 2


@pytest.mark.parametrize("name", PRESETS)
def test_a_request_takes_presets_by_name_or_fields(name: str) -> None:
    off = {"lz_run_penalty": 0.0} if name == "paper" else {}
    made = Params(**{**PRESETS["default"], **off, **PRESETS[name]})
    for given in (name, dict(PRESETS[name]), json.dumps(PRESETS[name])):
        assert request_params({"lzsampler": given}, "vLLM") == made
    assert request_params(PRESETS[name], "vLLM") == made


def test_the_fields_are_the_penalties() -> None:
    assert "lz_penalty" in FIELDS
    assert not {"temperature", "seed", "logit_bias", "repetition_detection", "stuck_detection"} & set(FIELDS)


# ---- separators ----


def test_separators_of_a_tokenizer(caplog: pytest.LogCaptureFixture) -> None:
    class Tokenizer:
        texts = ("a", "b\n", "c", "7", " (", ",")

        def __len__(self) -> int:
            return 6

        def batch_decode(self, rows: list[list[int]]) -> list[str]:
            return ["".join(self.texts[token] for token in row) for row in rows]

    usual = {"lz_separators": b"\x18\0\0\0", "lz_commas": b"\x20\0\0\0"}
    assert separators_of_server(Tokenizer()) == lz_separators(Tokenizer()) == usual
    with caplog.at_level(logging.WARNING, "lzsampler"):
        assert separators_of_server(None) == separators_of_server(object()) == {}
    assert ["no tokenizer here" in caplog.messages[0], "tokens of object" in caplog.messages[1]] == [True, True]


def test_separators_fit_rows_of_more_logits_than_the_tokenizer_has_tokens() -> None:
    params = replace(DEFAULT, lz_separators=b"\x18\0\0\0")
    assert fitted(params, 32) == params
    wide = fitted(params, 33)
    assert (wide.lz_separators, wide.lz_commas) == (b"\x18" + bytes(7), b"")
    for n_vocab in (1, 32, 33, 200):
        Request(n_vocab, params)
    assert fitted(wide, 32) == params


# ---- a text that grows, and is taken back ----


def edits(request: Request) -> list[tuple[int, float, float]]:
    return sorted(tuple(edit.tolist()) for edit in request.edits() if edit["repeat"] != 1 or edit["bias"] != 0)


def edits_of_a_new_one(params: Params, prompt: list[int], text: list[int]) -> list[tuple[int, float, float]]:
    sampler = Sampler(V, params)
    sampler.prime(prompt)
    for token in text:
        sampler.accept(token)
    return sorted(zip(*(column.tolist() for column in sampler.edits()), strict=True))


@pytest.mark.parametrize("history", ["generated", "all"])
def test_a_request_follows_its_tokens(history: Any) -> None:
    params = Params(lz_penalty=0.3, lz_min_match=2, repetition_penalty=1.2, history=history)
    rng = np.random.default_rng(1)
    prompt = rng.integers(0, 4, 20).tolist()
    request, text = Request(V, params, prompt), list[int]()
    for _ in range(300):
        if rng.random() < 0.3:
            text = text[: max(0, len(text) - int(rng.integers(0, 4)))]
        elif text and rng.random() < 0.2:
            text = [*text[:-1], 5]
        else:
            text = text + rng.integers(0, 4, int(rng.integers(0, 4))).tolist()
        assert request.follow(text)
        assert len(request) == len(text)
        assert edits(request) == edits_of_a_new_one(params, prompt, text)


def test_a_request_stops_at_what_is_no_token() -> None:
    request = Request(V, DEFAULT)
    assert not request.follow([1, 2, -1])
    assert len(request) == 2
    assert request.follow([1, 2, 3])
    assert not request.follow([1, 2, 3, V])
    assert not request.accept(-1)
    assert len(request) == 3
    request.rewind(0)
    request.rewind(3)
    assert len(request) == 0


def test_images_in_a_prompt_are_left_out() -> None:
    params = replace(DEFAULT, history="all", presence_penalty=1.0)
    assert edits(Request(V, params, [1, 2, 10**9, -1, 3])) == edits(Request(V, params, [1, 2, 3]))


# ---- rows ----


def rows_of_edits(rng: np.random.Generator) -> tuple[list[int], list[Request], list[list[int]]]:
    rows = sorted(rng.choice(6, int(rng.integers(1, 7)), replace=False).tolist())
    texts = [rng.integers(0, 5, int(rng.integers(0, 60))).tolist() for _ in rows]
    requests = []
    for text in texts:
        params = params_of(SETTINGS[int(rng.integers(len(SETTINGS)))])
        requests.append(Request(V, params, [1, 2, 3]))
        assert requests[-1].follow(text)
    return rows, requests, texts


def on_device(scores: Any, rows: list[int], edits: list[Edits], sign_aware: list[bool]) -> None:
    """What is done on a device, on the CPU, where each operation rounds as it does there."""
    counts = [len(row) for row in edits]
    at, aware = np.repeat(np.asarray(rows, np.int64), counts), np.repeat(np.asarray(sign_aware), counts)
    _edit_on_device(scores, at, np.concatenate(edits), aware, float(np.finfo(np.float32).max))


@pytest.mark.parametrize("apply", [apply_edits, on_device])
def test_rows_of_a_batch_get_the_bits_of_process(apply: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    for seed in range(150):
        rng = np.random.default_rng(seed)
        rows, requests, texts = rows_of_edits(rng)
        scale = [3, 1e-39, 1e38][seed % 3]
        before = (scale * rng.normal(size=(6, V))).clip(-3e38, 3e38).astype(np.float32)
        before[rng.random(before.shape) < 0.1] = -np.inf
        before[:, 0] = 1.0
        scores = torch.from_numpy(before.copy())
        apply(scores, rows, [r.edits() for r in requests], [r.params.sign_aware for r in requests])
        for row in range(6):
            if row in rows:
                at = rows.index(row)
                wanted = expected(requests[at].params, [1, 2, 3], texts[at], before[row])
                assert same_bits(scores[row], wanted), (seed, row)
            else:
                assert same_bits(scores[row], before[row])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_rows_are_the_float32_result_rounded(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    rows, requests, _ = rows_of_edits(np.random.default_rng(5))
    scores = (3 * torch.randn(6, V, generator=torch.Generator().manual_seed(1))).to(kind)
    wide = scores.float()
    for each in (scores, wide):
        apply_edits(each, rows, [r.edits() for r in requests], [r.params.sign_aware for r in requests])
    assert torch.equal(scores, wide.to(kind))


def test_no_rows_need_no_torch() -> None:
    apply_edits(None, [], [], [])


# ---- what is not installed ----


@pytest.mark.parametrize(("package", "name"), [("vllm", "vLLM"), ("sglang", "SGLang")])
def test_without_the_engine_one_sentence_says_what_to_install(package: str, name: str, tmp_path: Path) -> None:
    def error(code: str) -> str:
        command = [sys.executable, "-c", f"import sys; {code}; import lzsampler.integrations.{package}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr.splitlines()[-1]

    message = f"{name} is needed for this: pip install {package}"
    if importlib.util.find_spec(package) is None:
        assert error("0") == f"lzsampler.errors.MissingExtra: {message}"
    (tmp_path / f"{package}.py").write_text("import no_such_library\n")
    broken = f"{name} does not load: No module named 'no_such_library'"
    assert error(f"sys.path.insert(0, {str(tmp_path)!r})") == f"lzsampler.errors.MissingExtra: {broken}"
