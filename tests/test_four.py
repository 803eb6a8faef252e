"""`compare`, `four` and `lzs bench --four`: figures that fit together, and what is refused. No time is asserted."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llama_cpp")

from lzsampler import LzsError, Params, generate, sequence_seed
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft
from lzsampler.decoding.speedup import ClockedModel, Timed, Way, compare, decode_cost
from lzsampler.llama import gguf
from lzsampler.llama.model import Model
from lzsampler.llama.rounding import RoundingWarning
from lzsampler.models import default_draft, default_model
from lzsampler.quantizing.four import ARTICLE, WAYS, Four, four, memory_bandwidth, read_bytes
from lzsampler.reports.four_svg import picture

LZS = Path(sys.executable).with_name("lzs")
PROMPTS = ["Once upon a time", "The captain said"]
BRIEF = ["-n", "6", "--rounds", "2", "-t", "1"]


@pytest.fixture(scope="module")
def target() -> Iterator[Model]:
    with Model(default_model(), n_ctx=128, n_threads=1, flash_attn=True) as model:
        yield model


@pytest.fixture(scope="module")
def small() -> Iterator[Model]:
    with ClockedModel(default_draft(), n_ctx=128, n_threads=1, flash_attn=True) as model:
        yield model


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Four:
    """With a look at the temporary files: while texts are written there are none, so that no signal can leave any."""
    folder = tmp_path_factory.mktemp("temporary")
    files: dict[str, list[Path]] = {}

    def look(stage: str, done: int, total: int) -> None:
        files[stage] = list(folder.glob("*/*"))

    # The weights are of BF16, which llama.cpp multiplies in another order for several tokens.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        with pytest.warns(RoundingWarning, match="weights such as Q8_0"):
            found = four(
                default_model(),
                default_draft(),
                PROMPTS,
                max_tokens=8,
                pairs=2,
                n_ctx=128,
                n_threads=1,
                on_progress=look,
            )
    assert list(files) == ["writing BF16", "writing MXFP4", "measuring the memory", "texts"]
    assert files["writing MXFP4"]
    assert not files["texts"]
    assert not list(folder.iterdir())
    return found


def test_each_pair_has_its_prompt_and_its_seed_in_all_ways(target: Model, small: Model) -> None:
    params = Params.recommended(target, temperature=0.9, seed=4)
    seen: list[tuple[int, int]] = []
    ways = {"plain": Way(target, params), "drafted": Way(target, params, Draft(small, n_max=3))}
    timed = compare(ways, PROMPTS, pairs=3, max_tokens=20, on_progress=lambda *done: seen.append(done))
    assert seen[-1] == (6, 6)
    written = [
        generate(
            target,
            PROMPTS[i % 2],
            GenerationConfig(Params.recommended(target, temperature=0.9, seed=sequence_seed(4, i)), max_tokens=20),
        ).tokens
        for i in range(3)
    ]
    assert timed["plain"].tokens == timed["drafted"].tokens == sum(map(len, written))
    assert timed["drafted"].same == 1
    assert timed["plain"].speedup == timed["plain"].speedup_whole == (1, 1, 1)
    assert (timed["plain"].tokens_per_call, timed["plain"].drafted_per_call) == (1, 0)
    assert 0 < timed["drafted"].acceptance < 1 < timed["drafted"].tokens_per_call
    for one in timed.values():
        assert one.draft_share + one.target_share + one.other_share == pytest.approx(1)
        assert 0 < one.other_share < 1
        assert one.ms[0] <= one.ms[1] <= one.ms[2]
        assert one.ms_whole[0] <= one.ms_whole[1] <= one.ms_whole[2]


def test_shares_are_those_of_the_decodes(target: Model, small: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that takes its time has its share, and its prompt is decoded anew for every text."""
    decode, lengths = Model._decode, list[int]()

    def slow(self: Model, tokens: list[int], wanted: object = None) -> None:
        if self is small:
            lengths.append(len(tokens))
            time.sleep(0.05)
        decode(self, tokens, wanted)

    monkeypatch.setattr(Model, "_decode", slow)
    params = Params.recommended(target, temperature=0.0)
    ways = {"plain": Way(target, params), "drafted": Way(target, params, Draft(small, n_max=2))}
    timed = compare(ways, PROMPTS[:1], pairs=2, max_tokens=8)
    assert timed["drafted"].draft_share > 0.5
    assert timed["plain"].draft_share == 0
    n = len(target.tokenize(PROMPTS[0]))
    assert sum(length >= n for length in lengths) == 3  # two pairs and the one to warm up


