"""The report of an evaluation: its figures are those of results.json, it is bounded, and hostile text does nothing."""

import html
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import runs
from audits import HOSTILE
from browsing import attacks, check_harmless, counting_server, dom
from lzsampler import LoopPolicy, Params, Results, save
from lzsampler.evaluation.grid import Grid, Setting
from lzsampler.evaluation.tasks import BadRow
from lzsampler.params import PENALTIES, PRESETS
from lzsampler.reports.charts import Cell, decline, ruler, trend
from lzsampler.reports.eval_markdown import markdown_table
from lzsampler.reports.page import environment
from lzsampler.reports.text import percent

TASKS = ("sort", "add")


def made_up(path: Path, *, timed: bool = True) -> Results:
    """Every fourth text loops without a penalty and none with one; the stronger one gets every sort wrong."""
    grid = runs.grid()
    texts, timings = [], []
    for setting in grid.settings:
        for i in range(16):
            loops = setting.kind == "none" and i % 4 == 0
            task = TASKS[i % 2]
            right = None if i >= 14 else not (setting.strength == 0.2 and task == "sort")
            text = f"Text {i}. " + (runs.LOOP if loops else "It ends.")
            texts.append(runs.transcript(setting, f"p{i // 2}", 1 + i % 2, text, task=task, right=right))
            timings.append(runs.timing(texts[-1], 0.25 if setting.kind == "none" else 1.0, 3.0))
    return Results.read(runs.write_run(path, grid, texts, timings if timed else ()))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return made_up(tmp_path / "run")


@pytest.fixture
def page(results: Results, tmp_path: Path) -> str:
    save(results, tmp_path / "r.html")
    return (tmp_path / "r.html").read_text(encoding="utf-8")


def static(page: str) -> str:
    """The markup without style, script and data."""
    return re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)


def text_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def data_of(page: str, name: str = "data") -> Any:
    match = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def section(page: str, heading: str) -> str:
    match = re.search(rf"<section[^>]*><h2>{heading}</h2>.*?</section>", page, re.DOTALL)
    assert match is not None
    return match[0]


def cells(row: str) -> list[str]:
    return [text_of(cell) for cell in re.findall(r"<t[dh][^>]*>.*?</t[dh]>", row, re.DOTALL)]


def test_figures_are_those_of_results_json(page: str, results: Results) -> None:
    written = json.loads(json.dumps(results.to_json()))
    settings = {(row["kind"], row["strength"], row["temperature"]): row for row in written["settings"]}
    seen = 0
    for block in re.findall(r"<details>.*?</details>", page, re.DOTALL):
        kind = text_of(re.findall(r"<summary><b>(.*?)</b>", block)[0])
        for row in re.findall(r"<tr.*?</tr>", block.split('class="heat"')[0], re.DOTALL)[1:]:
            strength, temperature, texts, loops, loop_sd, _, *paired = cells(row)
            if temperature == "all":
                pooled = results.compare(kind=kind, strength=float(strength))
                assert paired[:2] == (["–"] * 2 if pooled is None else [f"{pooled.newly}", f"{pooled.cured}"])
                continue
            shown_sd = [loop_sd, paired.pop(5)]  # of the loop rate and of the accuracy
            setting = settings[kind, float(strength), float(temperature)]
            assert int(texts) == setting["texts"]
            assert loops == percent(setting["loop_rate"])
            for deviation, sd in zip(shown_sd, (setting["loop_sd"], setting["accuracy_sd"]), strict=True):
                assert deviation == ("–" if sd is None else f"{100 * sd:.2g}")
                assert (sd is None) == (float(temperature) == 0)
            against = setting["against_none"]
            if against is None:
                assert paired[:4] == ["–"] * 4
            else:
                assert [int(n) for n in paired[:2]] == [against["newly"], against["cured"]]
                assert paired[2] == f"{against['loop_p']:.2g}"
                points = [100 * share for share in (against["loop_difference"], *against["loop_interval"])]
                shown = [float(n.replace("−", "-")) for n in re.findall(r"[−+]?\d+\.?\d*", paired[3])]
                assert shown == pytest.approx(points, abs=0.051)
                assert [int(n) for n in paired[5:7]] == [against["gained"], against["lost"]]
            assert paired[4] == percent(setting["accuracy"])
            seen += 1
    assert seen == len(written["settings"]) == 10
    best = section(page, "Each kind at its best strength")
    for row, chosen in zip(
        re.findall(r"<tr>.*?</tr>", best.split("<tfoot>")[0], re.DOTALL)[1:], written["chosen"], strict=True
    ):
        text = text_of(row)
        assert f"{percent(chosen['loop_rate'])} " in text
        assert f"{percent(chosen['accuracy'])} " in text
        assert f"to {percent(chosen['accuracy_interval'][1])}" in text


