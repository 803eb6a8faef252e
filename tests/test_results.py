"""`Results`: rates, comparisons with no penalty, the strengths that are chosen, timings, samples, what is written."""

import json
import random
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import CensoredData, binomtest, ecdf

import reference_audit as twin
import runs
from lzsampler import LzsError, Params, Results, save
from lzsampler.errors import ArgumentError, MissingExtra
from lzsampler.evaluation.counts import Outcome
from lzsampler.evaluation.first_loop import first_loop
from lzsampler.evaluation.grid import Grid, Setting, paper
from lzsampler.evaluation.judged import Judged, read_judged
from lzsampler.evaluation.run_folder import JUDGED, TIMINGS, TRANSCRIPTS, RunFolder
from lzsampler.evaluation.shown_texts import LOOPING_SAMPLES, OTHER_SAMPLES
from lzsampler.reports.eval_markdown import markdown_table, more
from lzsampler.util.clustered import paired_difference
from lzsampler.util.stats import agreement

NONE, WEAK, STRONG = (
    Setting("T=0", "none", Params(temperature=0.0)),
    Setting("T=0 lz=0.1", "lz", Params(temperature=0.0, lz_penalty=0.1), 0.1),
    Setting("T=0 lz=0.2", "lz", Params(temperature=0.0, lz_penalty=0.2), 0.2),
)
SMALL = Grid("small", (NONE, WEAK, STRONG), (1, 2), 100)


def outcomes(setting: Setting, loops: str, rights: str, **more_: Any) -> list[Outcome]:
    """Texts of prompts 0, 1, ..., two seeds each, from strings of 1 and 0; "-" is a text without an answer."""
    return [
        Outcome(setting.name, f"p{i // 2}", 1 + i % 2, "sort" if i % 4 < 2 else "add", loop == "1",
                None if right == "-" else right == "1", 10, 5 if loop == "1" else 0, **more_)
        for i, (loop, right) in enumerate(zip(loops, rights, strict=True))
    ]  # fmt: skip


@pytest.fixture
def small() -> Results:
    return Results(
        SMALL,
        [
            *outcomes(NONE, "11110000", "1111110-"),
            *outcomes(WEAK, "10000001", "1111100-"),
            *outcomes(STRONG, "00000000", "0000000-"),
        ],
        "m.gguf",
    )


def test_counts_and_rates(small: Results) -> None:
    none = small.counts(kind="none")
    assert (none.texts, none.looping, none.answered, none.right) == (8, 4, 7, 6)
    assert (none.tokens, none.wasted_tokens, none.wasted_share) == (80, 20, 0.25)
    assert none.loop_rate == 0.5
    assert none.accuracy == 6 / 7
    expected = binomtest(6, 7).proportion_ci(method="wilson")
    assert none.accuracy_interval == pytest.approx((expected.low, expected.high))
    assert (none.sampling_share, none.sampling_microseconds) == (None, None)
    assert (none.answered_looping, none.right_looping) == (4, 4)
    wrong = Results(SMALL, outcomes(NONE, "1110", "10-0")).counts(kind="none")
    assert (wrong.looping, wrong.answered_looping, wrong.right_looping) == (3, 2, 1)
    both = small.counts(kind="lz", task="sort")
    assert (both.texts, both.looping, both.right) == (8, 1, 3)
    several = small.counts(name=(NONE.name, WEAK.name))
    assert (several.texts, several.looping) == (16, 6)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ({"kind": "dry"}, "the grid has no kind dry, only none, lz"),
        ({"kind": "lz", "temperature": 0.5}, "the grid has no setting of kind lz with temperature 0.5, only 0"),
        ({"name": "foo"}, "the grid has no setting with name foo, only T=0, T=0 lz=0.1, T=0 lz=0.2"),
        ({"strength": 0.1, "temperature": 5}, "the grid has no setting with strength 0.1 with temperature 5, only 0"),
        ({"kind": "lz", "strength": 0}, "the grid has no setting of kind lz with strength 0, only 0.1, 0.2"),
    ],
)
def test_a_selection_of_nothing_names_what_there_is(small: Results, which: dict[str, Any], message: str) -> None:
    """No texts were a loop rate of 0."""
    for selected in (small.counts, small.settings, small.spread, small.first_loops, small.compare):
        with pytest.raises(ArgumentError) as raised:
            selected(**which)
        assert str(raised.value) == message
    for by_task in (small.counts, small.compare):
        with pytest.raises(ArgumentError, match="no text has the task sotr, only sort, add"):
            by_task(task="sotr")
    long = Results(paper(), ())
    with pytest.raises(ArgumentError, match=r"only T=0, .* and 100 more$"):
        long.counts(name="foo")


