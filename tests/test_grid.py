"""Grids: the built-in ones, and TOML files that say what cannot be."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from lzsampler import LzsError, Params
from lzsampler.evaluation.grid import BUILT_IN, PAPER_TEMPERATURES, Grid, everyday, long, paper, quick, read_grid
from lzsampler.params import PRESETS


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
        assert kinds["frequency"] == [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 0.9, 1.0]
        assert kinds["presence"] == [0.5, 1.0, 1.5]
        assert len(kinds["none"]) == 1
        assert kinds["dry"] == [0.8]
        assert all((s.params.top_k, s.params.top_p) == ((40, 0.95) if temperature else (0, 1.0)) for s in here)
    assert [s.params.lz_formula for s in grid.settings if s.kind == "lz-distance"] == ["distance"] * 16
    assert (grid.seeds, grid.max_tokens, grid.ignore_eos) == ((1, 2, 3, 4, 5), 512, False)
    assert read_grid("quick") == quick()
    assert read_grid("paper") == grid
    assert read_grid("long") == long()


def test_the_grid_of_long_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = long()
    assert (grid.max_tokens, grid.ignore_eos, grid.seeds) == (4096, True, (1,))
    assert all(setting.params.temperature == 0 for setting in grid.settings)
    by_kind = {setting.kind: setting for setting in grid.settings}
    assert len(by_kind) == len(grid.settings)
    paper_lz = by_kind["lz-paper"].params
    assert (paper_lz.lz_penalty, paper_lz.lz_formula, paper_lz.lz_window, paper_lz.lz_buffer) == (0.15, "rate", 512, 32)
    strengths = {kind: setting.strength for kind, setting in by_kind.items() if not kind.startswith("lz-")}
    assert strengths == {"none": 0.0, "repetition": 1.1, "frequency": 0.2, "presence": 1.5, "dry": 0.8}
    assert by_kind["lz-default"].params == Params(temperature=0.0, **PRESETS["default"])
    monkeypatch.setattr("lzsampler.evaluation.grid.PRESETS", {**PRESETS, "default": PRESETS["paper"]})
    assert "lz-default" not in long().kinds  # no text is made twice


def test_a_grid_of_an_older_folder_is_the_same() -> None:
    """What is not used is not written, so that folders made before it existed can be resumed."""
    written = json.dumps(quick().to_json())
    assert "ignore_eos" not in written
    assert json.loads(json.dumps(long().to_json()))["ignore_eos"] is True


def test_the_everyday_grid_has_penalties_as_people_use_them() -> None:
    grid = everyday()
    assert read_grid("everyday") == grid
    used = {setting.kind: setting for setting in grid.settings}
    assert [*used] == [setting.kind for setting in grid.settings]
    assert len({setting.name for setting in grid.settings}) == len(used)
    assert used["lz-paper"].params == Params(temperature=0.0, **PRESETS["paper"])
    assert (used["repetition"].params.repetition_penalty, used["repetition"].params.penalty_window) == (1.1, 0)
    assert (used["frequency"].params.frequency_penalty, used["presence"].params.presence_penalty) == (0.2, 1.5)
    assert used["dry"].params.dry_multiplier == 0.8
    assert (used["min-p"].params.min_p, used["min-p"].params.temperature) == (0.1, 1.0)
    assert {setting.params.temperature for setting in grid.settings if setting.kind != "min-p"} == {0.0}
    assert grid.max_tokens == 512
    assert used["lz-default"].params == Params(temperature=0.0, **PRESETS["default"])
    assert used["lz-default"].name == "T=0 lz_penalty=0.3 lz_run_penalty=0.5"
    assert len({setting.name for setting in everyday().settings}) == len(everyday().settings)


def test_a_window_and_a_buffer_that_are_not_the_usual_ones_are_in_the_name(tmp_path: Path) -> None:
    """The usual ones depend on the rule: those of the paper are not those of the default."""
    path = tmp_path / "mine.toml"
    path.write_text("""
        [[setting]]
        lz_penalty = 0.3
        lz_rule = ["paper", "default"]
        lz_window = [512, 2048]
        [[setting]]
        lz_penalty = 0.3
        lz_rule = "paper"
        lz_buffer = [32, 511]
        lz_window = 1024
    """)
    assert [setting.name.removeprefix("T=0 lz_penalty=0.3") for setting in read_grid(path).settings] == [
        " lz_rule=paper",
        " lz_window=2048 lz_rule=paper",
        " lz_window=512",
        "",
        " lz_window=1024 lz_rule=paper",
        " lz_window=1024 lz_rule=paper lz_buffer=511",
    ]


@pytest.mark.parametrize("field", ["lz_separators", "lz_commas", "lz_breakers"])
def test_separators_are_those_of_the_model_and_not_of_a_grid(tmp_path: Path, field: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'[[setting]]\nlz_penalty = 0.3\n{field} = ["\\n"]\n')
    with pytest.raises(ValueError, match=rf"\[\[setting\]\] 1: unknown key '{field}'"):
        read_grid(path)


def test_presets_of_a_grid_are_their_fields(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    tables = ("\n".join(["[[setting]]", *(f"{k} = {v!r}" for k, v in fields.items())]) for fields in PRESETS.values())
    path.write_text("\n".join(tables))
    grid = read_grid(path)
    assert [setting.params for setting in grid.settings] == [Params(temperature=0, **f) for f in PRESETS.values()]
    assert [setting.name for setting in grid.settings] == [
        "T=0 lz_penalty=0.3 lz_run_penalty=0.5",
        "T=0 lz_run_penalty=0.5 lz_run_allowance=64",
        "T=0 lz_penalty=0.15 lz_rule=paper",
    ]
    assert Grid.from_json(json.loads(json.dumps(grid.to_json()))) == grid


def test_lists_are_combinations(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("""
        max_tokens = 99
        seeds = [1, 2]
        [[setting]]
        kind = "LZ"
        lz_penalty = [0.1, 0.2]
        temperature = [0, 0.5, 1]
        exempt = [1, 2]
        logit_bias = [[3, -1.5], [4, 0.25]]
        [[setting]]
        dry_multiplier = [0.5, 0.8]
        dry_breakers = ["\\n", "*"]
        [[setting]]
    """)
    grid = read_grid(path)
    assert (grid.name, grid.max_tokens, grid.seeds) == ("mine", 99, (1, 2))
    assert len(grid.settings) == 9
    lz = [s for s in grid.settings if s.kind == "LZ"]
    assert {(s.strength, s.params.temperature) for s in lz} == {(a, t) for a in (0.1, 0.2) for t in (0, 0.5, 1)}
    assert all(s.params.exempt == (1, 2) for s in lz)
    assert all(s.params.logit_bias == ((3, -1.5), (4, 0.25)) for s in lz)
    dry = [s for s in grid.settings if s.kind == "dry"]
    assert [(s.strength, s.params.dry_multiplier) for s in dry] == [(0.5, 0.5), (0.8, 0.8)]
    assert all(s.dry_breakers == ("\n", "*") for s in dry)
    assert not any(s.dry_breakers for s in lz)
    assert grid.settings[-1].name == "T=0"
    assert grid.settings[-1].kind == "none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"has no \[\[setting\]\]"),
        ("setting = 5", r"has no \[\[setting\]\]"),
        ("[[setting]", "is not TOML"),
        ("#" * (1 << 20) + "\n", "is no grid: it is larger than 1 MiB"),
        ("a = " + "[" * 100_000, "is no grid: it is nested too deeply"),
        (
            '[[setting]]\nkind = "a"\nlz_penalty = 0.2\n[[setting]]\nkind = "b"\nlz_penalty = 0.2',
            r"\[\[setting\]\] 2 of kind b has the values of an earlier one, of kind a \(T=0 lz_penalty=0.2\)",
        ),
        (
            f"[[setting]]\nlz_penalty = {[i / 1000 for i in range(1, 202)]}\nlz_window = {list(range(2, 52))}",
            r"\[\[setting\]\] 1 stands for 10,050 settings, more than 10,000: shorten its lists",
        ),
        ("[[setting]]\nlz_strength = 1", r"\[\[setting\]\] 1: unknown key 'lz_strength'"),
        ("[[setting]]\n[[setting]]\nlz_penalty = -1", r"\[\[setting\]\] 2: lz_penalty must be at least 0, got -1"),
        ("[[setting]]\nlz_penalty = nan", "lz_penalty must be finite"),
        ("[[setting]]\ntemperature = 'hot'", "temperature must be a number, got 'hot'"),
        ("[[setting]]\nkind = 3", "kind must be a text"),
        ("max_tokens = -5\n[[setting]]", "max_tokens must be"),
        ("seeds = []\n[[setting]]", "seeds must be a list"),
        ("seeds = [-1]\n[[setting]]", r"grid\.toml: seeds must be"),
        ("seeds = [1, 2, 1]\n[[setting]]", r"grid\.toml: seeds must differ from each other, got 1 twice"),
        ("seeds = ['a']\n[[setting]]", r"grid\.toml: seeds must be an integer, got 'a'"),
        ("max_tokens = 'all'\n[[setting]]", r"grid\.toml: max_tokens must be an integer, got 'all'"),
        ("[[setting]]\nstructure = 'free'", r"\[\[setting\]\] 1: structure has no effect"),
        ("tokens = 5\n[[setting]]", "unknown key 'tokens'"),
        ("setting = [1, 2]", r"\[\[setting\]\] 1 must be a table of names and values, got 1"),
        ("setting = ['lz']", "must be a table of names and values, got 'lz'"),
        ("[[setting]]\nlz_penalty = []", "lz_penalty must have a value, got an empty list"),
        ("[[setting]]\nlz_penalty = [[0.1]]", r"lz_penalty must be a number, got \[0.1\]"),
        ("[[setting]]\nlz_penalty = {a = 1}", "lz_penalty must be a number, got {'a': 1}"),
        ("[[setting]]\nexempt = 5", "exempt must be a sequence of token ids, got 5"),
        ("[[setting]]\nexempt = ['a']", "exempt takes token ids"),
        ("[[setting]]\ndry_multiplier = 'x'", r"\[\[setting\]\] 1: dry_multiplier must be a number, got 'x'"),
        ("[[setting]]\ndry_base = 0.5", "dry_base must be at least 1, got 0.5"),
        ("[[setting]]\ndry_breakers = ':'", "dry_breakers must be a list of strings that are not empty, got ':'"),
        ("[[setting]]\ndry_breakers = [5]", r"dry_breakers must be a list of strings .*, got \[5\]"),
        ("[[setting]]\nlogit_bias = [5]", "logit_bias must be pairs of a token id and a number, got 5"),
        ("[[setting]]\nseed = 1", "unknown key 'seed'"),
        ("ignore_eos = 1\n[[setting]]", r"grid\.toml: ignore_eos must be True or False, got 1"),
    ],
)
def test_files_that_are_no_grid(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_grid(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        LzsError, match=r"cannot read the grid .*No such file.*built in: quick, presets, paper, everyday, long"
    ):
        read_grid(tmp_path / "missing.toml")
    (tmp_path / "mark.toml").write_bytes(b"\xef\xbb\xbf[[setting]]")  # as some editors begin a file
    assert read_grid(tmp_path / "mark.toml").kinds == ("none",)
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
    with pytest.raises(ValueError, match=r"the grid has no kind rate, only none, lz-rate,"):
        grid.of_kind("rate")


def test_json_and_back() -> None:
    biased = replace(
        paper().settings[0],
        params=Params(logit_bias={3: float("-inf")}),
        dry_breakers=("\n",),
    )
    for grid in (
        quick(),
        paper(),
        long(),
        Grid("e", (paper().settings[1],), ignore_eos=True),
        Grid("g", (biased,), (1, 2**64 - 1), -1),
    ):
        assert Grid.from_json(json.loads(json.dumps(grid.to_json(), allow_nan=False))) == grid


VALUES = ("'x'", "true", "1e400", "-1", "nan", "2024-01-01", "{a = 1}", "[[1]]", "['x']", "9" * 30)


@pytest.mark.parametrize("name", [field.name for field in fields(Params)] + ["dry_breakers", "kind"])
def test_a_value_of_another_type_is_one_line(tmp_path: Path, name: str) -> None:
    """Whatever a grid holds, it is a grid or a ValueError in one line that names the place."""
    path = tmp_path / "grid.toml"
    refused: list[str] = []
    for value in VALUES:
        path.write_text(f"[[setting]]\n{name} = {value}\n")
        try:
            read_grid(path)
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) >= 5
    assert all(said.startswith(f"{path}: [[setting]] 1") and "\n" not in said for said in refused)


def test_a_seed_is_there_once() -> None:
    with pytest.raises(ValueError, match="seeds must differ from each other, got 7 twice"):
        Grid("g", quick().settings, (7, 8, 7))


def test_what_is_done_about_a_loop_is_part_of_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "actions.toml"
    file.write_text("""
