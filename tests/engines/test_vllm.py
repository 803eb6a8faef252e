"""The processor for vLLM with vLLM's own classes: loaders, validators, batches of both runners. `make engines` runs it.

The batch of V1 is vLLM's; of Model Runner V2, whose kernels need a GPU, the loader, the state of requests and the
context of a step are, and what its kernels would write is written here.
"""

import re
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine_rows import SETTINGS, expected, params_of, same_bits

pytest.importorskip("vllm", exc_type=ImportError)

import torch
from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.v1.sample.logits_processor import build_logitsprocs, validate_logits_processors_parameters
from vllm.v1.worker.gpu_input_batch import CachedRequestState, InputBatch

from lzsampler.integrations.vllm import LZProcessor

V = 40
NAME = "lzsampler.integrations.vllm:LZProcessor"
CPU = torch.device("cpu")


def configuration(**changes: Any) -> Any:
    """What a processor reads of vLLM's configuration."""
    return SimpleNamespace(
        speculative_config=None,
        scheduler_config=SimpleNamespace(max_num_seqs=8),
        model_config=SimpleNamespace(skip_tokenizer_init=True),
        **changes,
    )


def sampling(arguments: dict[str, Any] | None) -> SamplingParams:
    return SamplingParams(max_tokens=100, extra_args=arguments)


def random_row(rng: np.random.Generator) -> Any:
    return torch.from_numpy(rng.normal(scale=3, size=V).astype(np.float32))


class Text:
    """A request with penalties, or with none."""

    def __init__(self, rng: np.random.Generator, number: int) -> None:
        self.id = f"request {number}"
        self.prompt = rng.integers(0, 5, int(rng.integers(1, 20))).tolist()
        self.output: list[int] = []
        self.arguments = SETTINGS[int(rng.integers(len(SETTINGS)))] if rng.random() < 0.8 else None

    def wanted(self, row: Any, drafts: list[int] | None = None) -> Any:
        if self.arguments is None:
            return row
        return expected(params_of(self.arguments), self.prompt, self.output + (drafts or []), row.numpy())


# ---- what vLLM loads, and refuses ----


def test_the_entry_point_is_there() -> None:
    assert [point.value for point in entry_points(group="vllm.logits_processors", name="lzsampler")] == [NAME]


