"""The logits processor for transformers: the bits of `Sampler.process`, in every mode of ``generate``."""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_rows import expected as processed
from lz_settings import either_rule
from lzsampler import Params, Sampler
from lzsampler.auditing.findings import audit
from lzsampler.auditing.repetition import largest_run
from lzsampler.params import PRESETS, Method

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
LZLogitsProcessor = pytest.importorskip("lzsampler.integrations.hf").LZLogitsProcessor
torch.set_num_threads(1)  # models this small wait for threads more than they compute

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "transformers.md").read_text(encoding="utf-8")
HF: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests" / "vectors" / "hf_processors_shared.jsonl").read_text().splitlines()
]

PAD = 0
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
ALL_PENALTIES: dict[str, Any] = {
    "lz_penalty": 0.15,
    "lz_window": 24,
    "lz_rule": "paper",
    "lz_buffer": 4,
    "repetition_penalty": 1.2,
    "frequency_penalty": 0.1,
    "presence_penalty": -0.2,
    "exempt": (3, 5),
}

Row = npt.NDArray[np.float32]


def same_bits(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a).view(np.uint32), np.asarray(b).view(np.uint32))


# ---- the bits of Sampler.process ----


@st.composite
def penalties(draw: st.DrawFn, n_vocab: int) -> Params:
    def off_or(off: float, *values: float) -> float:
        return draw(st.just(off) | st.sampled_from([off, *values]))

    both: list[Method] = ["multiplicative", "subtractive"]
    methods = st.sampled_from(both)
    repetition_method = draw(methods)
    return Params(
        **draw(either_rule(n_vocab, (0.0, 0.15, 1.0, 1e38))),
        repetition_penalty=off_or(1.0 if repetition_method == "multiplicative" else 0.0, 0.5, 1.25, 1.1, 3e38),
        frequency_penalty=off_or(0.0, 0.5, 0.3, 1.25),
        presence_penalty=off_or(0.0, 0.5, 0.3, 1.25),
        repetition_method=repetition_method,
        frequency_method=draw(methods),
        presence_method=draw(methods),
        sign_aware=draw(st.booleans()),
        penalty_window=draw(st.sampled_from([0, 1, 5, 40])),
        history=draw(st.sampled_from(["generated", "all"])),
        exempt=draw(st.sets(st.integers(0, n_vocab - 1), max_size=2).map(tuple)),
        dry_multiplier=off_or(0.0, 0.8, 3e38),
        dry_allowed_length=draw(st.sampled_from([1, 2])),
        dry_penalty_last_n=draw(st.sampled_from([-1, 0, 3, 40])),
        dry_breakers=draw(st.sets(st.integers(0, 7), max_size=2).map(tuple)),
        logit_bias=draw(
            st.dictionaries(st.integers(0, n_vocab - 1), st.sampled_from([-np.inf, -1.5, 3e38]), max_size=2)
        ),
    )


@st.composite
def scores(draw: st.DrawFn, n_rows: int, n_vocab: int) -> Row:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.normal(scale=3, size=(n_rows, n_vocab))
    kind = draw(st.sampled_from(["normal", "zeros", "holes", "huge", "tiny"]))
    if kind == "zeros":
        x = np.where(rng.random(x.shape) < 0.5, 0.0, -0.0)
    elif kind == "holes":
        x[:, 1:][rng.random((n_rows, n_vocab - 1)) < 0.5] = -np.inf
    elif kind == "huge":
        x = np.clip(1e38 * x, -3e38, 3e38)
    elif kind == "tiny":
        x *= 1e-39
    return x.astype(np.float32)


