"""Bits a token under the paper's LZ compressor: hand-worked values, the slow twin, and the audit's metric."""

import math
import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import audit, audit_texts
from lzsampler.auditing.metrics import code_length
from lzsampler.reports.audit_html import write_html
from lzsampler.reports.audit_terminal import terminal_table
from reference_lz import code_length as twin


def ids(*tokens: int) -> npt.NDArray[np.int32]:
    return np.array(tokens, np.int32)


def test_worked_by_hand() -> None:
    """5 6 7 5 6 7 5 6 7 5 of a vocabulary of 64: three literals of 7 bits, then one phrase of 7 tokens from 3 back."""
    tokens = ids(5, 6, 7, 5, 6, 7, 5, 6, 7, 5)
    assert code_length(tokens, 64) == pytest.approx(3 * 7 + 1 + math.log2(7) + math.log2(3), abs=1e-5)
    in_fours = 3 * 7 + (1 + math.log2(4) + math.log2(3)) + (1 + math.log2(3) + math.log2(3))
    assert code_length(tokens, 64, buffer=4) == pytest.approx(in_fours, abs=1e-5)
    assert code_length(tokens, 64, window=2) == 70.0  # nothing is that near: ten literals
    assert code_length(ids(1, 1, 1, 1), 2) == pytest.approx(2 + 1 + math.log2(3), abs=1e-6)
    assert code_length(ids(1, 2, 9, 1, 2, 3, 1, 2), 1024) == pytest.approx(4 * 11 + (2 + math.log2(3)) * 2, abs=1e-5)
    assert code_length(ids(), 64) == 0.0


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_twin(seed: int) -> None:
    rng = random.Random(seed)
    kinds = rng.choice([2, 5, 40])
    tokens = [rng.randrange(kinds) for _ in range(rng.randrange(400))]
    if seed % 3 == 0:
        tokens += tokens[-rng.randrange(1, 50) :] * rng.randrange(8)
    window, buffer = rng.choice([1, 7, 64, 512]), rng.choice([1, 3, 32, 600])
    expected = twin(tokens, 50, window, buffer)
    assert code_length(np.array(tokens, np.int32), 50, window, buffer) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_of_tokens_outside_the_vocabulary() -> None:
    with pytest.raises(ValueError, match=r"tokens\[1\] = 9 is not a token of a vocabulary of 9"):
        code_length(ids(1, 9), 9)


def test_the_metric_is_there_only_when_asked_for() -> None:
    rng = random.Random(1)
    told, looping = [rng.randrange(1000) for _ in range(300)], [3, 1, 4, 1, 5] * 60
    assert "lz_bits_per_token" not in audit(told).metrics
    figures = [audit(tokens, lz_vocab=1000).metrics for tokens in (told, looping)]
    assert figures[0] == {"lz_bits_per_token": pytest.approx(twin(told, 1000, 512, 32) / 300, rel=1e-6)}
    assert figures[0]["lz_bits_per_token"] > 9 > 0.5 > figures[1]["lz_bits_per_token"]
    assert "lz_bits_per_token" not in audit("a text without a tokenizer", lz_vocab=1000).metrics


def test_of_texts_with_a_tokenizer(tmp_path: Path) -> None:
    def letters(
        text: str,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        return np.frombuffer(text.encode(), np.uint8).astype(np.int32), np.arange(len(text), dtype=np.int64)

    text = "<think>so it is</think>abcabcabc"
    summary = audit_texts([text], tokenizer=letters, lz_vocab=256)
    made = summary.to_json()["metrics"]
    bits = [twin(part.encode(), 256, 512, 32) for part in ("so it is", "abcabcabc")]
    assert made["lz_bits_per_token"] == pytest.approx(sum(bits) / 17, rel=1e-6)
    assert made["rep4"] == 0.0
    mean = f"{sum(bits) / 17:.3g}"
    assert f"\n{mean} bits a token under the LZ compressor, mean of 1 record;" in terminal_table(summary, 110)
    write_html(tmp_path / "report.html", summary, [])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"<dt>bits a token under the LZ compressor, mean; a loop takes about 0.5</dt><dd>{mean}</dd>" in page
    assert "LZ compressor" not in terminal_table(audit_texts([text]), 110)
