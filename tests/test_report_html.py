"""The HTML report: what it holds, and that nothing of a transcript runs or is fetched."""

import html
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits import HOSTILE, clean, finding, hostile, hostile_summary, looping, summary_of
from browsing import attacks, check_harmless, counting_server, dom
from lzsampler.auditing.records import RULES, BadRecord, Finding, Level
from lzsampler.auditing.summary import Group, Summary, wasted_tokens
from lzsampler.reports import charts
from lzsampler.reports.audit_groups import ordered, selected
from lzsampler.reports.audit_html import write_html
from lzsampler.reports.charts import histogram, scatter, stripes
from lzsampler.reports.samples import CHARACTERS, pieces, worst


@pytest.fixture
def page(tmp_path: Path) -> str:
    stuck = finding("around and around", "around", rule="LZR011")
    records = [*map(looping, range(7)), *map(clean, range(7, 38))]
    records += [replace(clean(number), findings=(stuck,)) for number in (38, 39)]
    bad = (BadRecord("runs/b.jsonl", 3, "not JSON"), BadRecord("c.parquet", 0, "cut"))
    write_html(tmp_path / "r.html", summary_of(records, bad=bad), iter(records))
    return (tmp_path / "r.html").read_text(encoding="utf-8")


def data_of(page: str, name: str = "data") -> Any:
    match = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def test_page_has_the_figures(page: str) -> None:
    assert "<title>lzs audit: 17.5 % of 40 records loop</title>" in page
    text = html.unescape(re.sub(r"<[^>]+>", " ", page.split('<script type="application/json"')[0]))
    text = " ".join(text.split())
    assert "7 of them; 95 % interval 8.75 % to 31.9 % (Wilson)" in text  # scipy: 0.08745, 0.31950
    assert "Literal repeats any unit, 20 copies; not loops: indentation counts, too" in text
    assert "A stuck stretch LZR011: hardly a word of it is new 5.00 % 1.38 to 16.5 %" in text  # scipy: 0.01382, 0.16504
    assert "All 7 looping records" in text
    assert "2 bad records" in text
    assert "not JSON" in text
    assert "levels char, word" in text
    for code in RULES:
        assert code in text


def test_page_is_one_file_that_names_no_other(page: str) -> None:
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    outside = re.findall(
        r"""(?:src|href|action|data|poster|srcset)\s*=\s*["']?([^"'\s>]+)""", page.split("<script>")[0]
    )
    assert set(outside) <= {"data:,"}
    assert "@import" not in page
    assert "url(" not in page


def test_policy_allows_the_own_script_and_style_only(page: str) -> None:
    match = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert match is not None
    policy = match[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r'\s(?:style|on\w+)="', page.split("<script>")[0])


def test_script_never_makes_markup_of_text(page: str) -> None:
    script = page.split("<script>")[1]
    for danger in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "DOMParser"):
        assert danger not in script


def test_every_svg_is_well_formed(page: str) -> None:
    charts = re.findall(r"<svg.*?</svg>", page.split('<script type="application/json"')[0], re.DOTALL)
    assert len(charts) >= 5
    for chart in charts:
        root = ET.fromstring(chart)
        assert root.get("aria-label") or root.get("aria-hidden")


@pytest.mark.parametrize(
    "points", [[], [(1, 20.0)], [(5, 20.5)] * 3, [(1, 2.0), (10**9, 10.0**6)], [(i, 2.0 + i) for i in range(1, 5000)]]
)
def test_charts_of_any_figures(points: list[tuple[int, float]]) -> None:
    for chart in (scatter(points), histogram([0.0, 1.0, 0.5]), histogram([]), stripes([(0.0, 1.0), (1.0, 1.0)])):
        ET.fromstring(chart)
        for value in re.findall(r'="(-?[\d.]+)%"', chart):
            assert -10 <= float(value) <= 110
        assert "nan" not in chart