@pytest.mark.filterwarnings("ignore:these params set")  # some that are drawn switch no penalty on, which gets a warning
@settings(derandomize=True, max_examples=600, deadline=None)
@given(st.data())
def test_float32_rows_get_the_bits_of_process(data: st.DataObject) -> None:
    n_vocab, n_rows = data.draw(st.sampled_from([8, 33, 150])), data.draw(st.integers(1, 3))
    params, before = data.draw(penalties(n_vocab)), data.draw(scores(n_rows, n_vocab))
    tokens = st.integers(1, 6)
    prompts = data.draw(st.lists(st.lists(tokens, max_size=20), min_size=n_rows, max_size=n_rows))
    length = data.draw(st.integers(0, 60))
    texts = data.draw(st.lists(st.lists(tokens, min_size=length, max_size=length), min_size=n_rows, max_size=n_rows))
    longest = max(map(len, prompts))
    ids = [[PAD] * (longest - len(p)) + p + t for p, t in zip(prompts, texts, strict=True)]

    everything = params.history == "all"
    scope = {"pad_token_id": PAD} if everything else {"prompt_length": longest}
    after = torch.from_numpy(before.copy())
    tensor = torch.tensor(ids, dtype=torch.int64).reshape(n_rows, longest + length)
    copied = LZLogitsProcessor(params, **scope)(tensor, after)
    assert same_bits(after, before)  # no processor changes what it is given, unless it is told to
    assert LZLogitsProcessor(params, **scope, inplace=True)(tensor, after) is after
    assert same_bits(after, copied)
    for row in range(n_rows):
        assert same_bits(after[row], processed(params, prompts[row], texts[row], before[row]))


@pytest.mark.parametrize("history", ["generated", "all"])
@pytest.mark.parametrize("formula", ["rate", "distance", "codelength"])
def test_a_text_longer_than_its_windows(history: Any, formula: Any) -> None:
    params = Params(
        lz_rule="paper", lz_penalty=0.15, lz_formula=formula, frequency_penalty=0.5, penalty_window=600, history=history
    )
    rng = np.random.default_rng(1)
    n_vocab, prompt = 5000, rng.integers(0, 5000, 100).tolist()
    text = rng.zipf(1.3, 2000) % 40
    text[1500:1540] = text[-40:]
    processor, logits = LZLogitsProcessor(params), rng.normal(0, 3, n_vocab).astype(np.float32)
    for length in (0, *range(1990, 2001)):
        if length == 1990:
            processor = LZLogitsProcessor(params, **({} if history == "all" else {"prompt_length": len(prompt)}))
        generated = text[:length].tolist()
        row = processor(torch.tensor([prompt + generated]), torch.from_numpy(logits[None].copy()))[0]
        assert same_bits(row, processed(params, prompt, generated, logits))


@pytest.mark.parametrize("case", HF, ids=range(len(HF)))
def test_golden_vectors_of_transformers(case: dict[str, Any]) -> None:
    """Our repetition penalty in the list of their processors."""
    config = case["config"]
    made: list[Any] = [
        LZLogitsProcessor(lz_penalty=0, repetition_penalty=config.get("repetition_penalty", 1.0), history="all")
    ]
    theirs = {"temperature": "Temperature", "top_k": "TopK", "top_p": "TopP", "min_p": "MinP"}
    made += [getattr(transformers, f"{name}LogitsWarper")(config[key]) for key, name in theirs.items() if key in config]
    out = transformers.LogitsProcessorList(made)(torch.tensor([case["history"]]), torch.tensor([case["logits"]]))
    expected = [-np.inf if x is None else x for x in case["expected"]]
    np.testing.assert_allclose(out[0], np.array(expected, np.float32), rtol=1e-6)
    np.testing.assert_allclose(out[0].softmax(0), case["expected_probs"], atol=1e-5)


# ---- kinds of tensors ----


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_other_dtypes_are_the_float32_result_rounded(dtype: str, device: str) -> None:
    kind = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 50, (3, 80), generator=generator)
    before = (3 * torch.randn(3, 100, generator=generator)).to(kind)
    processor = LZLogitsProcessor(**ALL_PENALTIES, history="all", inplace=True)
    after = before.clone().to(device)
    assert processor(ids.to(device), after) is after
    assert torch.equal(after.cpu(), processor(ids, before.float()).to(kind))