def test_pairs_are_counted_by_hand(small: Results) -> None:
    weak = small.comparisons[WEAK.name]
    assert (weak.pairs, weak.newly, weak.cured, weak.answered, weak.gained, weak.lost) == (8, 1, 3, 7, 0, 1)
    assert weak.loop_p == pytest.approx(binomtest(1, 4).pvalue)
    assert weak.accuracy_p == 1.0
    assert weak.loop_difference == -2 / 8
    assert weak.accuracy_difference == -1 / 7
    assert (weak.stuck, weak.stuck_right_none, weak.stuck_right) == (4, 4, 4)
    won = Results(SMALL, [*outcomes(NONE, "11110000", "10100-00"), *outcomes(WEAK, "00001111", "111-1111")])
    paired = won.comparisons[WEAK.name]
    assert (paired.stuck, paired.stuck_right_none, paired.stuck_right) == (3, 2, 3)
    assert NONE.name not in small.comparisons
    pooled = small.compare(kind="lz")
    assert pooled is not None
    assert (pooled.pairs, pooled.newly, pooled.cured, pooled.lost) == (16, 1, 7, 7)


def test_intervals_of_differences_take_prompts_as_clusters(small: Results) -> None:
    weak = small.comparisons[WEAK.name]
    assert weak.loop_interval == paired_difference([0, 0, 0, 1], [1, 2, 0, 0], [2, 2, 2, 2])
    assert weak.accuracy_interval == paired_difference([0, 0, 0, 0], [0, 0, 1, 0], [2, 2, 2, 1])


def test_the_interval_of_few_pairs_that_do_not_differ_has_a_width() -> None:
    """The bootstrap's was 0 to 0."""
    made = Results(SMALL, [*outcomes(NONE, "0000", "1111"), *outcomes(WEAK, "0000", "1111")])
    paired = made.comparisons[WEAK.name]
    assert paired.accuracy_interval is not None
    for interval in (paired.loop_interval, paired.accuracy_interval):
        assert interval.low == -interval.high < -0.5


def test_the_baseline_draws_as_the_setting_does() -> None:
    cut = Setting("T=1 top_k=40", "none", Params(temperature=1.0, top_k=40))
    warm = Setting("T=1", "none", Params(temperature=1.0))
    lz = Setting("T=1 lz", "lz", Params(temperature=1.0, top_k=40, lz_penalty=0.1), 0.1)
    cold = Setting("T=0 lz", "lz", Params(temperature=0.0, lz_penalty=0.1), 0.1)
    made = Results(Grid("g", (warm, cut, lz, cold)), outcomes(lz, "00", "11") + outcomes(cut, "11", "11"))
    assert made.against(lz) is cut
    assert made.against(cold) is made.against(warm) is None
    assert list(made.comparisons) == [lz.name]
    assert made.comparisons[lz.name].cured == 2
    assert made.compare(kind="none") is None


@pytest.mark.parametrize("other", [{"ties": "keep"}, {"temperature_last": True}, {"min_p": 0.1}])
def test_a_setting_that_draws_otherwise_is_not_a_baseline(other: dict[str, Any]) -> None:
    draws: dict[str, Any] = {"temperature": 0.6, "top_k": 40}
    none = Setting("none", "none", Params(**draws))
    same = Setting("same", "lz", Params(**draws, lz_penalty=0.1), 0.1)
    changed = Setting("changed", "lz", Params(**{**draws, **other}, lz_penalty=0.1), 0.1)
    made = Results(Grid("g", (none, same, changed)), ())
    assert made.against(same) is none
    assert made.against(changed) is None


