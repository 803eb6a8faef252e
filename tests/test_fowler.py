"""Fowler's tests of regular expressions (Rust's regex): what is found in a text says which texts match as a whole."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lzsampler import Grammar
from schemas import TOKENS

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "vectors" / "fowler.jsonl").read_text(encoding="utf-8").splitlines()
]
# What the dialect does not have, which must be refused with these words and never be read in another way.
ANCHOR = "an anchor can only begin or end the pattern"
BRACKET = "in a class has several meanings|at the beginning of a class has several meanings"
REFUSED = {
    **dict.fromkeys((21, 22, 23, 72, 74, 76, 140, 163, 164, 165), ANCHOR),
    **dict.fromkeys((57, 58, 59, 120, 123), BRACKET),
}
# Rust takes the first alternative that fits, so that it finds a part of these texts although the whole matches, too.
FIRST = {f"repetition-expensive{line}" for line in (127, 129, 134, 136, 141, 143)}


def pattern_of(case: dict[str, Any]) -> str:
    return ("(?i)" if case.get("case_insensitive") else "") + str(case["regex"])


def has_anchors(pattern: str) -> bool:
    return re.search(r"[\^$]", re.sub(r"\\.|\[\^?\]?[^\]]*\]", "", pattern)) is not None


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_what_is_found_matches_and_what_stands_before_it_does_not(case: dict[str, Any]) -> None:
    pattern, text, span = pattern_of(case), case["haystack"], case["span"]
    refused = REFUSED.get(int(case["name"].removeprefix("basic"))) if case["name"].startswith("basic") else None
    if refused is not None:
        with pytest.raises(ValueError, match=refused):
            Grammar.regex(pattern, TOKENS)
        return
    grammar = Grammar.regex(pattern, TOKENS)
    if case["name"] in FIRST:
        assert re.fullmatch(pattern, text)
        assert grammar.match(text) == "yes"
    else:
        assert (grammar.match(text) == "yes") == (span == [0, len(text)])
    if span is not None:
        assert grammar.match(text[slice(*span)]) == "yes"
    if not has_anchors(pattern):
        for begin in range(len(text) + 1 if span is None else span[0]):
            for end in range(begin, len(text) + 1):
                assert grammar.match(text[begin:end]) != "yes", text[begin:end]


def test_the_cases_are_all_there() -> None:
    assert len(CASES) == 345
    assert sum(case["span"] is None for case in CASES) == 17
    assert {case["name"] for case in CASES} >= FIRST