def test_float64_keeps_its_digits() -> None:
    before = torch.full((1, 10), 1 / 3, dtype=torch.float64)
    processor = LZLogitsProcessor(lz_penalty=0, presence_penalty=0.25, history="all")
    assert processor(torch.tensor([[4]]), before.clone())[0, 4].item() == 1 / 3 - 0.25


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_finite_stays_finite_and_the_rest_stays(dtype: str) -> None:
    kind = getattr(torch, dtype)
    most = torch.finfo(kind).max
    nan, inf = float("nan"), float("inf")
    row = torch.tensor([[-most, most, inf, -inf, nan, 1.0]], dtype=kind)
    processor = LZLogitsProcessor(lz_penalty=0, repetition_penalty=1e30, history="all")
    out = processor(torch.tensor([[0, 1, 2, 3, 4]]), row)[0]
    assert out[[0, 2, 3, 5]].tolist() == [-most, inf, -inf, 1.0]
    assert out[1].isfinite()
    assert out[4].isnan()


def test_a_view_with_strides_and_other_integers() -> None:
    """Assisted generation hands out slices of its [batch, drafts, n_vocab]."""
    logits = torch.randn(1, 4, 50, generator=torch.Generator().manual_seed(1))
    whole = logits.clone()
    ids = torch.tensor([[1, 2, 3, 1, 2, 3, 1, 2]], dtype=torch.int32)
    processor = LZLogitsProcessor(lz_buffer=2, lz_rule="paper", lz_penalty=1.0, history="all", inplace=True)
    processor(ids, whole[:, 2, :])
    assert torch.equal(whole[:, [0, 1, 3]], logits[:, [0, 1, 3]])
    assert same_bits(whole[0, 2], processed(processor.params, ids[0].tolist(), [], logits[0, 2].numpy()))


def test_inplace() -> None:
    ids, row = torch.tensor([[1, 1]]), torch.zeros(1, 4)
    arguments: dict[str, Any] = {"lz_penalty": 0, "presence_penalty": 1.0, "history": "all"}
    assert LZLogitsProcessor(**arguments)(ids, row)[0].tolist() == [0, -1, 0, 0]
    assert row.tolist() == [[0, 0, 0, 0]]  # no processor of transformers changes what it is given either
    assert LZLogitsProcessor(**arguments, inplace=True)(ids, row) is row
    assert row.tolist() == [[0, -1, 0, 0]]


def test_one_processor_for_models_of_different_vocabularies() -> None:
    processor = LZLogitsProcessor(lz_penalty=1.0, lz_buffer=1, lz_rule="paper", history="all")
    for n_vocab in (64, 100, 64):
        out = processor(torch.tensor([[1, 2, 1, 2]]), torch.zeros(1, n_vocab))
        assert same_bits(out[0], processed(processor.params, [1, 2, 1, 2], [], np.zeros(n_vocab, np.float32)))


# ---- what is prompt and what is generated ----


def seen(processor: Any, rows: list[list[int]]) -> list[list[int]]:
    """Tokens of each row's history, by their presence penalty."""
    out = processor(torch.tensor(rows, dtype=torch.int64).reshape(len(rows), -1), torch.zeros(len(rows), 20))
    return [row.nonzero().flatten().tolist() for row in out]


def presence(**arguments: Any) -> Any:
    return LZLogitsProcessor(lz_penalty=0, presence_penalty=1.0, **arguments)


def test_the_first_input_is_the_prompt() -> None:
    processor = presence()
    assert seen(processor, [[1, 2], [1, 3]]) == [[], []]
    assert seen(processor, [[1, 2, 4], [1, 3, 5]]) == [[4], [5]]
    assert seen(processor, [[1, 2, 4, 2], [1, 3, 5, 6]]) == [[2, 4], [5, 6]]