def test_the_chosen_strength_cures_most_and_loses_nothing(small: Results) -> None:
    large = Results(SMALL, [*outcomes(NONE, "1100" * 8, "1110" * 8), *outcomes(WEAK, "1000" * 8, "1110" * 8),
                            *outcomes(STRONG, "0000" * 8, "0010" * 8)])  # fmt: skip
    assert large.chosen == {"none": 0.0, "lz": 0.1}  # 0.2 has no loops and few right answers
    assert small.chosen["lz"] == 0.2  # four prompts say too little of the answers that are lost
    cured = Results(SMALL, [*outcomes(NONE, "11110000", "11111111"), *outcomes(WEAK, "11000000", "11111111"),
                            *outcomes(STRONG, "00000000", "11111110")])  # fmt: skip
    assert cured.chosen["lz"] == 0.2
    losing = Results(SMALL, [*outcomes(NONE, "0" * 8, "1" * 8), *outcomes(WEAK, "0" * 8, "00000011"),
                             *outcomes(STRONG, "0" * 8, "0" * 8)])  # fmt: skip
    assert losing.chosen["lz"] == 0.1
    alike = Results(SMALL, [*outcomes(NONE, "0" * 4, "-" * 4), *outcomes(WEAK, "0" * 4, "-" * 4),
                            *outcomes(STRONG, "0" * 4, "-" * 4)])  # fmt: skip
    assert alike.chosen["lz"] == 0.1


def test_kinds_are_ranked_against_no_penalty_at_their_own_temperatures() -> None:
    """A kind at T=0 only, where half of the texts loop, was ranked beside one at 0.6, too, where none does."""
    warm = Setting("T=0.6", "none", Params(temperature=0.6))
    cold_dry = Setting("T=0 dry", "dry", Params(temperature=0.0, dry_multiplier=0.8), 0.8)
    lz = [Setting(f"T={t:g} lz", "lz", Params(temperature=t, lz_penalty=0.2), 0.2) for t in (0.0, 0.6)]
    grid = Grid("g", (NONE, warm, cold_dry, *lz), (1, 2), 100)

    def best(dry: tuple[str, str], *of_lz: tuple[str, str]) -> str | None:
        texts = [*outcomes(NONE, "11110000", "11111110"), *outcomes(warm, "00000000", "11111111")]
        rows = zip((cold_dry, *lz), (dry, *of_lz), strict=True)
        return Results(grid, texts + [text for setting, row in rows for text in outcomes(setting, *row)]).best

    calm, all_right, most_right = "0" * 8, "1" * 8, "11111110"
    assert best((calm, "11111100"), (calm, most_right), (calm, all_right)) == "lz"  # both stop all, and dry is wrong
    assert best((calm, most_right), (calm, most_right), (calm, "11111100")) == "dry"
    # One of 8 loops against one of 16: each is a quarter of those without a penalty, and the first of the grid wins.
    assert best(("10000000", most_right), ("10000000", most_right), (calm, all_right)) == "dry"
    assert Results(grid, outcomes(NONE, calm, all_right)).best is None
    alone = Results(Grid("g", (warm, cold_dry, lz[1])), [
        *outcomes(warm, "11110000", all_right), *outcomes(cold_dry, calm, all_right),
        *outcomes(lz[1], "11000000", all_right),
    ])  # fmt: skip
    assert alone.best == "lz"  # dry is compared with nothing


# ---- the terms of other work ----


def test_how_texts_ended_is_kept_apart() -> None:
    ends = [("length", True), ("context", True), ("length", False), ("stop", True), ("stop", False), ("stop", False),
            ("repetition", True), ("interrupted", False)]  # fmt: skip
    texts = [Outcome(NONE.name, f"p{i}", 1, "", loops, None, 10, 0, finish=end) for i, (end, loops) in enumerate(ends)]
    counts = Results(SMALL, texts).counts(kind="none")
    assert (counts.capped, counts.capped_looping, counts.ended, counts.ended_looping) == (3, 2, 3, 1)
    assert (counts.capped_share, counts.capped_loop_rate, counts.ended_loop_rate) == (3 / 8, 2 / 3, 1 / 3)
    empty = Results(SMALL, ()).counts(kind="none")
    assert (empty.capped_loop_rate, empty.ended_loop_rate, empty.ser4, empty.tail_rep4) == (None, None, None, 0.0)