[[setting]]
on_loop = ["stop", "rewind", "boost"]
loop_rule = "both"

[[setting]]
lz_penalty = 0.15
penalty_scope = ["thinking"]
""")
    grid = read_grid(file)
    assert [setting.name for setting in grid.settings] == [
        "T=0 on_loop=stop loop_rule=both",
        "T=0 on_loop=rewind loop_rule=both",
        "T=0 on_loop=boost loop_rule=both",
        "T=0 lz_penalty=0.15 penalty_scope=thinking",
    ]
    assert grid.kinds == ("stop", "rewind", "boost", "lz_penalty")
    assert [setting.draws for setting in grid.settings] == [False, False, True, False]
    assert [setting.loops.action for setting in grid.settings] == ["stop", "rewind", "boost", None]
    assert grid.settings[3].loops.penalty_scope == ("thinking",)
    assert Grid.from_json(json.loads(json.dumps(grid.to_json()))) == grid
    file.write_text("[[setting]]\non_loop = 'halt'\n")
    with pytest.raises(ValueError, match=r"\[\[setting\]\] 1: on_loop must be one of off, stop"):
        read_grid(file)


def test_what_differs_besides_strength_and_draws_is_in_the_kind(tmp_path: Path) -> None:
    """Figures of one kind and strength are added up, which two different penalties must never be."""
    path = tmp_path / "mine.toml"
    path.write_text("""
        [[setting]]
        [[setting]]
        kind = "none"
        on_loop = "trim"
        [[setting]]
        lz_penalty = 0.3
        lz_min_match = [7, 5]
        temperature = [0, 0.6]
        [[setting]]
        kind = "x"
        lz_penalty = [0.1, 0.2]
        lz_window = [40, 200]
        [[setting]]
        lz_penalty = 0
        frequency_penalty = [0.01, 5.0]
    """)
    grid = read_grid(path)
    assert list(dict.fromkeys((setting.kind, setting.strength) for setting in grid.settings)) == [
        ("none", 0),
        ("none-on_loop=trim", 0),
        ("lz_penalty-lz_min_match=7", 0.3),
        ("lz_penalty", 0.3),
        ("x-lz_window=40", 0.1),
        ("x-lz_window=200", 0.1),
        ("x-lz_window=40", 0.2),
        ("x-lz_window=200", 0.2),
        ("frequency_penalty", 0.01),
        ("frequency_penalty", 5),
    ]
    assert len(grid.of_kind("x")) == 4
    for built_in in BUILT_IN:
        for setting in read_grid(built_in).settings:
            assert "=" not in setting.kind


def test_temperatures_that_are_nearly_the_same_are_two_settings(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[[setting]]\ntemperature = [0.6, 0.6000001, 100000.1, 100000.4]\n")
    assert [setting.name for setting in read_grid(path).settings] == [
        "T=0.6",
        "T=0.6000001",
        "T=100000.1",
        "T=100000.4",
    ]