@pytest.mark.parametrize(
    ("rows", "history"),
    [
        ([[1, 2]], []),  # the same prompt again
        ([[1, 2, 3, 4, 5, 6]], []),  # a longer one that begins with all that was written: a next turn
        ([[1, 2, 9, 4, 5]], []),  # begins with the prompt only
        ([[1, 2, 9, 4]], []),
        ([[1, 2, 9, 4, 5, 6]], []),
        ([[8, 2, 3, 4, 5]], []),  # as long as the next step, with another prompt
        ([[1]], []),
        ([[]], []),
        ([[1, 2, 3, 4], [1, 2, 3, 4]], []),  # another batch
        ([[1, 2, 3, 4, 9]], [3, 4, 9]),  # the next step
        ([[1, 2, 3, 9]], [3, 9]),  # the next step after a draft was refused
        ([[1, 2, 9]], [9]),  # or a new prompt that is the old one and a token: the same tokens, so the same answer
    ],
)
def test_a_new_generate_is_noticed(rows: list[list[int]], history: list[int]) -> None:
    processor = presence()
    for call in ([[1, 2]], [[1, 2, 3]], [[1, 2, 3, 4]]):
        seen(processor, call)
    assert seen(processor, rows) == [history] * len(rows)
    again = [[*row, 11] for row in rows]
    assert seen(processor, again) == [[*history, 11]] * len(rows)


def test_beams_are_reordered() -> None:
    processor = presence()
    seen(processor, [[1, 2]] * 2 + [[1, 3]] * 2)
    assert seen(processor, [[1, 2, 4], [1, 2, 5], [1, 3, 6], [1, 3, 7]]) == [[4], [5], [6], [7]]
    swapped = [[1, 2, 5, 8], [1, 2, 4, 8], [1, 3, 7, 8], [1, 3, 7, 9]]
    assert seen(processor, swapped) == [[5, 8], [4, 8], [7, 8], [7, 9]]
    assert seen(processor, [[1, 2, 6, 8, 1], *swapped[1:]][:1] * 4) == [[]] * 4  # no row of the last call


def test_the_caller_may_overwrite_its_tensor() -> None:
    processor, buffer = presence(), torch.tensor([[1, 2, 0, 0]])
    for length, token in ((2, 5), (3, 6)):
        processor(buffer[:, :length], torch.zeros(1, 20))
        buffer[0, length] = token
    assert processor(buffer, torch.zeros(1, 20))[0].nonzero().flatten().tolist() == [5, 6]
    buffer[0] = torch.tensor([9, 9, 9, 9])
    assert processor(buffer, torch.zeros(1, 20))[0].count_nonzero() == 0


def test_prompt_length_and_reset() -> None:
    processor = presence(prompt_length=2)
    assert seen(processor, [[1, 2, 3]]) == [[3]]
    assert seen(processor, [[4, 5, 6, 7]]) == [[6, 7]]
    assert seen(processor, [[4]]) == [[]]

    processor = presence()
    seen(processor, [[1, 2]])
    assert seen(processor, [[1, 2, 3]]) == [[3]]  # the next step, or a generate() that takes up the text: the same
    processor.reset()
    assert seen(processor, [[1, 2, 3]]) == [[]]


def test_padding_is_no_history() -> None:
    rows = [[PAD, PAD, 1, 2], [PAD, 5, PAD, 6], [PAD] * 4]
    assert seen(presence(history="all", pad_token_id=PAD), rows) == [[1, 2], [PAD, 5, 6], []]
    assert seen(presence(history="all"), rows)[0] == [PAD, 1, 2]
    assert seen(presence(history="all", pad_token_id=PAD, penalty_window=1), rows) == [[2], [6], []]


# ---- generate ----


def llama(seed: int, spread: float = 0.1, n_vocab: int = 256) -> Any:
    """A random model that has much to say; ``spread``: standard deviation of its weights."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=n_vocab,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=1024,
        initializer_range=spread,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=PAD,
    )
    return transformers.LlamaForCausalLM(config).eval()


def t5(seed: int) -> Any:
    torch.manual_seed(seed)
    config = transformers.T5Config(
        vocab_size=256,
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        initializer_factor=8.0,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        eos_token_id=None,
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def generate(model: Any, prompts: list[list[int]], *processors: Any, n: int = 60, **more: Any) -> Any:
    """New tokens of left-padded prompts, int[batch, n]."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (longest - len(p)) + p for p in prompts])
    torch.manual_seed(1)  # of do_sample
    out = model.generate(
        ids,
        attention_mask=(ids != PAD).long(),
        max_new_tokens=n,
        logits_processor=transformers.LogitsProcessorList(processors),
        **{"do_sample": False, **more},
    )
    return out[:, 1:] if model.config.is_encoder_decoder else out[:, longest:]