def test_figures_of_a_text_are_those_of_its_tokens(tmp_path: Path) -> None:
    setting = runs.grid().settings[0]
    made = [runs.transcript(setting, "p", 1, "?"), runs.transcript(setting, "q", 1, "?")]
    made[0]["tokens"] = [*range(600), *[7, 8] * 40]
    made[1]["tokens"] = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 9]
    slow = [twin.token_figures(row["tokens"]) for row in made]
    results = Results.read(runs.write_run(tmp_path / "run", runs.grid(), made))
    counts, (first, second) = results.counts(), results.outcomes
    assert (first.frequent, second.frequent, counts.frequent_rate) == (True, False, 0.5)
    tails = [twin.share(f.tail_grams - f.tail_distinct, f.tail_grams) for f in slow]
    assert counts.tail_rep4 == pytest.approx(sum(tails) / 2)
    assert counts.rep4 == pytest.approx(sum(twin.share(f.grams - f.distinct, f.grams) for f in slow) / 2)
    assert counts.ser4 == sum(f.extended for f in slow) / sum(f.extensible for f in slow)


@pytest.mark.parametrize("tokens", [[-1], [0.5], ["a"], [2**31], [[1]], None, "abc", {"a": 1}, [10**400]])
def test_tokens_that_are_none_are_damage(tmp_path: Path, tokens: Any) -> None:
    made = runs.transcript(runs.grid().settings[0], "p", 1, "Fine.")
    made["tokens"] = tokens
    results = Results.read(runs.write_run(tmp_path / "run", runs.grid(), [made]))
    assert [row.line for row in results.bad["transcripts"]] == [1]


@pytest.mark.parametrize("seed", range(30))
def test_first_loops_are_those_of_the_twin_and_of_scipy(seed: int) -> None:
    rng = random.Random(seed)
    texts = [(rng.randrange(rng.choice((1, 5, 200))), rng.random() < 0.5) for _ in range(rng.randrange(1, 40))]
    found = first_loop(texts)
    for tokens in (0, 1, 2, 50, found.longest):
        assert found.free(tokens) == pytest.approx(twin.free_of_loops(texts, tokens))
    sample = CensoredData.right_censored([at for at, _ in texts], [not loops for _, loops in texts])
    curve = ecdf(sample).sf
    assert [found.free(int(at)) for at in curve.quantiles] == pytest.approx(list(curve.probabilities))
    places = [at for at, loops in texts if loops]
    assert found.median_of_looping == (np.median(places) if places else None)
    half = [at for at in range(found.longest + 1) if twin.free_of_loops(texts, at) <= 0.5 + 1e-12]
    assert found.median == (half[0] if half else None) or found.free(half[0]) == pytest.approx(0.5)


def test_first_loops_by_hand() -> None:
    """Of four texts one ends at 10, one loops from 20 on, one from 40 on, one is 100 long."""
    found = first_loop([(10, False), (20, True), (40, True), (100, False)])
    assert [place for place, _ in found.curve] == [20, 40]
    assert [share for _, share in found.curve] == pytest.approx([2 / 3, 1 / 3])
    assert (found.looping, found.median_of_looping, found.median, found.longest) == (2, 30.0, 40, 100)
    assert found.to_json()["free"] == [[64, pytest.approx(1 / 3)], [100, pytest.approx(1 / 3)]]
    assert first_loop([]).to_json() == {"median_of_looping": None, "median": None, "free": []}


