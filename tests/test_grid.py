"""Grids: the built-in ones, and TOML files that say what cannot be."""

from dataclasses import replace
from pathlib import Path

import pytest

from lzsampler import LzsError
from lzsampler.grid import PAPER_TEMPERATURES, Grid, paper, quick, read_grid


def test_built_in_grids() -> None:
    grid = paper()
    names = [setting.name for setting in grid.settings]
    assert len(set(names)) == len(names)
    for temperature in PAPER_TEMPERATURES:
        here = [s for s in grid.settings if s.params.temperature == temperature]
        kinds = {s.kind: sorted(t.strength for t in here if t.kind == s.kind) for s in here}
        for formula in ("rate", "distance", "codelength"):
            assert kinds[f"lz-{formula}"] == [0.1, 0.15, 0.2, 0.3]
        assert kinds["repetition"] == [1.1, 1.2, 1.25, 1.3, 1.5]
        assert (kinds["frequency"][0], kinds["frequency"][-1]) == (0.1, 1.0)
        assert kinds["presence"] == [0.5, 1.0, 1.5]
        assert len(kinds["none"]) == len(kinds["dry"]) == 1
        assert all((s.params.top_k, s.params.top_p) == ((40, 0.95) if temperature else (0, 1.0)) for s in here)
    assert [s.params.lz_formula for s in grid.settings if s.kind == "lz-distance"] == ["distance"] * 16
    assert read_grid("quick") == quick()
    assert read_grid("paper") == grid


def test_lists_are_combinations(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("""
        n_predict = 99
        seeds = [1, 2]
        [[setting]]
        kind = "LZ"
        lz_penalty = [0.1, 0.2]
        temperature = [0, 0.5, 1]
        exempt = [1, 2]
        [[setting]]
        dry_multiplier = [0.5, 0.8]
        [[setting]]
    """)
    grid = read_grid(path)
    assert (grid.name, grid.n_predict, grid.seeds) == ("mine", 99, (1, 2))
    assert len(grid.settings) == 9
    lz = [s for s in grid.settings if s.kind == "LZ"]
    assert {(s.strength, s.params.temperature) for s in lz} == {(a, t) for a in (0.1, 0.2) for t in (0, 0.5, 1)}
    assert all(s.params.exempt == (1, 2) for s in lz)
    assert [s.dry["dry_multiplier"] for s in grid.settings if s.kind == "dry"] == [0.5, 0.8]
    assert grid.settings[-1].name == "T=0"
    assert grid.settings[-1].kind == "none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"has no \[\[setting\]\]"),
        ("setting = 5", r"has no \[\[setting\]\]"),
        ("[[setting]", "is not TOML"),
        ("[[setting]]\nlz_strength = 1", r"\[\[setting\]\] 1: unknown key 'lz_strength'"),
        ("[[setting]]\n[[setting]]\nlz_penalty = -1", r"\[\[setting\]\] 2: lz_penalty must be at least 0, got -1"),
        ("[[setting]]\nlz_penalty = nan", "lz_penalty must be finite"),
        ("[[setting]]\ntemperature = 'hot'", "temperature must be a number, got 'hot'"),
        ("[[setting]]\nkind = 3", "kind must be a text"),
        ("n_predict = -5\n[[setting]]", "n_predict must be"),
        ("seeds = []\n[[setting]]", "seeds must be a list"),
        ("seeds = [-1]\n[[setting]]", "seeds must be"),
        ("tokens = 5\n[[setting]]", "unknown key 'tokens'"),
    ],
)
def test_files_that_are_no_grid(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_grid(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LzsError, match=r"cannot read the grid .*No such file.*built in: quick, paper"):
        read_grid(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not TOML"):
        read_grid(tmp_path / "binary.toml")


def test_the_grid_of_the_docs_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "evaluate.md").read_text(encoding="utf-8")
    (tmp_path / "docs.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    grid = read_grid(tmp_path / "docs.toml")
    assert {setting.kind for setting in grid.settings} == {"none", "lz", "dry"}
    assert len(grid.settings) == 2 + 6 + 1


def test_a_kind_and_a_family_of_kinds() -> None:
    grid = paper()
    assert {setting.kind for setting in grid.of_kind("lz")} == {"lz-rate", "lz-distance", "lz-codelength"}
    assert {setting.kind for setting in grid.of_kind("lz-rate")} == {"lz-rate"}
    none, other = grid.settings[:2]
    both = Grid("g", (replace(none, kind="a"), replace(other, kind="a-b")))
    assert [setting.kind for setting in both.of_kind("a")] == ["a"]
    with pytest.raises(ValueError, match=r"the grid has no rate, only none, lz-rate,"):
        grid.of_kind("rate")