class Spy:
    """Calls a processor and holds each row that it edits to `Sampler.process`."""

    def __init__(self, inner: Any, n_prompt: int) -> None:
        self.inner, self.n_prompt, self.rows, self.changed = inner, n_prompt, 0, 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        before = scores.clone().numpy()
        after = self.inner(input_ids, scores)
        for ids, x, y in zip(input_ids.tolist(), before, after, strict=True):
            prompt, text = ids[: self.n_prompt], ids[self.n_prompt :]
            while self.inner.pad_token_id is not None and prompt[:1] == [PAD]:
                prompt = prompt[1:]
            assert same_bits(y, processed(self.inner.params, prompt, text, x))
            self.rows += 1
            self.changed += not same_bits(x, y)
        return after


PROMPTS = [[11, 12, 13, 14, 15, 16], [21, 22, 23], [31, 32, 33, 34, 31, 32]]
MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "temperature": 0.8, "top_k": 40, "top_p": 0.95},
    "beams": {"num_beams": 3},
    "sampled beams": {"num_beams": 3, "do_sample": True, "num_return_sequences": 2},
}


@pytest.mark.parametrize("history", ["generated", "all"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [llama, t5])
def test_every_step_of_generate(make: Callable[[int], Any], mode: str, history: str) -> None:
    model = make(1)
    processor = LZLogitsProcessor(**ALL_PENALTIES, history=history, pad_token_id=PAD)
    spy = Spy(processor, n_prompt=1 if make is t5 else 6)
    generate(model, PROMPTS, spy, **MODES[mode])
    assert spy.rows == 60 * 3 * MODES[mode].get("num_beams", 1)
    assert spy.changed > 50 * 3


@pytest.mark.parametrize("history", ["generated", "all"])
@pytest.mark.parametrize("how", ["assistant", "prompt lookup"])
@pytest.mark.parametrize("sample", [False, True])
def test_every_step_of_assisted_generation(how: str, sample: bool, history: str) -> None:
    """The draft model's own generate and refused drafts come in between, through the same processor."""
    model = llama(1)
    processor = LZLogitsProcessor(lz_penalty=0.15, lz_buffer=4, lz_rule="paper", history=history)
    spy = Spy(processor, n_prompt=6)
    assistant = llama(1)
    with torch.no_grad():
        for weight in assistant.parameters():
            weight.add_(0.01 * torch.randn(weight.shape))
    more = {"assistant_model": assistant} if how == "assistant" else {"prompt_lookup_num_tokens": 3}
    out = generate(model, PROMPTS[2:], spy, do_sample=sample, **more)
    assert spy.rows > 60
    if not sample:
        assert torch.equal(out, generate(model, PROMPTS[2:], LZLogitsProcessor(processor.params)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [llama, t5])
def test_without_a_penalty_nothing_changes(make: Callable[[int], Any], mode: str) -> None:
    model = make(2)
    assert torch.equal(
        generate(model, PROMPTS, LZLogitsProcessor(lz_penalty=0), **MODES[mode]),
        generate(model, PROMPTS, **MODES[mode]),
    )


def as_text(tokens: Any) -> str:
    """One character a token, none of them white space, for the measures of repetition."""
    return "".join(chr(0x4E00 + token) for token in tokens.tolist())


def loops(tokens: Any) -> bool:
    """Whether something stands there 20 times in a row."""
    return audit(as_text(tokens), levels="char", near=False, length_copies=20).looping


def test_loops_are_gone() -> None:
    without = with_lz = longest = 0
    for seed in range(6):
        model, prompts = llama(seed, spread=0.05), PROMPTS
        without += sum(loops(row) for row in generate(model, prompts, n=300))
        for row in generate(model, prompts, LZLogitsProcessor(**PRESETS["paper"]), n=300):
            run = largest_run(as_text(row))
            longest = max(longest, 0 if run is None else run.length)
            with_lz += loops(row)
    assert without >= 6  # of 18 texts
    assert with_lz == 0
    assert longest <= 30  # of 300 tokens


@pytest.mark.parametrize("history", ["generated", "all"])
def test_a_padded_batch_equals_one_by_one(history: str) -> None:
    model = llama(3)
    processor = LZLogitsProcessor(**ALL_PENALTIES, history=history, pad_token_id=PAD)
    batch = generate(model, PROMPTS, processor)
    for prompt, row in zip(PROMPTS, batch, strict=True):
        assert torch.equal(generate(model, [prompt], processor)[0], row)


def test_several_generates_with_one_processor() -> None:
    model, settings = llama(4), Params(lz_rule="paper", lz_penalty=0.15, lz_buffer=2)
    one = LZLogitsProcessor(settings)
    first = generate(model, PROMPTS[:1], one)
    turn = PROMPTS[0] + first[0].tolist() + [7, 8]
    for prompts in (PROMPTS[:1], [turn], [turn], PROMPTS, [[11]], [[11, 12, 13]]):
        assert torch.equal(generate(model, prompts, one), generate(model, prompts, LZLogitsProcessor(settings)))


def test_a_bfloat16_model() -> None:
    model = llama(5).to(torch.bfloat16)
    spy = Spy(LZLogitsProcessor(**ALL_PENALTIES), n_prompt=6)
    generate(model, PROMPTS, spy)
    assert spy.rows == 180


@pytest.mark.parametrize("inplace", [True, False])
def test_output_logits(inplace: bool) -> None:
    model, ids = llama(6), torch.tensor(PROMPTS[:1])
    processor = LZLogitsProcessor(Params(lz_rule="paper", lz_penalty=0.15, lz_buffer=2), inplace=inplace)
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=20,
        do_sample=False,
        logits_processor=[processor],
        output_logits=True,
        output_scores=True,
        return_dict_in_generate=True,
    )
    for step, (logits, scores) in enumerate(zip(out.logits, out.scores, strict=True)):
        text = out.sequences[0, 6 : 6 + step].tolist()
        assert torch.equal(logits, scores) == (inplace or step <= 2)  # LZ starts after its buffer
        if not inplace:
            assert same_bits(scores[0], processed(processor.params, PROMPTS[0], text, logits[0].numpy()))
            greedy = Sampler(256, replace(processor.params, temperature=0.0))
            for token in text:
                greedy.accept(token)
            assert greedy.sample(logits[0].numpy()) == out.sequences[0, 6 + step]


# ---- refusals ----


@pytest.mark.parametrize(
    "setting",
    [
        {"temperature": 0.8},
        {"top_k": 40},
        {"top_p": 0.9},
        {"min_p": 0.05},
        {"seed": 1},
        {"ties": "keep"},
        {"temperature_last": True},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_what_generate_does_is_refused(setting: dict[str, Any]) -> None:
    (name, value), *_ = setting.items()
    message = f"penalties and logit_bias only and generate() does the rest: leave out {name}={value!r}"
    for arguments in (setting, {"params": Params(**setting)}):
        with pytest.raises(ValueError, match=re.escape(message)):
            LZLogitsProcessor(**arguments)


def test_bad_arguments() -> None:
    for arguments, message in (
        ({"params": {"lz_penalty": 1}}, "params must be a Params"),
        ({"lz_penalty": -1}, "lz_penalty must be at least 0, got -1"),
        ({"prompt_length": -1}, "prompt_length must be from 0"),
        ({"repetition_detection": {"max_pattern_size": 8, "min_count": 8}}, "cannot end a text: leave out repetition"),
        ({"prompt_length": 5, "history": "all"}, "prompt_length=5 has no meaning"),
        ({"pad_token_id": "0"}, "pad_token_id must be an integer"),
    ):
        with pytest.raises(ValueError, match=message):
            LZLogitsProcessor(**arguments)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lz_penalti'; did you mean 'lz_penalty'"):
        LZLogitsProcessor(lz_penalti=1)


def test_settings_are_those_of_attach() -> None:
    default = Params(lz_penalty=0.3, lz_run_penalty=0.5)
    assert LZLogitsProcessor().params == default
    assert LZLogitsProcessor(history="all").params == replace(default, history="all")
    assert LZLogitsProcessor(**PRESETS["paper"]).params == Params(lz_rule="paper", lz_penalty=0.15)
    assert LZLogitsProcessor(**PRESETS["guard"]).params == Params(lz_run_penalty=0.5, lz_run_allowance=64)
    assert LZLogitsProcessor(Params(lz_penalty=0.3), lz_window=16).params == Params(lz_penalty=0.3, lz_window=16)
    with pytest.warns(UserWarning, match="switch no penalty on"):
        LZLogitsProcessor(Params(history="all"))
    shown = inspect.signature(LZLogitsProcessor).parameters
    assert (shown["lz_penalty"].default, shown["lz_run_penalty"].default) == (0.3, 0.5)
    assert (shown["inplace"].default, shown["history"].default) == (False, "generated")
    assert not {"keywords", "penalties", "temperature"} & set(shown)


def test_bad_calls() -> None:
    processor, ids, row = LZLogitsProcessor(history="all"), torch.tensor([[1, 2]]), torch.zeros(1, 8)
    for arguments, message in (
        ((ids[0], row), r"got shapes \[2\] and \[1, 8\]"),
        ((ids, row[0]), r"got shapes \[1, 2\] and \[8\]"),
        ((ids, row.repeat(2, 1)), r"got shapes \[1, 2\] and \[2, 8\]"),
        ((ids, row.int()), "floating-point numbers, got torch.int32"),
        ((torch.tensor([[1, 8]]), row), r"\[1\] = 8 is not a token of a vocabulary of 8"),
        ((torch.tensor([[-1, 1]]), row), r"\[0\] = -1 is not a token of a vocabulary of 8"),
    ):
        with pytest.raises(ValueError, match=message):
            processor(*arguments)
    with pytest.raises(ValueError, match="exempt must be tokens below 8, the size of the vocabulary, got 9"):
        LZLogitsProcessor(exempt=[9])(ids, row)
    assert row.count_nonzero() == 0


# ---- DRY and logit_bias ----


def test_logit_bias_alone_is_applied_before_there_is_a_history() -> None:
    processor = LZLogitsProcessor(lz_penalty=0.0, logit_bias={1: 2.0, 3: -np.inf})
    row = torch.tensor([[0.0, 1.0, 2.0, np.inf]])
    assert processor(torch.tensor([[2, 2]]), row.clone()).tolist() == [[0.0, 3.0, 2.0, -np.inf]]
    half = processor(torch.tensor([[2, 2]]), row.to(torch.bfloat16))
    assert half.float().tolist() == [[0.0, 3.0, 2.0, -np.inf]]


@pytest.mark.parametrize("last_n", [-1, 5, 3])
def test_dry_looks_as_far_back_as_it_is_told(last_n: int) -> None:
    text = [1, 2, 3, 1, 2]
    params = Params(dry_multiplier=1.0, dry_penalty_last_n=last_n, history="all")
    out = LZLogitsProcessor(params)(torch.tensor([text]), torch.zeros(1, 8))
    assert same_bits(out[0], processed(params, text, [], np.zeros(8, np.float32)))
    assert out[0].tolist() == [0, 0, 0, -1.0 if last_n != 3 else 0, 0, 0, 0, 0]


# ---- the documentation ----


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", DOC, re.DOTALL), ids=lambda b: b.splitlines()[0])
def test_a_block_of_the_documentation(block: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ("print" in block) == bool(done.stdout.strip())