BAD = [
    ({"lz_penalty": -1}, "lz_penalty must be at least 0, got -1"),
    ({"lz_penalti": 1}, "lzsampler has no setting 'lz_penalti'; did you mean 'lz_penalty'?"),
    ({"lzsampler": {"temperature": 0.5}}, "vLLM does the rest: leave out temperature"),
    ({"lzsampler": "papers"}, "or one of default, guard, paper, got 'papers'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=str)
def test_v1_refuses_bad_settings_of_a_request(arguments: dict[str, Any], message: str) -> None:
    for named in (None, [NAME]):  # by the entry point, and by name
        validate_logits_processors_parameters(named, sampling({"lz_penalty": 0.3}))
        with pytest.raises(VLLMValidationError, match=re.escape(message)) as refused:
            validate_logits_processors_parameters(named, sampling(arguments))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=str)
def test_v2_refuses_bad_settings_of_a_request(arguments: dict[str, Any], message: str) -> None:
    v2 = pytest.importorskip("vllm.v1.worker.gpu.sample.logits_processor", exc_type=ImportError)
    validate = v2.build_custom_logits_processors_params_validator([NAME])
    validate(sampling({"lzsampler": "paper"}))
    with pytest.raises(VLLMValidationError, match=re.escape(message)) as refused:
        validate(sampling(arguments))
    assert "\n" not in str(refused.value)


def test_v1_leaves_a_plug_in_out_of_speculative_decoding() -> None:
    """It says so itself: an installed lzsampler must not keep an engine from starting."""
    config = configuration()
    config.speculative_config = object()
    made = build_logitsprocs(config, CPU, False, False, ())
    assert not any(isinstance(processor, LZProcessor) for processor in made.all)


# ---- the batch of V1 ----


def v1_batch(names: tuple[str, ...] = ()) -> InputBatch:
    return InputBatch(
        max_num_reqs=8,
        max_model_len=400,
        max_num_batched_tokens=64,
        device=CPU,
        vocab_size=V,
        block_sizes=[16],
        max_num_blocks_per_req=[32],
        logitsprocs=build_logitsprocs(configuration(), CPU, False, False, names),
    )


def add(batch: InputBatch, text: Text) -> None:
    batch.add_request(
        CachedRequestState(
            req_id=text.id,
            prompt_token_ids=text.prompt,
            mm_features=[],
            sampling_params=sampling(text.arguments),
            generator=None,
            block_ids=([0],),
            num_computed_tokens=len(text.prompt) + len(text.output),
            output_token_ids=text.output,
        )
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("names", [(), (NAME,)], ids=["entry point", "and by name"])
def test_rows_of_v1_while_requests_come_move_and_go(seed: int, names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(seed)
    batch, texts, number, changed = v1_batch(names), dict[str, Text](), 0, 0
    for _ in range(60):
        leaving = [text for text in texts.values() if rng.random() < 0.08]
        for text in leaving:
            batch.remove_request(text.id)
            del texts[text.id]
        for text in leaving:
            if rng.random() < 0.4:  # preempted: it comes back with what it has
                add(batch, text)
                texts[text.id] = text
        while len(texts) < 8 and rng.random() < 0.5:
            text = Text(rng, number)
            number += 1
            texts[text.id] = text
            add(batch, text)
        batch.condense()
        if len(texts) > 1 and rng.random() < 0.5:
            batch.swap_states(*(int(i) for i in rng.choice(len(texts), 2, replace=False)))
        batch.refresh_metadata()
        if not texts:
            continue
        before = torch.stack([random_row(rng) for _ in texts])
        after = before.clone()
        for processor in batch.logitsprocs.non_argmax_invariant:
            after = processor.apply(after)
        for row, key in enumerate(batch.req_ids):
            assert same_bits(after[row], texts[key].wanted(before[row]))
            changed += not same_bits(after[row], before[row])
        for text in texts.values():
            text.output.append(int(rng.integers(0, 4)))
    assert changed > 50


def test_v1_hides_tokens_from_a_processor_that_it_was_not_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """Asynchronous scheduling without ``--logits-processors``: the places of tokens hold -1."""
    batch = v1_batch()
    text = Text(np.random.default_rng(1), 0)
    text.arguments, text.output = {"lz_penalty": 1.0, "lz_min_match": 2}, [1, 2, 1, 2, -1]
    add(batch, text)
    batch.refresh_metadata()
    (processor,) = (each for each in batch.logitsprocs.all if isinstance(each, LZProcessor))
    assert processor.apply(torch.zeros(1, V)).count_nonzero() == 0
    assert processor.apply(torch.zeros(1, V)).count_nonzero() == 0
    assert caplog.text.count("--logits-processors lzsampler.integrations.vllm:LZProcessor") == 1
    text.output[-1] = 1
    assert processor.apply(torch.zeros(1, V)).count_nonzero() == 1


def test_settings_that_vllm_did_not_refuse_do_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    batch = v1_batch()
    bad: list[dict[str, Any]] = [{"lz_penalty": -1}, {"lzsampler": {"exempt": [V]}}]
    for number, arguments in enumerate(bad):
        text = Text(np.random.default_rng(1), number)
        text.arguments = arguments
        add(batch, text)
    batch.refresh_metadata()
    (processor,) = (each for each in batch.logitsprocs.all if isinstance(each, LZProcessor))
    assert processor.apply(torch.zeros(2, V)).count_nonzero() == 0
    assert "leaves a request alone: lz_penalty must be at least 0" in caplog.text
    assert f"leaves a request alone: exempt must be tokens below {V}" in caplog.text


# ---- Model Runner V2 ----


class V2Runner:
    """What the model runner does around its processors, with the kernels' writes done here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from vllm.v1.worker.gpu import buffer_utils
        from vllm.v1.worker.gpu.sample.logits_processor import build_custom_logits_processors
        from vllm.v1.worker.gpu.states import RequestState

        monkeypatch.setattr(buffer_utils, "is_uva_available", lambda: False)  # it needs a GPU's pinned memory
        self.states = RequestState(
            max_num_reqs=8,
            max_model_len=400,
            max_num_batched_tokens=64,
            num_speculative_steps=3,
            vocab_size=V,
            device=CPU,
        )
        self.processors = build_custom_logits_processors(configuration(), self.states, False, [NAME])
        self.texts: dict[str, Text] = {}

    def add(self, text: Text) -> None:
        tokens = [*text.prompt, *text.output]
        self.states.add_request(text.id, len(text.prompt), tokens, 0, 100)
        slot = self.states.req_id_to_index[text.id]
        for written in (self.states.all_token_ids, self.states.total_len):
            written.clear_staged_writes()
        self.write(text)
        for processor in self.processors:
            processor.add_request(slot, sampling(text.arguments))
            processor.apply_staged_writes()
        self.texts[text.id] = text

    def remove(self, text: Text) -> None:
        self.states.remove_request(text.id)
        del self.texts[text.id]

    def write(self, text: Text) -> None:
        tokens = torch.tensor([*text.prompt, *text.output], dtype=torch.int32)
        slot = self.states.req_id_to_index[text.id]
        self.states.all_token_ids.gpu[slot, : len(tokens)] = tokens
        self.states.all_token_ids.gpu[slot, len(tokens) :] = 10**9  # nobody may look there
        self.states.total_len.gpu[slot] = len(tokens)

    def step(self, rows: list[tuple[Text, int, list[int]]], logits: Any) -> Any:
        """Apply the processors. ``rows``: of each request its tokens that the model has read, and drafts after them."""
        from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext

        slots = [self.states.req_id_to_index[text.id] for text, _, _ in rows]
        expanded, local, ids, pos = [], [], [], []
        for slot, (text, read, drafts) in zip(slots, rows, strict=True):
            tokens = [*text.prompt, *text.output][:read]
            for i, token in enumerate([tokens[-1], *drafts]):
                expanded.append(slot)
                local.append(i)
                ids.append(token)
                pos.append(read - 1 + i)
        context = LogitsContext(
            expanded_idx_mapping=torch.tensor(expanded, dtype=torch.int32),
            idx_mapping=torch.tensor(slots, dtype=torch.int32),
            idx_mapping_np=np.array(slots, np.int32),
            expanded_local_pos=torch.tensor(local, dtype=torch.int32),
            input_ids=torch.tensor(ids, dtype=torch.int32),
            pos=torch.tensor(pos, dtype=torch.int64),
            seq_lens_upper_bound_np=np.array([read + len(drafts) for _, read, drafts in rows], np.int32),
        )
        for processor in self.processors:
            logits = processor.apply(logits, context)
        return logits


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> V2Runner:
    pytest.importorskip("vllm.v1.worker.gpu.sample.logits_processor", exc_type=ImportError)
    return V2Runner(monkeypatch)


def test_v2_loads_it_by_entry_point_and_by_name(runner: V2Runner) -> None:
    assert [type(processor) for processor in runner.processors] == [LZProcessor, LZProcessor]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most_drafts", [0, 3])
def test_rows_of_v2_while_requests_come_move_and_go(runner: V2Runner, seed: int, most_drafts: int) -> None:
    rng = np.random.default_rng(seed)
    number = changed = drafted = 0
    for _ in range(60):
        for text in [text for text in runner.texts.values() if rng.random() < 0.08]:
            runner.remove(text)
            if rng.random() < 0.4:  # preempted
                runner.add(text)
        while len(runner.texts) < 8 and rng.random() < 0.5:
            runner.add(Text(rng, number))
            number += 1
        if not runner.texts:
            continue
        shown = [text for text in runner.texts.values() if rng.random() < 0.9] or list(runner.texts.values())
        rows = []
        for text in rng.permutation(np.array(shown, object)):
            n, most = len(text.prompt) + len(text.output), int(rng.integers(0, most_drafts + 1))
            part = n if rng.random() < 0.9 or text.output else int(rng.integers(1, n + 1))  # of a prompt
            rows.append((text, part, rng.integers(0, 4, most if part == n else 0).tolist()))
        before = torch.stack([random_row(rng) for _, _, drafts in rows for _ in range(1 + len(drafts))])
        after = runner.step(rows, before.clone())
        at = 0
        for text, read, drafts in rows:
            for i in range(1 + len(drafts)):
                if read == len(text.prompt) + len(text.output):  # else nothing is picked from it
                    assert same_bits(after[at], text.wanted(before[at], drafts[:i]))
                    changed += not same_bits(after[at], before[at])
                    drafted += i > 0
                at += 1
            if read == len(text.prompt) + len(text.output):
                accepted = int(rng.integers(0, len(drafts) + 1))
                text.output += [*drafts[:accepted], int(rng.integers(0, 4))]
                runner.write(text)
    assert changed > 50
    assert (drafted > 50) == (most_drafts > 0)


def test_v2_stops_at_a_draft_that_is_no_token(runner: V2Runner) -> None:
    text = Text(np.random.default_rng(1), 0)
    text.arguments, text.output = {"lz_penalty": 1.0, "lz_min_match": 2}, [1, 2, 1, 2]
    runner.add(text)
    logits = runner.step([(text, len(text.prompt) + 4, [1, -1, 2])], torch.zeros(4, V))
    assert logits.count_nonzero(dim=1).tolist()[2:] == [0, 0]
    assert logits.count_nonzero(dim=1).tolist()[:2] == [1, 1]


def test_v2_looks_at_nothing_where_no_request_asks_for_it(runner: V2Runner) -> None:
    text = Text(np.random.default_rng(1), 0)
    text.arguments = None
    runner.add(text)
    logits = torch.zeros(1, V)
    (processor,) = runner.processors[1:]
    assert processor.apply(logits, SimpleNamespace(idx_mapping_np=np.array([0]))) is logits
    assert not processor.add_request(0, sampling({"dry_multiplier": 0.8}))
    assert not processor.add_request(0, sampling({"lz_penalty": 0}))
    assert processor.add_request(0, sampling({"lz_penalty": 0.1}))
