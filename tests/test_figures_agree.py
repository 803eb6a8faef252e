"""One audit has one figure of each name: in JSON, CSV, the report and the terminal, on 50 random audits."""

import csv
import json
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from corpora import PROSE, transcript
from lzsampler import audit_files, save
from lzsampler.auditing.records import LOOPING, RULES
from lzsampler.reports.audit_terminal import terminal_table
from lzsampler.reports.text import count, percent

UNITS = ("and so on ", "!", "-", "x = 1\n", "\n", "Wait, let me think about it once more. ", "0, ")


def text(rng: random.Random) -> str:
    """Prose with runs of a unit in it; sometimes sentences of a few in any order, which are stuck."""
    if rng.random() < 0.15:
        sentences = [PROSE[i : i + 60] for i in rng.sample(range(0, 60_000, 60), 4)]
        return "".join(rng.choices(sentences, k=40))
    at = rng.randrange(len(PROSE) - 900)
    runs = (rng.choice(UNITS) * rng.choice((3, 20, 25, 150)) for _ in range(rng.randrange(3)))
    after = PROSE[at + 500 : at + 500 + rng.choice((0, 400))]
    return PROSE[at : at + 500] + " and then ".join(runs) + after


@pytest.mark.parametrize("seed", range(50))
def test_figures_of_one_name_are_equal(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = [transcript(i, text(rng), model=rng.choice("abc")) for i in range(rng.randrange(5, 40))]
    rows += ["no JSON\n"] * rng.randrange(3)
    (tmp_path / "in.jsonl").write_text("".join(rows), encoding="utf-8")
    with audit_files(tmp_path / "in.jsonl", by="model", workers=1) as audit:
        for ending in ("json", "csv", "html"):
            save(audit, tmp_path / f"out.{ending}")
        terminal = terminal_table(audit.summary, 200)
    summary = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    of_the_table(summary, tmp_path / "out.csv")
    of_the_report(summary, (tmp_path / "out.html").read_text(encoding="utf-8"))
    of_the_terminal(summary, terminal)


def of_the_table(summary: dict[str, Any], path: Path) -> None:
    records = defaultdict[str, set[str]](set)
    wasted = 0
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            records[row["rule"]].add(row["record"])
            wasted += int(row["wasted_tokens"]) * (row["rule"] in LOOPING)
    assert {rule: len(found) for rule, found in records.items()} == summary["rule_counts"]
    assert len(set().union(*(records[rule] for rule in LOOPING))) == summary["looping"]
    assert len(records["LZR011"]) == summary["stuck"]
    assert wasted == summary["wasted_tokens"]


def of_the_report(summary: dict[str, Any], page: str) -> None:
    assert percent(summary["loop_rate"]) in page
    assert f"{summary['looping']:,} of them; 95 % interval" in page
    bad = re.search(r"<dt>bad records?, not counted</dt><dd>(.*?)</dd>", page)
    assert bad is not None
    assert bad.group(1) == count(summary["bad_records"])
    for rule in RULES:
        row = re.search(rf"<code>{rule}</code>.*?</tr>", page, re.DOTALL)
        if row is not None:  # there are none where nothing loops
            n = re.search(r'class="number">([\d,]+)</td>', row.group())
            assert n is not None
            assert int(n.group(1).replace(",", "")) == summary["rule_counts"].get(rule, 0), rule
    for group in summary["groups"]:
        row = re.search(rf'<th scope="row">{group["group"]["model"]}</th>.*?</tr>', page, re.DOTALL)
        assert row is not None
        assert f">{group['records']:,}</td>" in row.group()
        assert f"<b>{percent(group['loop_rate'])}</b>" in row.group()
        assert f">{count(group['wasted_tokens'])}</td>" in row.group()


def of_the_terminal(summary: dict[str, Any], shown: str) -> None:
    n = summary["records"]
    assert f"{summary['looping']:,} of {n:,} record" in shown
    assert f"{count(summary['wasted_tokens'])} token" in shown
    assert percent(summary["loop_rate"]) in shown
    for name, words in (("literal", r"ha(?:s a|ve) literal repeat"), ("stuck", "says? nothing new")):
        found = re.search(rf"([\d,]+) {words}", shown)
        assert (0 if found is None else int(found.group(1).replace(",", ""))) == summary[name]
    found = re.search(r"([\d,]+) bad record", shown)
    assert (0 if found is None else int(found.group(1))) == summary["bad_records"]
    for group in summary["groups"]:
        row = re.search(rf"^{group['group']['model']} +{group['records']} +(.*)$", shown, re.MULTILINE)
        assert row is not None
        assert row.group(1).startswith(percent(group["loop_rate"]))