def test_scatter_joins_what_would_hide_each_other() -> None:
    assert scatter([(5, 20.5)] * 4000).count("<circle") == 1
    assert scatter([(5, 20.5), (500, 20.5)]).count("<circle") == 2


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    write_html(tmp_path / "r.html", hostile_summary(), hostile())
    page = (tmp_path / "r.html").read_bytes().decode("utf-8")  # strictly
    assert page.count("</script>") == 2 + len(HOSTILE)
    assert page.count("<script") == 2 + len(HOSTILE)
    static = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    for danger in ("<img", "<svg onload", "<!--", 'onerror="', "\x1b", "\x00", "\u2028", "\u202e"):
        assert danger not in static
    shown = {row["id"] for row in data_of(page)["samples"]}
    assert any("<img src=x onerror=" in name for name in shown)  # as data, whole
    texts = ["".join(p[1] for p in data_of(page, f"t{i}")["fields"][0]["pieces"]) for i in range(len(HOSTILE))]
    assert sorted(texts) == sorted(record.texts[0][1] for record in hostile())


def test_a_text_that_looks_like_a_template_is_text(tmp_path: Path) -> None:
    text = "{{ 7 * 7 }} {% include 'page.html' %} {# <b> #} "
    record = looping(0, unit=text, id=text, file=text, groups={text: text})
    write_html(tmp_path / "r.html", summary_of([record], by=(text,), bad=(BadRecord(text, 1, text),)), [record])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    escaped = html.escape(text.strip()).replace("&#x27;", "&#39;")
    assert (
        page.split('<script type="application/json"')[0].count(escaped) == 5
    )  # the group thrice, and the bad record twice


def test_no_template_takes_a_value_for_markup() -> None:
    """What is markup comes from charts.py, as `Markup`; the filter "safe" would let a text of a record in."""
    templates = sorted((Path(charts.__file__).parent / "templates").glob("*.html"))
    assert len(templates) == 6
    for template in templates:
        assert not re.search(
            r"\bsafe\b|autoescape|\|\s*(?:e|escape|forceescape|urlize|xmlattr)\b", template.read_text("utf-8")
        )


def test_samples_are_the_worst_in_order_and_bounded() -> None:
    records = [looping(i, copies=20 + (i * 7) % 50) for i in range(50)]
    found = worst(iter(records), ("model",), most=10)
    wasted = sorted((wasted_tokens(record) for record in records), reverse=True)
    assert [sample.row["wasted"] for sample in found] == wasted[:10]
    alike = worst((looping(i) for i in range(50)), (), most=3)
    assert [sample.row["record"] for sample in alike] == [0, 1, 2]  # of equals the first
    assert worst([clean(1)], ()) == []


def test_report_says_that_it_left_samples_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [looping(i) for i in range(5)]
    monkeypatch.setattr("lzsampler.reports.audit_html.SAMPLES", 3)
    monkeypatch.setattr("lzsampler.reports.audit_html.worst", lambda audited, by: worst(audited, by, 3))
    write_html(tmp_path / "r.html", summary_of(records), records)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "The 3 of 5 looping records that waste the most tokens" in page
    assert len(data_of(page)["samples"]) == 3


def test_page_of_a_sample_has_both_fields_apart(tmp_path: Path) -> None:
    answer = "So. " + "ab " * 40
    reasoning = "Let me see. " + "Hmm, no. " * 60
    found = (finding(answer, "ab "), finding(reasoning, "Hmm, no. ", field="reasoning"))
    record = looping(texts=(("reasoning", reasoning), ("answer", answer)), findings=found)
    write_html(tmp_path / "r.html", summary_of([record]), [record])
    fields = data_of((tmp_path / "r.html").read_text(encoding="utf-8"), "t0")["fields"]
    assert [field["name"] for field in fields] == ["reasoning", "answer"]
    assert fields[0]["pieces"][:3] == [["text", "Let me see. "], ["first", "Hmm, no. "], ["copy", "Hmm, no. "]]
    assert fields[1]["pieces"][1] == ["first", "ab "]


def test_tokens_without_a_text_are_a_sample_too(tmp_path: Path) -> None:
    found = Finding("answer", "token", "LZR006", 100, 400, 3, 100.0, "", 0.25, True, 297)
    record = looping(texts=(("answer", ""),), findings=(found,))
    write_html(tmp_path / "r.html", summary_of([record]), [record])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert data_of(page)["samples"][0]["band"] == [0.25, 1.0]
    assert data_of(page, "t0")["fields"][0]["pieces"] == []