def test_where_a_loop_begins_is_in_tokens(tmp_path: Path) -> None:
    setting = runs.grid().settings[0]
    before = "one two three four five six seven eight nine ten eleven: "
    made = runs.transcript(setting, "p", 1, before + "and on " * 50)
    made["usage"]["completion_tokens"] = size = len(before) + 350  # one a character
    thought = runs.transcript(setting, "q", 1, "and on " * 50)
    thought["messages"][-1]["reasoning_content"], thought["usage"]["completion_tokens"] = before, size
    across = runs.transcript(setting, "r", 1, "It ends.")
    across["repetition"] |= {"loops": True, "run": {"start": 3}}
    unknown = runs.transcript(setting, "s", 1, "It ends.")
    unknown["repetition"]["loops"] = True
    results = Results.read(runs.write_run(tmp_path / "run", runs.grid(), [made, thought, across, unknown]))
    places = [outcome.first_loop for outcome in results.outcomes]
    assert places[0] == pytest.approx(len(before), abs=1)
    assert places[1] == len(before)
    assert places[2:] == [3 * across["usage"]["completion_tokens"] // 8, None]
    assert results.first_loops().looping == 3
    assert results.counts().looping == 4


def test_deviations_over_seeds_by_hand() -> None:
    warm = Setting("T=1", "none", Params(temperature=1.0))
    grid = Grid("g", (NONE, warm), (1, 2, 3))
    texts = [Outcome(NONE.name, f"p{i}", 1, "", i == 0, i != 3, 10, 0) for i in range(4)]
    loops = {1: "1100", 2: "0000", 3: "0001"}
    texts += [Outcome(warm.name, f"p{i}", seed, "", loop == "1", None, 10, 0)
              for seed, row in loops.items() for i, loop in enumerate(row)]  # fmt: skip
    made = Results(grid, texts)
    assert made.spread(name=NONE.name) == (None, None)  # one text would come five times
    alone = made.spread(name=warm.name)
    assert alone.loop_rate == pytest.approx(np.std([0.5, 0.0, 0.25], ddof=1))
    assert alone.accuracy is None
    together = made.spread(kind="none")  # the greedy texts count for every seed
    assert together.loop_rate == pytest.approx(np.std([3 / 8, 1 / 8, 2 / 8], ddof=1))
    assert together.accuracy == 0.0
    assert Results(replace(grid, seeds=(1,)), texts[:8]).spread(name=warm.name) == (None, None)
    written = made.to_json()
    assert [row["loop_sd"] for row in written["settings"]] == [None, made.spread(name=warm.name).loop_rate]
    assert [line.split("|")[7].strip() for line in markdown_table(made).splitlines()[::2]] == [
        "accuracy, %",
        "75.0 (30.1 to 95.4)",
    ]
    assert [line.split("|")[6].strip() for line in markdown_table(made).splitlines()[2:]] == [
        "",
        "25.0",
    ]  # sd, in points


def test_tables_of_the_paper_fit_into_100_columns() -> None:
    grid = paper()
    texts = [
        Outcome(setting.name, "p", seed, "sort", True, seed > 2, 512, 400, finish="length", first_loop=100,
                rep4=0.5, tail_rep4=0.5, extensible=9, extended=8, frequent=True)
        for setting in grid.settings
        for seed in (grid.seeds[:1] if setting.params.temperature == 0 else grid.seeds)
    ]  # fmt: skip
    made = Results(grid, texts)
    for table in (markdown_table(made), markdown_table(made, terms=True)):
        assert {len(line) for line in table.splitlines()} == {len(table.splitlines()[0])}
        assert len(table.splitlines()[0]) <= 100
    cells = [cell.strip() for cell in markdown_table(made, terms=True).splitlines()[2].strip("|").split("|")]
    assert cells == ["none 0", "0", "1.000", "0.500", "0.889", "100", "1.000", "1.000", "0.000", "0.781"]


def test_results_json_is_what_the_object_says(small: Results, tmp_path: Path) -> None:
    save(small, tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())
    assert written == json.loads(json.dumps(small.to_json()))
    none, weak, _ = written["settings"]
    assert (none["name"], none["kind"], none["against_none"]) == ("T=0", "none", None)
    assert weak["loop_interval"] == list(small.counts(name=WEAK.name).loop_interval)
    assert weak["against_none"]["cured"] == 3
    assert weak["tasks"]["sort"]["right"] == small.counts(name=WEAK.name, task="sort").right
    assert written["kinds"]["lz"]["looping"] == 2
    assert [row["strength"] for row in written["chosen"]] == [0.0, 0.2]
    assert "seconds" not in json.dumps(written)
    with pytest.raises(ValueError, match=r"its name must end in one of \.html, \.json"):
        save(small, tmp_path / "r.csv")
    with pytest.raises(LzsError, match="cannot write"):
        save(small, tmp_path / "missing" / "r.html")


def test_every_key_is_in_the_docs(small: Results) -> None:
    page = (Path(__file__).parents[1] / "docs" / "evaluate.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)`", page.split("## results.json")[1]))
    written = small.to_json()
    setting = written["settings"][1]
    written["judge"] = Judged("judge.gguf", agreement([True], [False]), 0.5).to_json()
    keys = {
        *written,
        *written["judge"],
        *setting,
        *setting["against_none"],
        *written["chosen"][0],
        *written["kinds"]["lz"],
    }
    assert keys <= told