def test_what_a_decode_of_several_tokens_costs(target: Model, small: Model) -> None:
    past = target.tokenize("Once upon a time")
    cost = decode_cost({"target": target, "draft": small}, past, (2, 4), rounds=3)
    assert set(cost) == {"target", "draft"}
    for one in cost.values():
        assert set(one.relative) == {2, 4}
        assert 0 < one.ms[0] <= one.ms[1] <= one.ms[2]
    assert target.past == past


def test_nothing_to_compare(target: Model) -> None:
    way = Way(target, Params())
    with pytest.raises(ValueError, match="compare needs ways and prompts"):
        compare({}, PROMPTS)
    with pytest.raises(ValueError, match="compare needs ways and prompts"):
        compare({"plain": way}, [])
    with pytest.raises(ValueError, match="pairs must be from 2"):
        compare({"plain": way}, PROMPTS, pairs=1)
    with pytest.raises(ValueError, match="max_tokens must be from 2"):
        compare({"plain": way}, PROMPTS, max_tokens=1)


def test_four_ways(made: Four) -> None:
    assert tuple(made.ways) == tuple(made.bounds) == tuple(made.weights) == WAYS
    assert (made.target, made.type, made.converted) == ("tale-7m-q8_0.gguf", "BF16", True)
    assert made.weights["speculation"] == made.weights["base"] > 2.5 * made.weights["MX"]
    assert made.ways["speculation"].drafted_per_call > 0 == made.ways["MX"].drafted_per_call
    for name, way in made.ways.items():
        read = made.weights[name] + way.drafted_per_call * made.draft_weights
        assert made.bounds[name] == pytest.approx(made.bandwidth * way.tokens_per_call / read)
    assert json.loads(json.dumps(made.to_json()))["article"]["speculation"] == list(ARTICLE["speculation"])


def test_what_a_decode_reads() -> None:
    header = gguf.read(default_model())
    everything = sum(tensor.bytes or 0 for tensor in header.tensors)
    assert read_bytes(header) == everything  # its embeddings are its output
    assert memory_bandwidth(1) > 1e8


def test_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> dict[str, Timed]:
        raise AssertionError

    monkeypatch.setattr("lzsampler.quantizing.four.compare", none)
    with pytest.raises(ValueError, match="n_max must be from 1 to 32, got 0"):
        four(default_model(), default_draft(), PROMPTS, n_max=0)
    with pytest.raises(ValueError, match="does not exist"):
        four(default_model(), tmp_path / "none.gguf", PROMPTS)
    with pytest.raises(ValueError, match=r"a prompt of 3 tokens and 62 more do not fit in the context of 64"):
        four(default_model(), default_draft(), [np.array([5, 6, 7], np.int32)], n_ctx=64, max_tokens=62)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(LzsError, match="no folder for temporary files can be made: No such file or directory; set"):
        four(default_model(), default_draft(), PROMPTS)


def test_a_draft_that_is_larger_is_warned_of_before_the_measurement() -> None:
    said: list[str] = []
    with pytest.warns(RoundingWarning, match="weights such as Q8_0"):
        four(
            default_draft(), default_model(), PROMPTS, max_tokens=2, pairs=2, n_ctx=128, n_threads=1,
            on_progress=lambda stage, *_: said.append(stage), on_note=said.append,
        )  # fmt: skip
    notes = [line for line in said if "even if every token is accepted" in line]
    assert len(notes) == 1
    assert notes[0].startswith(
        f"the draft {default_model().name} is larger than {default_draft().name} in BF16: by their"
    )
    assert said.index(notes[0]) < said.index("texts")


