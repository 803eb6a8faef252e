"""`lzsampler.integrations.sglang` with SGLang's own base class, requests and batches. `make engines` runs it."""

from array import array
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine_rows import SETTINGS, expected, params_of, same_bits

pytest.importorskip("sglang", exc_type=ImportError)

import torch
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

from lzsampler.integrations.sglang import LZProcessor
from lzsampler.params import PRESETS

V = 40


class Request:
    """What the processor reads of SGLang's class of requests, whose import needs far more of SGLang."""

    def __init__(self, prompt: list[int], output: list[int]) -> None:
        self.origin_input_ids, self.output_ids = array("q", prompt), array("q", output)
        self.kv = SimpleNamespace(kv_committed_len=len(prompt) + len(output))
        self.tokenizer = None


def test_a_server_makes_it_of_its_name() -> None:
    text = LZProcessor.to_str()
    assert isinstance(CustomLogitProcessor.from_str(text), LZProcessor)
    assert len(text) < 500  # the class is named in it, not contained


def test_rows_of_several_requests() -> None:
    processor, rng = CustomLogitProcessor.from_str(LZProcessor.to_str()), np.random.default_rng(1)
    requests = [Request(rng.integers(0, 5, 9).tolist(), []) for _ in SETTINGS]
    for _ in range(60):
        order = rng.permutation(len(SETTINGS)).tolist()
        before = rng.normal(scale=3, size=(len(order), V)).astype(np.float32)
        arguments = [{**SETTINGS[i], "__req__": requests[i]} for i in order]
        logits = torch.from_numpy(before.copy())
        assert processor(logits, arguments) is logits
        for row, i in enumerate(order):
            prompt, text = requests[i].origin_input_ids.tolist(), requests[i].output_ids.tolist()
            assert same_bits(logits[row], expected(params_of(SETTINGS[i]), prompt, text, before[row]))
            requests[i].output_ids.append(int(rng.integers(0, 4)))
            requests[i].kv.kv_committed_len += 1


LOOP = [1, 2, 3, 4, 5] * 4


def test_without_settings_it_is_the_default_penalty() -> None:
    row = np.zeros(V, np.float32)
    logits = LZProcessor()(torch.zeros(1, V), [{"__req__": Request([7], LOOP)}])
    assert same_bits(logits[0], expected(params_of({"lzsampler": PRESETS["default"]}), [7], LOOP, row))
    assert logits.count_nonzero() == 1


def late(request: Request) -> list[Any]:
    request.kv.kv_committed_len += 1
    return [{"__req__": request}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda request: [{"__req__": request, "lz_penalty": -1}], "alone: lz_penalty must be at least 0, got -1"),
        (lambda request: [{"__req__": request, "lz_penalti": 1}], "has no setting 'lz_penalti'; did you mean"),
        (lambda request: [{"__req__": request, "lzsampler": {"exempt": [V]}}], f"exempt must be tokens below {V}"),
        (lambda request: [{"lz_penalty": 1}], "send custom_params, at least {}"),
        (lambda request: [None], "send custom_params, at least {}"),
        (lambda request: None, "send custom_params, at least {}"),
        (late, "--disable-overlap-schedule"),
        (lambda request: [{"__req__": request}] * 2, "applies no penalty with speculative decoding"),
    ],
    ids=["bad", "unknown", "not in the vocabulary", "no request", "nothing", "no list", "late", "drafts"],
)
def test_what_cannot_be_followed_is_left_alone(arguments: Any, message: str, caplog: pytest.LogCaptureFixture) -> None:
    from lzsampler.integrations.tokenizer import warn_once

    warn_once.cache_clear()
    given = arguments(Request([7], LOOP))
    logits = torch.zeros(len(given or [0]), V)
    processor = LZProcessor()
    assert processor(processor(logits, given), given).count_nonzero() == 0
    assert caplog.text.count(message) == 1


# ---- SGLang's requests and batches ----


@pytest.fixture
def sglang(monkeypatch: pytest.MonkeyPatch) -> Any:
    """SGLang's classes, with the settings of a server that has custom logit processors."""
    try:
        from sglang.srt.layers.sampler import apply_custom_logit_processor
        from sglang.srt.managers.schedule_batch import Req
        from sglang.srt.sampling import sampling_batch_info
        from sglang.srt.sampling.sampling_params import SamplingParams
    except Exception as error:  # whatever its modules for a GPU raise
        pytest.skip(f"SGLang's batches do not load here: {type(error).__name__}: {error}")
    features = SimpleNamespace(enable_custom_logit_processor=True, enable_watermark=False)
    deterministic = SimpleNamespace(enable_deterministic_inference=False)
    monkeypatch.setattr(
        sampling_batch_info, "get_exec", lambda: SimpleNamespace(features=features, deterministic=deterministic)
    )
    return SimpleNamespace(
        Req=Req,
        SamplingParams=SamplingParams,
        SamplingBatchInfo=sampling_batch_info.SamplingBatchInfo,
        apply=apply_custom_logit_processor,
    )


class Batch:
    """What SGLang's batch reads of a schedule, to which it keeps a weak reference."""

    def __init__(self, reqs: list[Any]) -> None:
        self.reqs, self.device = reqs, "cpu"


def test_requests_of_sglang_come_and_go(sglang: Any) -> None:
    rng = np.random.default_rng(2)
    requests: list[Any] = []
    batches: list[Any] = []  # a batch must outlive what is made of it
    info: Any = None
    changed = 0

    def new(number: int) -> Any:
        arguments = SETTINGS[number % len(SETTINGS)]
        ours = number % 4 != 3
        params = sglang.SamplingParams(max_new_tokens=100, custom_params=dict(arguments))
        prompt = array("q", rng.integers(0, 5, 9).tolist())
        made = sglang.Req(
            str(number), "", prompt, params, custom_logit_processor=LZProcessor.to_str() if ours else None
        )
        made.arguments = arguments if ours else None
        made.kv.kv_committed_len = len(prompt)
        return made

    for step in range(60):
        keep = [i for i in range(len(requests)) if rng.random() < 0.9]
        if info is not None and not keep:
            info, requests = None, []
        if info is not None and len(keep) < len(requests):
            info.filter_batch(keep, torch.tensor(keep))
            requests = [requests[i] for i in keep]
        added = [new(10 * step + i) for i in range(int(rng.integers(0, 3)))] if len(requests) < 8 else []
        if added:
            batches.append(Batch(added))
            other = sglang.SamplingBatchInfo.from_schedule_batch(batches[-1], V)
            if info is None:
                info = other
            else:
                info.merge_batch(other)
            requests = requests + added
        if not requests or not info.has_custom_logit_processor:
            continue
        before = rng.normal(scale=3, size=(len(requests), V)).astype(np.float32)
        logits = torch.from_numpy(before.copy())
        sglang.apply(logits, info)
        for row, request in enumerate(requests):
            wanted = before[row]
            if request.arguments is not None:
                prompt, text = request.origin_input_ids.tolist(), request.output_ids.tolist()
                wanted = expected(params_of(request.arguments), prompt, text, before[row])
            assert same_bits(logits[row], wanted)
            changed += not same_bits(logits[row], before[row])
        for request in requests:
            request.output_ids.append(int(rng.integers(0, 4)))
            request.kv.kv_committed_len += 1
    assert changed > 50