def test_the_terms_of_other_work_are_those_of_results_json(page: str, results: Results) -> None:
    rows = re.findall(r"<tr>.*?</tr>", section(page, "In the terms of other work"), re.DOTALL)[1:]
    for row, chosen in zip(rows, json.loads(json.dumps(results.to_json()))["chosen"], strict=True):
        names = ("frequent_30_gram_rate", "rep4", "tail_rep4", "ser4")
        shares = [*(chosen[name] for name in names), chosen["capped"] / chosen["texts"], chosen["capped_loop_rate"]]
        shares += [chosen["ended"] / chosen["texts"], chosen["ended_loop_rate"]]
        first = chosen["first_loop"]["median_of_looping"]
        shown = ["–" if share is None else percent(share) for share in shares]
        assert cells(row)[1:] == [*shown, "–" if first is None else f"{first:,.0f}"]
    assert percent(1.0) in rows[0]  # every made-up text hit the cap
    charts = section(page, "How long texts stay free of loops")
    assert "Share of texts without a loop so far, none: 75.0 % at" in charts
    assert charts.count("<figure>") == 2


def test_p_of_several_seeds_is_never_bold(tmp_path: Path) -> None:
    """McNemar's test treats the seeds of a prompt as independent, which they are not."""
    for seeds, bold in (((1,), True), ((1, 2), False)):
        grid = replace(runs.grid(("lz",), (0.6,)), seeds=seeds)
        texts = [
            runs.transcript(setting, f"p{i}", seed, runs.LOOP if setting.kind == "none" else "It ends.")
            for setting in grid.settings for i in range(20) for seed in seeds
        ]  # fmt: skip
        results = Results.read(runs.write_run(tmp_path / f"run{len(seeds)}", grid, texts))
        save(results, tmp_path / "r.html")
        made = static((tmp_path / "r.html").read_text(encoding="utf-8")).split('id="settings"')[1]
        assert ("<b>&lt;0.0001</b>" in made) == bold
        assert (">sd<" in made) == (len(seeds) > 1)


def test_the_head_says_that_texts_could_not_end(tmp_path: Path) -> None:
    for ignore_eos in (False, True):
        grid = replace(runs.grid(), ignore_eos=ignore_eos)
        save(Results.read(runs.write_run(tmp_path / f"run{ignore_eos}", grid, [])), tmp_path / "r.html")
        head = text_of(static((tmp_path / "r.html").read_text(encoding="utf-8")))
        assert ("at most 200 tokens each, with the end token forbidden" in head) == ignore_eos


def test_heat_maps_have_every_cell(page: str, results: Results) -> None:
    heats = section(page, "Strength and temperature")
    assert heats.count("<table") == 3
    for figure, kind in zip(re.findall(r"<figure>.*?</figure>", heats, re.DOTALL), results.kinds, strict=True):
        rows = [cells(row) for row in re.findall(r"<tr>.*?</tr>", figure, re.DOTALL)[2:]]
        for row, strength in zip(rows, results.strengths(kind), strict=True):
            counts = [results.counts(kind=kind, strength=strength, temperature=t) for t in results.temperatures]
            shown = [round(100 * c.loop_rate) for c in counts] + [round(100 * (c.accuracy or 0)) for c in counts]
            assert [float(row[0]), *map(float, row[1:])] == [strength, *shown]