def test_overhead_is_that_of_the_texts_with_timings() -> None:
    timed = outcomes(WEAK, "00", "11", seconds=2.0, sampling_seconds=0.5)
    made = Results(SMALL, [*timed, *outcomes(WEAK, "0000", "1111")[2:], *outcomes(NONE, "00", "11")])
    counts = made.counts(kind="lz")
    assert counts.sampling_share == 0.25
    assert counts.sampling_microseconds == pytest.approx(1e6 * 1.0 / 20)
    assert made.counts(kind="none").sampling_share is None


def test_a_table_in_markdown(small: Results) -> None:
    head, rule, none, weak, strong = markdown_table(small).splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        "kind", "strength", "T", "texts", "loop rate, %", "accuracy of 7, %", "loop, right", "loop, wrong",
    ]  # fmt: skip
    assert set(rule) == set("|-:")
    assert len({len(line) for line in (head, rule, none, weak, strong)}) == 1
    cells = [cell.strip() for cell in none.strip("|").split("|")]
    assert cells == ["none", "0", "0", "8", "50.0 (21.5 to 78.5)", "85.7 (48.7 to 97.4)", "4", "0"]  # by scipy
    some = Results(
        SMALL, [*outcomes(NONE, "0000", "11--"), *outcomes(WEAK, "0000", "111-"), *outcomes(STRONG, "00", "11")]
    )
    assert "| accuracy of 2 to 3, % |" in markdown_table(some)
    assert "±" not in markdown_table(small) + markdown_table(small, terms=True)


def test_settings_alike_are_told_apart() -> None:
    pair = (
        Setting("T=0 lz_penalty=0.1 lz_window=64", "a|b", Params(temperature=0.0), 0.1),
        Setting("T=0 lz_penalty=0.1", "a|b", Params(temperature=0.0), 0.1),
        Setting("T=1 lz_penalty=0.1", "a|b", Params(temperature=1.0), 0.1),
    )
    assert list(more(pair).values()) == ["lz_window=64", "", ""]
    head, _, first, *_ = markdown_table(Results(Grid("g", pair), outcomes(pair[0], "0", "-"))).splitlines()
    assert head.split()[7] == "more"
    assert first.startswith("| a\\|b | 0.1      | 0 | lz_window=64 |     1 | 0 (0 to 79.3) |")


# ---- from a folder ----


def test_a_folder_without_timings_is_read(tmp_path: Path) -> None:
    grid = runs.grid()
    texts = [runs.transcript(s, "p", 1, runs.LOOP, task="sort", right=True) for s in grid.settings]
    folder = runs.write_run(tmp_path / "run", grid, texts)
    made = Results.read(folder)
    assert made.grid == grid
    assert made.counts().looping == len(grid.settings)
    assert made.counts().sampling_share is None
    half = {name: value for name, value in runs.timing(texts[1], 1.0, 1.0).items() if name != "decode_seconds"}
    known = [runs.timing(texts[0], 1.0, 3.0), {"setting": "?"}, half]
    (folder / TIMINGS).write_text("".join(json.dumps(row) + "\n" for row in known) + '{"setting')
    assert Results.read(folder).counts().sampling_share == 0.25
    assert Results.read(folder).to_json() == made.to_json()


def test_waste_is_in_tokens_of_the_text(tmp_path: Path) -> None:
    setting = runs.grid().settings[0]
    text = "An end without one. " * 30
    made = runs.transcript(setting, "p", 1, text)
    made["usage"]["completion_tokens"] = 300
    folder = runs.write_run(tmp_path / "run", runs.grid(), [made])
    assert Results.read(folder).counts().wasted_tokens == pytest.approx(300 * 29 / 30, abs=2)