@given(
    st.text(max_size=300), st.lists(st.tuples(st.integers(0, 290), st.integers(2, 60), st.integers(1, 20)), max_size=5)
)
def test_pieces_are_the_text_in_order(text: str, spans: list[tuple[int, int, int]]) -> None:
    found: list[Finding] = []
    levels: tuple[Level, ...] = ("char", "line")
    for start, length, period in spans:
        end = min(start + length, len(text))
        if start < end and all(end <= f.start or f.end <= start for f in found):
            made = Finding("answer", levels[start % 2], "LZR001", start, end, period, 2.0, "", 0.0, False, length)
            found.append(made)
    found.sort(key=lambda f: f.start)
    for room in (10_000, 100):
        made_pieces = pieces(text, found, room)
        at = shown = 0
        for kind, piece in made_pieces:
            if isinstance(piece, int):
                assert kind == "cut"
                at += piece
                continue
            assert text.startswith(piece, at)
            covering = [f for f in found if f.start <= at and at + len(piece) <= f.end]
            assert (kind == "text") == (not covering)
            if kind == "first":
                assert at + len(piece) <= covering[0].start + covering[0].period
            at += len(piece)
            shown += len(piece)
        assert at == len(text)
        assert shown <= max(room, 100)


def test_long_text_is_cut_around_its_loop() -> None:
    text = (
        "a b " * 5
        + "".join(f"{i} " for i in range(200_000))
        + "loop it. " * 9000
        + "".join(f"{i} " for i in range(9000))
    )
    found = [finding(text, "loop it. ")]
    made = pieces(text, found, CHARACTERS)
    assert sum(len(piece) for _, piece in made if isinstance(piece, str)) <= CHARACTERS
    kinds = [kind for kind, _ in made]
    assert kinds.count("cut") == 3
    assert ("first", "loop it. ") in made
    assert kinds[0] == kinds[-1] == "text"


def test_a_report_of_nothing(tmp_path: Path) -> None:
    write_html(tmp_path / "r.html", Summary({}), [])
    assert "No records" in (tmp_path / "r.html").read_text(encoding="utf-8")
    none = summary_of([clean(i) for i in range(100)])
    write_html(tmp_path / "r.html", none, [clean(1)])
    assert "95 % interval 0 % to 3.70 %" in (tmp_path / "r.html").read_text(encoding="utf-8")  # notes: 0/100 -> 3.7 %


def test_groups_are_in_natural_order_and_bounded() -> None:
    names = ("14b", "8b", "8b2", "0.6", "1", "-1", "", "a10", "a9")
    groups: dict[tuple[str, ...], Group] = {(name,): Group(records=1) for name in names}
    assert [key[0] for key, _ in ordered(groups)] == ["", "-1", "0.6", "1", "8b", "8b2", "14b", "a9", "a10"]
    many = Summary({}, ("file",), groups={(f"f{i}",): Group(records=1, wasted_tokens=i) for i in range(100)})
    assert [key[0] for key, _ in selected(many, 3)] == ["f97", "f98", "f99"]


# In a browser


def test_browser_runs_and_fetches_nothing_of_a_transcript(tmp_path: Path, browser: str) -> None:
    with counting_server() as (server, asked):
        evil = attacks(server)
        records = [
            looping(i, unit=text + " ", id=text, file=text, groups={"model": text, text: text})
            for i, text in enumerate(evil)
        ]
        records.append(looping(len(evil), unit="\n".join(evil)))
        summary = summary_of(records, bad=tuple(BadRecord(text, 1, text) for text in evil))
        write_html(tmp_path / "r.html", summary, records)
        for i in (0, 3, len(evil)):  # the page of a sample stands open
            made = dom(browser, f"{(tmp_path / 'r.html').as_uri()}#s{i}", tmp_path / "profile")
            check_harmless(made, "lzs audit", page=True)
            assert '<mark class="first">' in made
            assert made.count("<script") == 2 + len(records)
        assert asked == []


def test_browser_test_can_fail(tmp_path: Path, browser: str) -> None:
    with counting_server() as (server, asked):
        (tmp_path / "x.html").write_text(f"<!doctype html><title>t</title><p>{attacks(server)[2]}</p>")
        made = dom(browser, (tmp_path / "x.html").as_uri(), tmp_path / "profile")
    assert "data-pwned" in made
    assert asked == ["/b.png"]