def test_where_a_penalty_loses_is_told(page: str) -> None:
    rows = re.findall(r"<tr>.*?</tr>", section(page, "Which tasks a penalty loses"), re.DOTALL)
    assert cells(rows[0]) == ["kind, strength", *TASKS]
    assert cells(rows[1]) == ["none 0" if "none 0" in rows[1] else "none", "100", "100"]
    lz = next(block for block in re.findall(r"<details>.*?</details>", page, re.DOTALL) if "<b>lz</b>" in block)
    weak, strong = re.findall(r"<tr>.*?</tr>", lz.split('class="heat"')[1], re.DOTALL)[2:]
    assert cells(weak) == ["0.1", "100", "100"]
    assert cells(strong) == ["0.2", "0 −100", "100"]
    assert 'class="loop s10"' in strong


def test_loops_and_answers_are_told_on_the_same_texts(page: str, results: Results, tmp_path: Path) -> None:
    part = section(page, "Loops and answers")
    none, lz, _ = (cells(row) for row in re.findall(r"<tr>.*?</tr>", part.split('class="heat"')[0], re.DOTALL)[1:])
    assert none[1:] == ["28", "20", "0", "8", "0", "–", "–", "–"]
    assert lz[1:] == ["28", "28", "0", "0", "0", "8", "8", "8"]
    rows = [cells(row) for row in re.findall(r"<tr>.*?</tr>", part.split('class="heat"')[1], re.DOTALL)]
    assert rows[1][:1] == ["sort"]
    assert rows[2][1:] == ["50"]
    calm = Results(results.grid, [o for o in results.outcomes if not o.looping])
    save(calm, tmp_path / "calm.html")
    assert "Loops and answers" not in (tmp_path / "calm.html").read_text(encoding="utf-8")


def test_overhead_is_shown_where_it_is_known(page: str, tmp_path: Path) -> None:
    best = text_of(section(page, "Each kind at its best strength"))
    assert percent(0.25 / 3.25) in best
    assert percent(0.25) in best
    assert "texts with timings;" in text_of(page)
    save(made_up(tmp_path / "untimed", timed=False), tmp_path / "u.html")
    without = static((tmp_path / "u.html").read_text(encoding="utf-8"))
    assert "in the sampler" not in without
    assert "timings" not in without


def test_several_comparisons_are_pointed_out(page: str) -> None:
    text = text_of(static(page))
    assert "8 settings are compared: even if no penalty had any effect, 0.4 of these p would be below 0.05" in text
    assert "Values of p below 0.00625 (0.05 / 8, Bonferroni)" in text
    assert "Bonferroni" in text


def test_every_svg_is_well_formed_and_says_what_it_shows(page: str) -> None:
    charts = re.findall(r"<svg.*?</svg>", static(page), re.DOTALL)
    assert len(charts) > 10
    for chart in charts:
        root = ET.fromstring(chart)
        assert root.get("aria-label") or root.get("aria-hidden")
    assert (
        'aria-label="Loop rate by temperature, none: 25.0 % at 0, 25.0 % at 0.6; lz 0.1: 0 % at 0, 0 % at 0.6"' in page
    )


def test_one_file_under_its_policy(page: str) -> None:
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r'\s(?:style|on\w+)="', static(page))


def test_samples_loop_and_do_not(page: str, results: Results) -> None:
    rows = data_of(page)["samples"]
    assert {row["by"][3] for row in rows} == {"loops", "loops, right", "right", "wrong", "no loop"} - {"loops"}
    looping = [i for i, row in enumerate(rows) if row["rule"]]
    assert len(looping) == results.counts().looping
    fields = data_of(page, f"t{looping[0]}")["fields"]
    assert [field["name"] for field in fields] == ["prompt", "answer"]
    assert [len(piece[1]) for piece in fields[1]["pieces"] if piece[0] == "first"] == [len("Wait, let me think. ")]
    calm = next(i for i, row in enumerate(rows) if not row["rule"])
    assert data_of(page, f"t{calm}")["findings"] == []
    assert "All 8 that loop" in text_of(static(page))