def test_the_picture(made: Four) -> None:
    root = ET.fromstring(picture(made))
    said = " ".join(text for text in root.itertext())
    for name in WAYS:
        assert f"{made.ways[name].speedup[1]:.2f}" in said
    assert "article: 1.5 to 2" in said
    assert "prefers-color-scheme: dark" in said
    boxes = [float(rect.get("x", 0)) + float(rect.get("width", 0)) for rect in root.iter() if rect.tag.endswith("rect")]
    assert max(boxes) < int(root.get("width", 0))


def lzs_four(*arguments: str, temporary: Path) -> "subprocess.CompletedProcess[str]":
    command = [str(LZS), "bench", "--four", *BRIEF, *arguments]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)


def test_command(tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(
        '{"prompt": "Once upon a time"}\n{"messages": [{"role": "user", "content": "What is 2 + 3?"}]}\n'
    )
    drawn = tmp_path / "four.svg"
    done = lzs_four("-md", "tale-1m", "--prompts", str(prompts), "-o", str(drawn), temporary=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split() == list(WAYS))
    rows = lines[head + 1 :]
    assert "base BF16, converted for this" in " ".join(lines[:head])
    table, foot = rows[:12], " ".join(rows[12:])
    assert [row[:22].strip() for row in table][::11] == ["tokens a second", "the article"]
    assert table[-1].split()[2:] == ["1", "2", "1.5", "to", "2", "4"]
    assert "Figures 7 and 8" in foot
    assert "docs/speculative.md" in foot
    assert max(map(len, rows)) <= 80
    assert drawn.read_text().startswith("<svg")
    assert not list(folder.iterdir())
    done = lzs_four("-md", "tale-1m", "--json", "--spec-draft-n-max", "2", "--temp", "0.7", temporary=folder)
    found = json.loads(done.stdout)
    assert (found["n_max"], found["texts"], found["params"]["temperature"]) == (2, 2, 0.7)
    assert set(found["ways"]) == set(WAYS)


def test_ctrl_c_leaves_no_file(tmp_path: Path) -> None:
    command = [str(LZS), "bench", "--four", "-md", "tale-1m", "-t", "1", "--rounds", "2000"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        while not list(tmp_path.glob(".lzs-*.tmp/*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--four"], "--four needs a draft: add -md FILE"),
        (["-md", "tale-1m"], "--model-draft has no effect without --four"),
        (["--prompts", "x"], "--prompts has no effect without --four"),
        (["-o", "x.svg"], "--output has no effect without --four"),
        (["--four", "-md", "tale-1m", "--batch", "2"], "--batch has no effect with --four"),
        (["--four", "-md", "tale-1m", "--mlock"], "--mlock has no effect with --four"),
        (["--four", "-md", "tale-1m", "-o", "x.png"], "cannot write x.png: its name must end in .svg"),
        (["--four", "-md", "tale-1m", "--prompts", "none.jsonl"], "cannot read none.jsonl"),
        (["--four", "-md", "tale-1m", "-p", "a", "--prompts", "b"], "-p and --prompts both give prompts"),
        (["--four", "-md", "tale-1m", "--spec-draft-n-max", "33"], "--spec-draft-n-max must be from 1 to 32, got 33"),
        (["--four", "-md", "none.gguf"], "none.gguf does not exist"),
        (["--four", "-md", "tale-1m", "-p", ""], "the prompt is empty"),
        (["--four", "-md", "tale-1m", "-n", "1"], "--n-predict must be from 2"),
    ],
)
def test_bad_arguments_of_the_command(arguments: list[str], said: str) -> None:
    command = [str(LZS), "bench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith(f"lzs: {said}")
    assert done.stderr.count("\n") <= 2
