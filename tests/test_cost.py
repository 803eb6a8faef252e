"""The cost of penalties on right texts: exact against a slow computation, nothing where there is nothing, all kept."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import reference
from lzsampler import LzsError, Params, Sampler, save
from lzsampler.evaluation.cost_scores import Given, edited
from lzsampler.evaluation.costs import Charge, Cost, Costs, TextCosts, charges_of, front
from lzsampler.evaluation.grid import Grid, Setting, paper, quick, read_grid
from lzsampler.reports.cost_terminal import costs_table
from lzsampler.reports.eval_markdown import markdown_table
from lzsampler.util.stats import bootstrap_ratios
from runs import LOOP, transcript, write_run

PROSE = (
    "Between Barton and Delaford, there was that constant communication which strong family affection would naturally "
    "dictate; and among the merits and the happiness of Elinor and Marianne, let it not be ranked as the least "
    "considerable, that though sisters, and living almost within sight of each other, they could live without "
    "disagreement between themselves, or producing coolness between their husbands. "
)


def settings(*params: Params) -> Grid:
    return Grid("made up", tuple(Setting(f"T=0 number={i}", f"kind{i}", each) for i, each in enumerate(params)))


# ---- scores ----


def log_softmax(row: npt.NDArray[np.float32], token: int) -> float:
    """The slow way, without numpy: every term, summed exactly."""
    values = [float(x) for x in row]
    top = max(values)
    if values[token] == -math.inf:
        return -math.inf
    return values[token] - top - math.log(math.fsum(math.exp(x - top) for x in values))


PENALTIES = {
    "lz": Params(lz_penalty=0.4, lz_window=40, lz_min_match=2, lz_run_penalty=0.5, lz_run_allowance=4),
    "distance": Params(lz_rule="paper", lz_penalty=2.5, lz_window=16, lz_buffer=3, lz_formula="distance"),
    "repetition": Params(repetition_penalty=1.7, penalty_window=20),
    "not sign-aware": Params(repetition_penalty=1.7, sign_aware=False),
    "frequency": Params(frequency_penalty=1.3, presence_penalty=-0.5, exempt=(3, 5)),
    "huge": Params(
        frequency_penalty=3.0, frequency_method="multiplicative", lz_penalty=1000.0, lz_min_match=1, lz_window=9
    ),
    "dry": Params(dry_multiplier=0.8),
    "bias": Params(logit_bias={1: 900.0, 2: -math.inf, 7: -3.0}),
    "all forbidden but one": Params(logit_bias=dict.fromkeys(range(29), -math.inf)),
    "none": Params(),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("spread", [1.0, 12.0, 300.0])
def test_scores_are_those_of_the_sampler_s_own_rows(name: str, spread: float) -> None:
    """Also where the edited tokens hold nearly all of the mass, or all of what float64 can hold."""
    params, v, n = PENALTIES[name], 30, 120
    rng = np.random.default_rng(sum(map(ord, name)))
    rows = (rng.standard_normal((n, v)) * spread).astype(np.float32)
    tokens = rng.integers(0, 9, n)
    rows[np.arange(0, n, 3), tokens[::3]] += np.float32(3 * spread)  # a model that is often sure, and right
    given = Given.of(rows, tokens)
    sampler, edits, whole = Sampler(v, params), [], []
    for row, token in zip(rows, tokens.tolist(), strict=True):
        edits.append(sampler.edits())
        whole.append(sampler.process(row, np.empty(v, np.float32)))
        sampler.accept(token)
    nats, first = edited(given, edits, sign_aware=params.sign_aware)
    for i, token in enumerate(tokens.tolist()):
        assert given.nats[i] == pytest.approx(-log_softmax(rows[i], token), rel=1e-12, abs=1e-12)
        expected = -log_softmax(whole[i], token)
        assert nats[i] == (math.inf if expected == math.inf else pytest.approx(expected, rel=1e-9, abs=1e-9))
        assert first[i] == (whole[i].argmax() == token and expected < math.inf)
        if not edits[i][0].size:
            assert nats[i] == given.nats[i]


def test_ties_go_to_the_lowest_id() -> None:
    rows = np.array([[1, 5, 5, 0]] * 3, np.float32)
    given = Given.of(rows, np.array([1, 2, 2]))
    assert given.first.tolist() == [True, False, False]

    def edit(token: int, bias: float) -> Any:
        return np.array([token], np.int32), np.array([1], np.float32), np.array([bias], np.float32)

    assert edited(given, [edit(0, 4), edit(1, -1), edit(3, 5)])[1].tolist() == [False, True, False]


def test_logits_that_are_not_numbers_are_the_model_s_failure() -> None:
    rows = np.zeros((2, 4), np.float32)
    rows[1, 2] = np.nan
    with pytest.raises(LzsError, match="the model failed: its logits are not numbers"):
        Given.of(rows, np.array([0, 0]))
    with pytest.raises(LzsError):
        Given.of(np.full((1, 4), -np.inf, np.float32), np.array([0]))


# ---- settings ----


@pytest.mark.parametrize("grid", [quick(), paper()], ids=lambda grid: grid.name)
def test_settings_that_differ_in_their_draws_are_one(grid: Grid) -> None:
    charges = charges_of(grid)
    assert sorted(name for charge in charges for name in charge.settings) == sorted(s.name for s in grid.settings)
    assert len(charges) < len(grid.settings)
    assert len({charge.name for charge in charges}) == len(charges)
    assert [charge.name for charge in charges if charge.is_free] == ["none"]
    by_name = {setting.name: setting for setting in grid.settings}
    for charge in charges:
        penalties = {by_name[name].params.lz_penalty for name in charge.settings}
        assert penalties == {charge.params.lz_penalty}
        assert charge.params.temperature == 1
        assert not any(word in charge.name for word in ("T=", "top_k", "seed"))


def test_a_bias_is_not_free_and_breakers_tell_settings_apart(write: Callable[[str, bytes], Path]) -> None:
    made = charges_of(
        read_grid(
            write(
                "grid.toml",
                b"[[setting]]\nlogit_bias = [[5, -1.5]]\n[[setting]]\ntemperature = [0, 1]\n[[setting]]\n"
                b'dry_multiplier = 0.8\n[[setting]]\ndry_multiplier = 0.8\ndry_breakers = ["x y"]\n',
            )
        )
    )
    assert [charge.is_free for charge in made] == [False, True, False, False]
    assert [len(charge.settings) for charge in made] == [1, 2, 1, 1]
    assert made[1].name == "none"


# ---- figures ----


def text(name: str, kind: str, tokens: int, extra: float, lost: int = 0, forbidden: int = 0) -> TextCosts:
    return TextCosts(
        name, kind, tokens, 2.0 * tokens, tokens // 2, {"none": Cost(), "lz": Cost(extra, 3, lost, forbidden)}
    )


def made_costs(*texts: TextCosts) -> Costs:
    charges = (
        Charge("none", "none", 0.0, Params(), ("T=0", "T=1")),
        Charge("lz", "lz-rate", 0.1, Params(lz_penalty=0.1), ("T=0 lz", "T=1 lz")),
    )
    return Costs(charges, texts, 64, "model.gguf", "grid")


def test_figures() -> None:
    made = made_costs(text("a", "x", 100, 10.0, 5), text("b", "x", 300, 20.0), text("c", "y", 100, -1.0, 1))
    assert made.kinds == ("x", "y")
    lz = made.figures("lz")
    assert (lz.texts, lz.tokens) == (3, 500)
    assert lz.extra_nats == pytest.approx(29 / 500)
    assert lz.perplexity_ratio == pytest.approx(math.exp(29 / 500))
    assert lz.lost == pytest.approx(6 / 500)
    assert lz.first_without == 0.5
    assert lz.extra_interval is not None
    assert lz.extra_interval.low == pytest.approx(-0.01)  # the third text three times, in 1 of 27 draws
    assert lz.extra_interval.high == pytest.approx(0.1)
    assert lz.ratio_interval is not None
    assert lz.ratio_interval.high == pytest.approx(math.exp(0.1))
    assert made.figures("T=1 lz", "y").extra_nats == pytest.approx(-0.01)
    assert made.figures("lz", "y").extra_interval is None  # one text has none
    assert list(made.rates("cost", "lz").values()) == [lz.extra_nats]
    assert list(made.rates("lost", "x").values()) == [0.0, 5 / 400]
    assert list(made.rates("cost").items()) == [("none", 0.0), ("lz", lz.extra_nats)]
    with pytest.raises(ValueError, match="there is no kind z, only none, lz-rate, x, y"):
        made.rates("cost", "z")
    with pytest.raises(ValueError, match="there is no setting 'dry', only none, lz"):
        made.figures("dry")
    with pytest.raises(ValueError, match="there is no text of kind z"):
        made.figures("lz", "z")


def test_without_penalties_everything_is_exactly_nothing() -> None:
    made = made_costs(text("a", "x", 100, 10.0), text("b", "x", 300, 20.0)).figures("none")
    assert (made.extra_nats, made.perplexity_ratio, made.lost, made.forbidden) == (0, 1, 0, 0)
    assert made.extra_interval == (0, 0)
    assert made.ratio_interval == (1, 1)


def test_a_forbidden_token_is_infinite_in_words_and_null_in_json() -> None:
    made = made_costs(text("a", "x", 100, 10.0, forbidden=2), text("b", "y", 300, 20.0))
    lz = made.figures("lz")
    assert lz.extra_nats == math.inf
    assert lz.possible_nats == pytest.approx(30 / 398)
    assert lz.extra_interval is None
    assert "infinite (2 forbidden)" in costs_table(made, 110)
    row = made.to_json()["settings"][1]
    assert row["extra_nats"] is None
    assert row["forbidden"] == 2
    assert row["kinds"]["y"]["extra_nats"] == pytest.approx(20 / 300)
    assert json.loads(json.dumps(made.to_json(), allow_nan=False)) == made.to_json()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_the_table_fits(width: int) -> None:
    made = made_costs(*(text(f"t{i}", f"kind {i} \x1b[31m", 100, 10.0) for i in range(9)))
    table = costs_table(made, width)
    assert "\x1b" not in table
    head, rows = table.split("\n\n", 1)
    assert head.startswith("9 texts")
    lines = rows.splitlines()
    assert max(map(len, lines[:3])) <= width
    assert ("kind 8" in lines[0]) == (width == 200)
    assert ("more columns" in " ".join(rows.split())) == (width != 200)


def test_a_single_kind_takes_no_room_from_the_columns() -> None:
    made = made_costs(text("a", "x", 100, 10.0))
    alone = replace(made, charges=made.charges[1:])
    head = costs_table(alone, 58).split("\n\n", 1)[1].splitlines()[0].split()
    assert head == ["setting", "extra", "nats", "95", "%", "interval", "perplexity", "lost"]
    assert "kind" in costs_table(made, 200)


def test_the_front_against_all_pairs() -> None:
    rng = np.random.default_rng(5)
    points = [(round(float(a), 1), round(float(b), 1)) for a, b in rng.random((60, 2))]
    for (paid, gain), best in zip(points, front(points), strict=True):
        beaten = [(c, g) for c, g in points if c <= paid and g >= gain and (c, g) != (paid, gain)]
        assert best == (not beaten)
    assert front([]) == []
    assert front([(1, 1), (1, 1)]) == [True, True]


def test_ratios_have_the_intervals_of_means_in_clusters() -> None:
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 30, 200)
    values = [rng.normal(i % 5, 1, n) for i, n in enumerate(sizes)]
    one, two = bootstrap_ratios([[v.sum() for v in values], [2 * v.sum() for v in values]], sizes)
    means = []
    for _ in range(2000):
        drawn = rng.integers(0, 200, 200)
        means.append(np.concatenate([values[i] for i in drawn]).mean())
    low, high = np.quantile(means, [0.025, 0.975])
    assert abs(one.low - low) < 0.1 * (high - low)
    assert abs(one.high - high) < 0.1 * (high - low)
    assert two == pytest.approx((2 * one.low, 2 * one.high))
    assert bootstrap_ratios([[1.0, 1.0, 1.0]], [2, 2, 2]) == [(0.5, 0.5)]
    with pytest.raises(ValueError, match=r"sums and sizes must be float\[k, n\] and float\[n\], n at least 1"):
        bootstrap_ratios([[1.0]], [1, 2])


# ---- with a model ----

pytest.importorskip("llama_cpp")

from lzsampler import Model, Results, cost, evaluate  # noqa: E402 (needs llama_cpp)
from lzsampler.models import default_model, default_prompts  # noqa: E402

GRID = settings(
    Params(),
    Params(lz_rule="paper", lz_penalty=0.5, lz_window=48, lz_buffer=4),
    Params(repetition_penalty=1.3, frequency_penalty=0.2, penalty_window=40),
    Params(lz_rule="paper", lz_penalty=0.3, lz_window=64, lz_buffer=8, lz_formula="codelength", history="all"),
)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=512, n_threads=1, flash_attn=False) as opened:
        yield opened


def slowly(model: Model, params: Params, prompt: Sequence[int], tokens: Sequence[int], skip: int) -> dict[str, float]:
    """What `cost` computes, from tests/reference.py: every edit and every term of every softmax, one by one."""
    model.keep(0)
    sequence = [*prompt, *tokens]
    rows = model.decode_rows(sequence)
    sums = {"extra": 0.0, "nats": 0.0, "first": 0, "lost": 0, "tokens": 0}
    for i, token in enumerate(tokens):
        at = len(prompt) + i - 1  # the row that predicts it
        if i < skip or at < 0:
            continue
        row = rows[at].astype(np.float64)
        history = [*(prompt if params.history == "all" else []), *tokens[:i]]
        changed = row.copy()
        for other, edit in reference.edits(history, model.n_vocab, params).items():
            changed[other] = reference.apply_edit(edit, row[other], params.sign_aware)
        before, after = (x[token] - np.logaddexp.reduce(x) for x in (row, changed))
        sums["tokens"] += 1
        sums["nats"] -= before
        sums["extra"] += before - after
        sums["first"] += int(changed.argmax() == token)
        sums["lost"] += int(row.argmax() == token != changed.argmax())
    return sums


def check(found: TextCosts, name: str, slow: dict[str, float]) -> None:
    cost = found.costs[name]
    assert found.tokens == slow["tokens"]
    assert found.nats == pytest.approx(slow["nats"], rel=1e-9)
    assert cost.extra == pytest.approx(slow["extra"], rel=1e-5, abs=1e-9)  # edits are float32 in the sampler
    assert (cost.first, cost.lost) == (slow["first"], slow["lost"])


def test_a_text_against_the_slow_way(model: Model, write: Callable[[str, bytes], Path]) -> None:
    path = write("text.txt", (PROSE + PROSE[:300]).encode())
    made = cost(default_model(), path, grid=GRID, skip=10, n_ctx=512, n_threads=1)
    tokens = model.llm.tokenize(path.read_bytes(), add_bos=False)
    for i, setting in enumerate(GRID.settings):
        slow = slowly(model, setting.params, [], tokens, 10)
        check(made.texts[0], f"number={i}", slow)
        assert bool(slow["lost"]) == bool(i)  # there is something to compare
    assert made.figures("number=0").extra_nats == 0
    assert made.texts[0].first == slowly(model, Params(), [], tokens, 10)["first"]


def test_what_the_assistant_said_is_scored_and_nothing_else(model: Model, write: Callable[[str, bytes], Path]) -> None:
    messages = [
        {"role": "user", "content": "Tell me of Barton."},
        {"role": "assistant", "content": PROSE[:200]},
        {"role": "user", "content": "And again?"},
        {"role": "assistant", "content": PROSE[:150]},
    ]
    path = write("chat.jsonl", json.dumps({"messages": messages}).encode())
    made = cost(default_model(), path, grid=GRID, skip=0, n_ctx=512, n_threads=1)
    (found,) = made.texts
    for i, setting in enumerate(GRID.settings):
        sums: dict[str, float] = {}
        for turn in (1, 3):
            prompt = model.tokenize(model.chat_prompt(messages[:turn]))
            tokens = model.llm.tokenize(messages[turn]["content"].encode(), add_bos=False)
            for name, value in slowly(model, setting.params, prompt, tokens, 0).items():
                sums[name] = sums.get(name, 0) + value
        check(found, f"number={i}", sums)


@pytest.mark.parametrize("n_ctx", [None, 128])
def test_the_parts_of_a_text_pay_what_all_of_it_pays(write: Callable[[str, bytes], Path], n_ctx: int | None) -> None:
    line = "He went into the garden and said that he was glad. "
    text = f"<think>\n{line * 6}</think>\n\n{line * 6}<tool_call>{line * 6}</tool_call>"
    scopes = ["thinking"], ["answer"], ["tool"]
    rows = "".join(f'[[setting]]\nlz_penalty = 0.3\nkind = "{s[0]}"\npenalty_scope = {s}\n' for s in scopes)
    grid = write("grid.toml", f'[[setting]]\nkind = "all"\nlz_penalty = 0.3\n{rows}'.encode())
    found = cost(default_model(), write("parts.txt", text.encode()), grid=grid, skip=0, n_ctx=n_ctx)
    assert [charge.kind for charge in found.charges] == ["all", "thinking", "answer", "tool"]
    whole, *parts = (found.figures(charge.name).extra_nats for charge in found.charges)
    assert min(parts) > 0.1
    assert sum(parts) == pytest.approx(whole, rel=1e-12)
    plain = cost(default_model(), write("plain.txt", (line * 6).encode()), grid=grid, skip=0)
    assert [plain.figures(charge.name).extra_nats > 0 for charge in plain.charges] == [True, False, True, False]
    assert plain.figures(plain.charges[1].name).extra_nats == 0


def test_a_long_text_is_cut_in_pieces_of_the_context(model: Model, write: Callable[[str, bytes], Path]) -> None:
    path = write("long.txt", (PROSE * 3).encode())
    tokens = model.llm.tokenize(path.read_bytes(), add_bos=False)
    made = cost(default_model(), path, grid=GRID, skip=16, n_ctx=128, n_threads=1)
    sums: dict[str, float] = {}
    for start in range(0, len(tokens), 128):
        for name, value in slowly(model, GRID.settings[1].params, [], tokens[start : start + 128], 16).items():
            sums[name] = sums.get(name, 0) + value
    check(made.texts[0], "number=1", sums)
    short = cost(default_model(), path, grid=GRID, skip=16, max_tokens=50, n_ctx=128, n_threads=1)
    assert short.texts[0].tokens == 34


def test_batches_do_not_matter(write: Callable[[str, bytes], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("text.txt", PROSE.encode())
    whole = cost(default_model(), path, grid=GRID, skip=3, n_threads=1)
    monkeypatch.setattr("lzsampler.evaluation.cost._LEAST", 7)
    monkeypatch.setattr("lzsampler.evaluation.cost._MOST", 7)
    cut = cost(default_model(), path, grid=GRID, skip=3, n_threads=1)
    for a, b in zip(whole.texts, cut.texts, strict=True):
        assert a.tokens == b.tokens
        for name in a.costs:
            assert a.costs[name] == pytest.approx(b.costs[name], rel=1e-9, abs=1e-9)


def test_a_token_that_is_forbidden(model: Model, write: Callable[[str, bytes], Path]) -> None:
    tokens = model.llm.tokenize(PROSE.encode(), add_bos=False)
    forbidden = max(set(tokens), key=tokens.count)
    grid = settings(Params(), Params(logit_bias={forbidden: -math.inf}))
    made = cost(default_model(), write("text.txt", PROSE.encode()), grid=grid, skip=5, n_threads=1)
    figures = made.figures("number=1")
    assert figures.extra_nats == math.inf
    assert figures.forbidden == tokens[5:].count(forbidden)
    assert figures.possible_nats < 0  # the others share its probability
    assert "forbidden" in costs_table(made, 110)


def test_short_texts_are_counted_and_nothing_to_score_is_an_error(write: Callable[[str, bytes], Path]) -> None:
    short, long = write("a/short.txt", b"Too short."), write("a/long.txt", PROSE.encode())
    made = cost(default_model(), short.parent, grid=GRID, n_threads=1)
    assert (len(made.texts), made.short) == (1, 1)
    assert made.texts[0].name == str(long)
    with pytest.raises(ValueError, match="no text is longer than the 64 tokens that are left out"):
        cost(default_model(), short, grid=GRID, n_threads=1)
    with pytest.raises(ValueError, match=r"there is no text to score: .*it is empty"):
        cost(default_model(), write("none.txt", b""), grid=GRID)
    with pytest.raises(ValueError, match=r"none\.txt: it is empty \(and 1 other that cannot be read or scored\)"):
        cost(default_model(), [write("none.txt", b""), write("bad.bin", b"\0")], grid=GRID)
    with pytest.raises(TypeError, match="a grid must be a Grid, the name of one or a TOML file, got 5"):
        cost(default_model(), long, grid=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="skip must be from 0"):
        cost(default_model(), short, skip=-1)
    with pytest.raises(ValueError, match="does not fit"):
        cost(default_model(), long, grid=settings(Params(exempt=(10**6,), lz_penalty=0.1)), n_threads=1)


def test_a_conversation_that_leaves_no_room_is_named_and_the_others_go_on(write: Callable[[str, bytes], Path]) -> None:
    rows = [{"prompt": PROSE * 3, "answer": PROSE}, {"prompt": "Begin.", "answer": PROSE}]
    path = write("tasks.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    made = cost(default_model(), path, grid=GRID, n_ctx=128, n_threads=1)
    assert [each.name for each in made.texts] == [f"{path}:2"]
    said = r"it needs a context of at least \d+ tokens, \d+ of them for what it answers, and this one has 128: enlarge"
    assert re.match(said, made.bad[0].reason)
    assert made.bad[0].file == f"{path}:1"


def test_ctrl_c_returns_what_was_scored(write: Callable[[str, bytes], Path]) -> None:
    path = write("text.txt", (PROSE * 6).encode())
    whole = cost(default_model(), path, grid=GRID, n_threads=1)

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    made = cost(default_model(), path, grid=GRID, n_threads=1, on_progress=stop)
    assert made.interrupted
    assert 0 < made.texts[0].tokens < whole.texts[0].tokens
    assert set(made.texts[0].costs) == {f"number={i}" for i in range(4)}

    def at_once(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cost(default_model(), path, grid=GRID, n_threads=1, on_progress=at_once)


# ---- in an evaluation ----

EVALUATION: dict[str, Any] = {
    "prompts": default_prompts(), "limit": 2, "n_ctx": 256, "n_threads": 1, "n_parallel": 2, "flash_attn": False,
    "grid": Grid("small", (
        Setting("none", "none", Params(temperature=0.0)), Setting("warm", "none", Params(temperature=0.9)),
        Setting("lz", "lz-rate", Params(temperature=0.0, lz_penalty=0.15), 0.15),
        Setting("warm lz", "lz-rate", Params(temperature=0.9, lz_penalty=0.15), 0.15),
    ), max_tokens=120),
}  # fmt: skip


@pytest.fixture
def right(write: Callable[[str, bytes], Path], tmp_path: Path) -> Path:
    write("right/prose/a.txt", PROSE.encode())
    write("right/prose/b.txt", PROSE[100:].encode())
    write("right/c.json", json.dumps([{"id": i, "name": PROSE[i : i + 9]} for i in range(20)]).encode())
    write("right/bad.bin", b"\0")
    return tmp_path / "right"


def test_the_cost_of_an_evaluation_is_kept_and_resumed(right: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = evaluate(default_model(), out, texts=right, **EVALUATION)
    alone = cost(default_model(), right, grid=EVALUATION["grid"], n_ctx=256, n_threads=1)
    assert results.costs is not None
    assert results.costs.texts == alone.texts
    assert results.costs.to_json() == {**alone.to_json(), "bad_files": []}
    assert results.bad["texts"][0].reason == f"{right / 'bad.bin'}: it is not a text: byte 0 is zero"
    assert results.to_json()["costs"]["settings"][1]["settings"] == ["lz", "warm lz"]
    assert Results.read(out).costs == results.costs
    kept = {name: (out / name).read_bytes() for name in ("costs.jsonl", "results.json", "transcripts.jsonl")}
    lines = kept["costs.jsonl"].splitlines(keepends=True)
    assert len(lines) == 3
    for left in (lines[2] + lines[0][:40], b"", b"garbage\n" + lines[1], b"".join(lines)):
        (out / "costs.jsonl").write_bytes(left)
        evaluate(default_model(), out, texts=right, resume=True, **EVALUATION)
        assert {name: (out / name).read_bytes() for name in kept} == kept
    (right / "prose" / "b.txt").write_text(PROSE[50:])
    changed = evaluate(default_model(), out, texts=right, resume=True, **EVALUATION)
    new = (out / "costs.jsonl").read_bytes().splitlines(keepends=True)
    assert [a == b for a, b in zip(new, lines, strict=True)] == [True, True, False]
    without = evaluate(default_model(), out, resume=True, **EVALUATION)
    assert without.costs == changed.costs


def test_a_folder_begun_without_texts_gets_them_later(right: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert evaluate(default_model(), out, **EVALUATION).costs is None
    later = evaluate(default_model(), out, texts=right, resume=True, **EVALUATION)
    assert later.costs is not None
    save(later, out / "report.html")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "The cost on reference texts" in page
    with pytest.raises(ValueError, match="there is no text to score"):
        evaluate(default_model(), tmp_path / "other", texts=right / "bad.bin", **EVALUATION)
    assert not (tmp_path / "other").exists()


# ---- reports ----


def made_up(
    path: Path, costs: dict[str, float], loops: dict[str, int], kinds: Sequence[str] = ("lz <b>",) * 3
) -> Results:
    """A run of ten prompts, of which `loops` says how many loop with each setting, and the cost of its penalties."""
    settings = [Setting("none", "none", Params(temperature=0.0))]
    for kind, x in zip(kinds, (0.1, 0.2, 0.3), strict=True):
        settings.append(Setting(f"lz={x:g}", kind, Params(temperature=0.0, lz_penalty=x), x))
    of = Grid("made up", tuple(settings))
    folder = write_run(
        path,
        of,
        (
            transcript(setting, f"p{i}", 1, LOOP if i < loops[setting.name] else f"Text {i}.")
            for setting in settings
            for i in range(10)
        ),
    )
    lines = [
        TextCosts(
            f"t{i}",
            f"<i>kind {i % 2}",
            100,
            150.0,
            40,
            {name: Cost(100 * x, 39, 1, int(x < 0)) for name, x in costs.items()},
        )
        for i in range(4)
    ]
    rows = [json.dumps({**line.to_json(), "digest": "0", "skip": 64}) + "\n" for line in lines]
    (folder / "costs.jsonl").write_text("".join(rows), encoding="utf-8")
    return Results.read(folder)


COSTS = {"none": 0.0, "lz=0.1": 0.02, "lz=0.2": 0.05, "lz=0.3": 0.04}
LOOPS = {"none": 8, "lz=0.1": 4, "lz=0.2": 2, "lz=0.3": 2}


def test_loops_stopped_against_their_cost(tmp_path: Path) -> None:
    results = made_up(tmp_path / "run", COSTS, LOOPS)
    assert [(t.name, t.cost, t.stopped, t.best) for t in results.tradeoffs] == [
        ("none", 0.0, 0.0, True),
        ("lz=0.1", pytest.approx(0.02), 0.5, True),
        ("lz=0.2", pytest.approx(0.05), 0.75, False),
        ("lz=0.3", pytest.approx(0.04), 0.75, True),
    ]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in markdown_table(results).splitlines()]
    assert rows[0][-3:] == ["cost", "lost", "front"]
    assert [row[-1] for row in rows[2:]] == ["yes", "yes", "", "yes"]
    assert [row[-3] for row in rows[2:]] == [
        f"{cost} ({cost} to {cost})"
        for cost in ("0", "+0.020", "+0.050", "+0.040")  # all texts cost the same
    ]
    assert [t["best"] for t in results.to_json()["tradeoffs"]] == [True, True, False, True]


def test_the_report_shows_the_front_and_nothing_gets_out_of_its_place(tmp_path: Path) -> None:
    results = made_up(tmp_path / "run", COSTS, LOOPS)
    save(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    chart = page[page.index("Loops stopped against their cost") :].partition("</section>")[0]
    assert chart.count('class="dot literal"') == 2
    assert chart.count('class="dot loop"') == 1
    assert chart.count('class="dot none"') == 1
    assert chart.count('class="trend literal"') == 2
    assert "lz=0.3: +0.040 nats a token, 75.0 % of the loops stopped" in chart
    assert "<i>kind" not in page
    assert "&lt;i&gt;kind 0" in page


def test_of_kinds_with_as_few_loops_the_report_names_the_one_with_the_lowest_cost(tmp_path: Path) -> None:
    save(made_up(tmp_path / "run", COSTS, LOOPS, ("a", "b", "c")), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "loop, without a penalty and with c 0.3<" in page
    dearer = {**COSTS, "lz=0.3": 0.06}
    save(made_up(tmp_path / "other", dearer, LOOPS, ("a", "b", "c")), tmp_path / "report.html")
    assert "loop, without a penalty and with b 0.2<" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("costs", "loops", "n"),
    [(COSTS, dict.fromkeys(LOOPS, 0), 0), ({**COSTS, "lz=0.2": -1.0}, LOOPS, 3), (COSTS, {**LOOPS, "lz=0.2": 10}, 4)],
)
def test_without_loops_there_is_no_chart_and_infinite_costs_are_not_on_it(
    tmp_path: Path, costs: dict[str, float], loops: dict[str, int], n: int
) -> None:
    results = made_up(tmp_path / "run", costs, loops)
    assert len(results.tradeoffs) == n
    save(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ("Loops stopped against their cost" in page) == bool(n)
    assert "The cost on reference texts" in page
    assert json.loads(json.dumps(results.to_json(), allow_nan=False))


def test_the_page_of_a_cost(tmp_path: Path) -> None:
    made = made_costs(
        text("a", "<b>x", 100, 10.0, 5), text("b", "<b>x", 300, 20.0, forbidden=1), text("c", "y", 100, -1.0)
    )
    save(made, tmp_path / "cost.html")
    page = (tmp_path / "cost.html").read_text(encoding="utf-8")
    assert "<b>x" not in page
    assert "infinite (1 forbidden)" in page
    save(made, tmp_path / "cost.json")
    assert json.loads((tmp_path / "cost.json").read_text()) == made.to_json()
    with pytest.raises(ValueError, match=r"its name must end in one of .html, .json"):
        save(made, tmp_path / "cost.csv")


def test_damaged_lines_of_the_cost_are_left_out(tmp_path: Path) -> None:
    made_up(tmp_path / "run", COSTS, LOOPS)
    file = tmp_path / "run" / "costs.jsonl"
    first, *rest = file.read_text().splitlines(keepends=True)
    damaged = ['{"text": 1}\n', "[]\n", "[" * 9999 + "\n", first.replace('"lz=0.1"', '"other"'), *rest]
    row = json.loads(first)
    cost = row["costs"]["lz=0.1"]
    numbers: list[dict[str, Any]] = [{"tokens": -1}, {"nats": math.nan}, {"nats": -1.0}, {"first": row["tokens"] + 1}]
    for wrong in [*numbers, {"tokens": 100.5}, {"tokens": 10**18}, {"kind": [-1]}, {"kind": ""}, {"text": None}]:
        damaged.append(json.dumps({**row, **wrong}) + "\n")
    for values in (
        [math.inf, *cost[1:]],
        [cost[0], -1, *cost[2:]],
        cost[:3],
        ["1", *cost[1:]],
        [-1e300, *cost[1:]],
        [1, 1, 1, 1.5],
    ):
        damaged.append(json.dumps({**row, "costs": {**row["costs"], "lz=0.1": values}}) + "\n")
    file.write_text("".join(damaged))
    found = Results.read(tmp_path / "run").costs
    assert found is not None
    assert [each.name for each in found.texts] == ["t1", "t2", "t3"]
    file.write_text("")
    assert Results.read(tmp_path / "run").costs is None