def test_a_large_run_makes_a_small_page(tmp_path: Path) -> None:
    grid = runs.grid(tuple(f"k{i}" for i in range(10)))
    loop, calm = (runs.transcript(grid.settings[0], "", 1, text) for text in (runs.LOOP, "It ends."))
    texts = []
    for setting in grid.settings:
        for i in range(100):
            made = {**(loop if i % 3 else calm)}
            made["eval"] = {**made["eval"], "setting": setting.name, "kind": setting.kind, "prompt": f"p{i}"}
            texts.append(made)
    results = Results.read(runs.write_run(tmp_path / "run", grid, texts))
    save(results, tmp_path / "r.html")
    assert len(results.samples) == 400
    assert (tmp_path / "r.html").stat().st_size < 3_000_000
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "300 of 2,772 texts that loop" in text_of(static(page))


@pytest.mark.parametrize("temperatures", [(0.0,), (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)])
def test_grids_of_any_form(tmp_path: Path, temperatures: tuple[float, ...]) -> None:
    grid = runs.grid(("lz",), temperatures)
    settings = [setting for setting in grid.settings if setting.kind != "none"]
    no_none = Grid("g", tuple(settings))
    made = [runs.transcript(setting, "p", 1, "It ends.") for setting in settings[:1]]
    results = Results.read(runs.write_run(tmp_path / "run", no_none, made))
    save(results, tmp_path / "r.html")
    page = static((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "no setting without a penalty" in page
    assert "nan" not in page
    empty = Results.read(runs.write_run(tmp_path / "empty", grid, []))
    save(empty, tmp_path / "e.html")
    assert "nan" not in static((tmp_path / "e.html").read_text(encoding="utf-8"))


def test_charts_of_any_figures() -> None:
    for points in ([], [(0.0, 0.0, 0.0, 0.0)], [(1.0, 0.0, 0.5, 1.0), (2.0, 0.5, 1.0, 1.0)]):
        fall = [(x, high) for x, _, _, high in points]
        chart = trend([("none", points), ("loop", points)], 1.0, "said") + decline([("loop", fall)], 2.0, "said")
        for svg in re.findall(r"<svg.*?</svg>", chart, re.DOTALL):
            ET.fromstring(svg)
        for value in re.findall(r'="(-?[\d.]+)%"', chart):
            assert -10 <= float(value) <= 110
    macros: Any = environment().get_template("macros.html").module
    table = macros.heat([("", ["<a>"])], "<b>", [("<c>", [[Cell("<d>", '"e"', "loop", 7.0)]])])
    assert "&lt;d&gt;" in table
    assert "s10" in table
    ET.fromstring(table)


# ---- hostile text ----


def hostile_run(path: Path, evil: list[str]) -> Results:
    """A run with hostile text in every place that a file can fill."""
    settings = [
        Setting(f"{text} {i}", "none" if i == 0 else text, Params(temperature=0.0), float(i))
        for i, text in enumerate(evil)
    ]
    settings.append(Setting(f"{evil[0]} again", evil[1], Params(temperature=0.0), 1.0))
    texts = [
        {**runs.transcript(setting, text, 1, f"{text} " * 30, task=text, right=i % 2 == 0, asked=text),
         "finish_reason": text}
        for setting in settings
        for i, text in enumerate(evil)
    ]  # fmt: skip
    folder = runs.write_run(path, Grid(evil[0], tuple(settings)), texts, model=evil[0])
    return replace(Results.read(folder), bad={text: [BadRow(1, text)] for text in evil})


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    results = hostile_run(tmp_path / "run", list(HOSTILE))
    save(results, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_bytes().decode("utf-8")  # strictly
    assert page.count("<script") == page.count("</script>") == 2 + len(results.samples)
    for danger in ("<img", "<svg onload", "<!--", 'onerror="', "\x1b", "\x00", "\u2028", "\u202e"):
        assert danger not in static(page)
    assert any("<img src=x onerror=" in row["id"] for row in data_of(page)["samples"])
    for danger in ("\x1b", "\x00", "\u202e"):
        assert danger not in markdown_table(results)


def test_browser_runs_and_fetches_nothing_of_a_run(tmp_path: Path, browser: str) -> None:
    with counting_server() as (server, asked):
        results = hostile_run(tmp_path / "run", attacks(server))
        save(results, tmp_path / "r.html")
        for place in ("", "#s0", f"#s{len(results.samples) - 1}"):
            made = dom(browser, f"{(tmp_path / 'r.html').as_uri()}{place}", tmp_path / "profile")
            check_harmless(made, "lzs eval", page=bool(place))
        assert asked == []


def test_the_largest_figure_is_the_answer(page: str, results: Results) -> None:
    head = text_of(page.split('<dl class="tiles">')[0].split("</h1>")[1])
    none, best = results.counts(kind="none"), results.counts(kind="lz", strength=results.chosen["lz"])
    assert head.startswith(f"{percent(none.loop_rate)} → {percent(best.loop_rate)} of texts of made-up.gguf loop")
    assert "without a penalty and with lz 0.1" in head
    tiles = text_of(re.findall(r'<dl class="tiles">.*?</dl>', page, re.DOTALL)[0])
    assert f"of tasks right, without a penalty {percent(none.accuracy or 0)}" in tiles
    assert f"of tokens wasted, with lz 0.1 {percent(best.wasted_share)}" in tiles
    assert "unfinished" not in static(page)


def test_kinds_are_compared_at_their_own_temperatures(tmp_path: Path) -> None:
    """As in `quick`: no penalty and lz at 0 and 0.6, repetition at 0, where it is worse, and all else is better."""
    none, lz = (
        [Setting(f"T={t:g} {kind}", kind, Params(temperature=t, lz_penalty=s), s) for t in (0.0, 0.6)]
        for kind, s in (("none", 0.0), ("lz", 0.2))
    )
    repetition = Setting("T=0 repetition", "repetition", Params(temperature=0.0, repetition_penalty=1.2), 1.2)
    rights = {none[0]: 12, none[1]: 0, lz[0]: 12, lz[1]: 0, repetition: 8}  # of 20, in each task
    loops = {none[0]: 10, none[1]: 2, lz[0]: 1, lz[1]: 0, repetition: 0}
    texts = [
        runs.transcript(setting, f"{task} {i}", 1, f"Text {i}. " + (runs.LOOP if i < loops[setting] else "It ends."),
                        task=task, right=i < rights[setting])
        for setting in rights for task in TASKS for i in range(20)
    ]  # fmt: skip
    grid = Grid("g", (none[0], lz[0], repetition, none[1], lz[1]), (1,), 200)
    results = Results.read(runs.write_run(tmp_path / "run", grid, texts))
    save(results, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    tasks = [cells(row) for row in re.findall(r"<tr>.*?</tr>", section(page, "Which tasks a penalty loses"), re.DOTALL)]
    assert tasks[1:] == [
        ["none at T=0, 0.6", "30", "30"],
        ["lz 0.2 at T=0, 0.6", "30", "30"],
        ["none at T=0", "60", "60"],
        ["repetition 1.2 at T=0", "40 −20", "40 −20"],
    ]
    for heading in ("Each kind at its best strength", "In the terms of other work", "Loops and answers"):
        labels = re.findall(r'<th scope="row">(.*?)</th>', section(page, heading).split('class="heat"')[0])
        assert labels == [row[0] for row in tasks[1:]]
    best = [
        cells(row)[2]
        for row in re.findall(r"<tr>.*?</tr>", section(page, "Each kind at its best strength"), re.DOTALL)[1:5]
    ]
    assert [cell.split(" %")[0] for cell in best] == ["30.0", "2.50", "50.0", "0"]
    head = text_of(page.split('<dl class="tiles">')[0].split("</h1>")[1])
    # repetition has no loop, but loses accuracy, which lz does not
    assert head.startswith(
        "30.0 % → 2.50 % of texts of made-up.gguf loop, without a penalty and with lz 0.2 at T=0, 0.6"
    )
    charts = section(page, "How long texts stay free of loops")
    assert re.findall(r"so far, none: (\S+) %", charts) == ["70.0", "50.0"]
    assert 'aria-label="Loop rate by temperature, none: 50.0 % at 0; repetition 1.2 at T=0: 0 % at 0"' in page


def test_what_the_kinds_are_is_said(page: str, tmp_path: Path) -> None:
    said = text_of(section(page, "What the kinds are"))
    assert "none No penalty." in said
    assert "lz The LZ penalty, 2,048 tokens back, penalizes a repetition of at least 5 tok" in said
    params = [
        Params(temperature=0.0, dry_multiplier=0.8), Params(temperature=1.0, min_p=0.1),
        Params(temperature=0.0, repetition_penalty=1.1),
    ]  # fmt: skip
    settings = [Setting(f"s{i}", f"mine {i}", one, 1.0) for i, one in enumerate(params)]
    thinking = LoopPolicy(penalty_scope=["thinking"])
    lz = Params(lz_penalty=0.3, lz_run_penalty=0.5, dry_multiplier=0.8)
    settings.append(Setting("s3", "mine 3", lz, 0.3, ("\n", ":"), loops=thinking))
    settings += [Setting(f"s {name}", name, Params(**PRESETS[name]), 1.0) for name in PRESETS]
    grid = Grid("mine", tuple(settings), (1,), 200)
    texts = [runs.transcript(setting, "p", 1, "It ends.") for setting in settings]
    save(Results.read(runs.write_run(tmp_path / "kinds", grid, texts)), tmp_path / "kinds.html")
    page = (tmp_path / "kinds.html").read_text(encoding="utf-8")
    said = text_of(section(page, "What the kinds are"))
    for part in (
        "mine 0 DRY: a token",
        "mine 1 No penalty; min-p 0.1.",
        "the strength, or multiplied if it is negative.",
        "mine 3 The LZ penalty, 2,048 tokens back, penalizes a repetition of at least 5 tokens and "
        "each further token once the text has copied itself for 32; DRY: ",
        "of its length; dry_breakers: '\\n', ':'; only in thinking.",
        "guard The LZ penalty, 2,048 tokens back, penalizes each further token once the text has copied itself for",
        "paper The LZ penalty of the paper (arXiv 2504.20131): every token of the window loses the strength times what",
    ):
        assert part in said
    assert page.count("→") <= page.count("with mine")  # there is nothing without a penalty to compare with


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    results = made_up(tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    manifest = json.loads(file.read_text())
    for expected, missing in ((len(results.outcomes) + 4, 4), (len(results.outcomes), 0), (None, 0)):
        file.write_text(json.dumps({**manifest, **({} if expected is None else {"texts": expected})}))
        now = Results.read(tmp_path / "run")
        save(now, tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert (now.expected, now.missing) == (expected, missing)
        assert ("This evaluation is not finished: 160 of 164 texts are there" in page) == (missing > 0)
        assert ("<title>lzs eval: 160 of 164 texts so far of made-up.gguf" in page) == (missing > 0)


def test_wide_tables_can_be_reached_by_keyboard(page: str) -> None:
    regions = re.findall(r'<div class="scroll"[^>]*>', static(page)) + re.findall(
        r'<div[^>]* class="scroll">', static(page)
    )
    assert len(regions) >= 5
    assert all('tabindex="0"' in region and 'role="region"' in region for region in regions)
    assert all(re.search(r'aria-label="[^"]+"', region) for region in regions)


@pytest.mark.parametrize(
    ("top", "ticks"),
    [(1.0, ["0 %", "50 %", "100 %"]), (0.12, ["0 %", "5 %", "10 %"]), (0.004, ["0 %", "0.2 %", "0.4 %"])],
)
def test_whiskers_have_a_scale(top: float, ticks: list[str]) -> None:
    root = ET.fromstring(ruler(top))
    assert [text.text for text in root.iter("text")] == ticks
    places = [float((text.get("x") or "").rstrip("%")) for text in root.iter("text")]
    assert places == pytest.approx([float(tick.split()[0]) / top for tick in ticks], abs=0.01)
    assert ruler(0.0) == ""


def test_a_penalty_without_a_sentence_of_its_own_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one was a KeyError at the end of an evaluation."""
    new = replace(next(penalty for penalty in PENALTIES if penalty.name == "presence"), name="novelty")
    monkeypatch.setattr("lzsampler.reports.eval_kinds.PENALTIES", (new,))
    setting = Setting("T=0 presence", "presence", Params(presence_penalty=0.5), 0.5)
    results = Results(Grid("g", (setting,)), ())
    save(results, tmp_path / "report.html")
    assert "The penalty novelty." in (tmp_path / "report.html").read_text(encoding="utf-8")