def test_what_is_damaged_or_in_hand_is_left_out(tmp_path: Path) -> None:
    grid = runs.grid()
    good = runs.transcript(grid.settings[0], "p", 1, "Fine.")
    other = runs.transcript(Setting("T=9", "none", Params(temperature=0.0)), "p", 1, "Fine.")
    lacking = {name: value for name, value in good.items() if name != "usage"}
    folder = runs.write_run(tmp_path / "run", grid, [good, other, lacking])
    with (folder / TRANSCRIPTS).open("ab") as file:
        file.write(b'nonsense\n[1]\n{"eval": {"setting"')
    made = Results.read(folder)
    assert len(made.outcomes) == 1
    assert [row.line for row in made.bad["transcripts"]] == [2, 3, 4, 5]
    assert (folder / TRANSCRIPTS).read_bytes().endswith(b'{"eval": {"setting"')  # reading changes nothing


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(LzsError, match=r"cannot read .*run\.json"):
        Results.read(tmp_path)
    for content in ("{}", "[]", "{", '{"model": {"file": "m"}, "grid": {"settings": [{"params": 1}]}}'):
        (tmp_path / "run.json").write_text(content)
        with pytest.raises(LzsError, match=r"run\.json"):
            Results.read(tmp_path)


def test_samples_are_of_every_setting_and_bounded(tmp_path: Path) -> None:
    grid = runs.grid(("lz",), (0.0,))
    texts = [runs.transcript(s, f"p{i}", 1, f"{i} " + runs.LOOP + "z" * i) for s in grid.settings for i in range(150)]
    texts += [runs.transcript(s, f"q{i}", 1, "Fine.") for s in grid.settings for i in range(60)]
    samples = Results.read(runs.write_run(tmp_path / "run", grid, texts)).samples
    looping = [s.record for s in samples if s.record.looping]
    assert len(looping) <= LOOPING_SAMPLES
    assert {record.groups["setting"] for record in looping} == {setting.name for setting in grid.settings}
    others = [s.record for s in samples if not s.record.looping]
    assert 3 < len(others) <= OTHER_SAMPLES
    assert all(record.texts for record in others)


def test_a_judge_says_yes_above_one_half(tmp_path: Path) -> None:
    """docs/evaluate.md: more than .5; a verdict of exactly .5 says neither, and counts as no."""
    folder = RunFolder(tmp_path)
    verdicts = {"p0": 0.5, "p1": 0.501, "p2": 0.59, "p3": 0.61, "p4": 0.49}
    (tmp_path / JUDGED).write_text("".join(
        json.dumps({"setting": "s", "prompt": prompt, "seed": 1, "degenerate": degenerate, "answered": 1.0,
                    "text": "", "judge": {"file": "j.gguf"}}) + "\n"
        for prompt, degenerate in verdicts.items()
    ))  # fmt: skip
    judged = read_judged(folder, {("s", prompt, 1): False for prompt in verdicts})
    assert judged is not None
    assert judged.agreement == (0, 3, 0, 2)


def test_texts_as_a_data_frame(small: Results) -> None:
    pytest.importorskip("pandas")
    frame = small.to_pandas()
    assert list(frame.columns)[:6] == ["kind", "strength", "temperature", "setting", "prompt", "seed"]
    page = (Path(__file__).parents[1] / "docs" / "evaluate.md").read_text(encoding="utf-8")
    table = page.split("`to_pandas()` returns")[1].split("\n## ")[0]
    assert set(frame.columns) == set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    assert len(frame) == len(small.outcomes) == 24
    rates = frame.groupby("strength")["looping"].mean()
    assert {strength: rates[strength] for strength in (0.0, 0.1, 0.2)} == {0.0: 0.5, 0.1: 0.25, 0.2: 0.0}
    assert frame["right"].isna().sum() == sum(outcome.right is None for outcome in small.outcomes)


def test_a_data_frame_needs_pandas(small: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        small.to_pandas()
