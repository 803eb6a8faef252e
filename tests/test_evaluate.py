"""`evaluate`: the same files twice, nothing lost or doubled by a kill, and nothing mixed."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import (  # noqa: E402 (needs llama_cpp)
    LzsError,
    Params,
    Results,
    Sampler,
    audit,
    evaluate,
    save,
    sequence_seed,
)
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.decoding.many import Request, generate_many  # noqa: E402
from lzsampler.decoding.transcript import TranscriptFile  # noqa: E402
from lzsampler.errors import ArgumentError  # noqa: E402
from lzsampler.evaluation.evaluate import _context  # noqa: E402
from lzsampler.evaluation.grid import Grid, Setting, paper  # noqa: E402
from lzsampler.evaluation.run_folder import RunFolder  # noqa: E402
from lzsampler.llama import DRY_BREAKERS, dry_breaker_ids, penalties_sampler  # noqa: E402
from lzsampler.llama.model import Model, context_length  # noqa: E402
from lzsampler.llama.vocabulary import with_token_classes  # noqa: E402
from lzsampler.models import default_model, default_prompts, default_tasks  # noqa: E402
from lzsampler.util.files import locked  # noqa: E402
from writings import texts_by_id  # noqa: E402

GRID = Grid(
    "small",
    (
        Setting("none", "none", Params(temperature=0.0)),
        Setting("lz", "lz-rate", Params(temperature=0.0, lz_penalty=0.15), 0.15),
        Setting("warm", "none", Params(temperature=0.9)),
        Setting("dry", "dry", Params(temperature=0.0, dry_multiplier=0.8), 0.8),
    ),
    seeds=(1, 2),
    max_tokens=40,
)
FILES: dict[str, Any] = {"tasks": default_tasks(), "prompts": default_prompts()}
SETTINGS: dict[str, Any] = {**FILES, "grid": GRID, "limit": 3, "n_ctx": 256, "n_parallel": 4, "n_threads": 1}


def page_of(folder: Path) -> str:
    """The report of what a folder holds."""
    save(Results.read(folder), folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("eval") / "whole"
    evaluate(default_model(), path, **SETTINGS)
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "transcripts.jsonl").read_text(encoding="utf-8").splitlines()]


def same(a: Path, b: Path) -> bool:
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in ("transcripts.jsonl", "results.json"))


def test_texts_and_counts(whole: Path) -> None:
    made = lines(whole)
    assert len(made) == 6 * (1 + 1 + 2 + 1)
    tasks = {row["id"]: row for row in map(json.loads, default_tasks().read_text().splitlines())}
    prompts = {row["id"]: row for row in map(json.loads, default_prompts().read_text().splitlines())}
    used = json.loads((whole / "run.json").read_text())["used"]
    assert used == list(dict.fromkeys(transcript["eval"]["prompt"] for transcript in made))
    assert used == [*(list(tasks)[n] for n in (0, 100, 200)), *(list(prompts)[n] for n in (0, 13, 26))]
    params = {setting.name: setting.params for setting in GRID.settings}
    numbers = {name: n for n, name in enumerate(used)}
    with Model(default_model(), n_ctx=256, n_threads=1) as model:
        breakers = dry_breaker_ids(model.llm)
        for transcript in made:
            ours = transcript["eval"]
            row = tasks.get(ours["prompt"]) or prompts[ours["prompt"]]
            asked = row.get("messages") or row["prompt"]
            seed = sequence_seed(ours["seed"], numbers[ours["prompt"]])
            setting = replace(params[ours["setting"]], seed=seed)
            assert transcript["settings"]["seed"] == seed
            assert "lz_separators" not in transcript["settings"]
            assert transcript["settings"]["dry_breakers"] == (list(DRY_BREAKERS) if ours["setting"] == "dry" else [])
            if ours["setting"] == "dry":
                setting = replace(setting, dry_breakers=breakers)
            alone = generate(model, asked, GenerationConfig(setting, max_tokens=40))
            assert transcript["tokens"] == list(alone.tokens)
            assert transcript["messages"][-1]["content"] == alone.content
            assert ours["right"] == (alone.content == row["answer"] if "answer" in row else None)
    results = json.loads((whole / "results.json").read_text())
    for setting in results["settings"]:
        mine = [t for t in made if t["eval"]["setting"] == setting["name"]]
        assert setting["texts"] == len(mine)
        assert setting["looping"] == sum(t["repetition"]["loops"] for t in mine)
        assert setting["right"] == sum(t["eval"]["right"] is True for t in mine)
        assert setting["answered"] == sum(t["eval"]["right"] is not None for t in mine)
        assert setting["tokens"] == sum(len(t["tokens"]) for t in mine)
        answered = [t["eval"]["task"] for t in mine if t["eval"]["answer"] is not None]
        assert {kind: counts["answered"] for kind, counts in setting["tasks"].items()} == Counter(answered)
    assert {s["name"] for s in results["settings"]} == {"none", "lz", "warm", "dry"}


def test_timings_are_in_a_file_of_their_own(whole: Path) -> None:
    rows = [json.loads(line) for line in (whole / "timings.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = {(row["setting"], row["prompt"], row["seed"]): row for row in rows}
    assert len(rows) == len(keys) == 30
    for transcript in lines(whole):
        assert not {"id", "created", "timings"} & set(transcript)
        row = keys[transcript["eval"]["setting"], transcript["eval"]["prompt"], transcript["eval"]["seed"]]
        assert row["tokens"] == len(transcript["tokens"])
        assert min(row["prompt_seconds"], row["decode_seconds"], row["sampling_seconds"]) > 0
    counts = Results.read(whole).counts()
    assert counts.timed_tokens == counts.tokens
    assert 0 < (counts.sampling_share or 0) < 1


def test_a_folder_made_without_timings_goes_on(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "older"
    out.mkdir()
    (out / "run.json").write_bytes((whole / "run.json").read_bytes())
    some = (whole / "transcripts.jsonl").read_bytes().splitlines(keepends=True)[:20]
    (out / "transcripts.jsonl").write_bytes(b"".join(some))
    results = evaluate(default_model(), out, **SETTINGS, resume=True)
    assert same(whole, out)
    assert len((out / "timings.jsonl").read_bytes().splitlines()) == 10
    assert 0 < results.counts().timed_tokens < results.counts().tokens
    page = page_of(out)
    assert "over 10 texts with timings (33 % of all)" in page
    (out / "timings.jsonl").unlink()
    evaluate(default_model(), out, **SETTINGS, resume=True)
    assert (out / "timings.jsonl").read_bytes() == b""
    assert "in the sampler" not in page_of(out).split("</style>")[1]


def test_a_folder_of_an_older_version_goes_on(whole: Path, tmp_path: Path) -> None:
    """It has one hash of all rows, and does not say how answers were compared."""
    out = tmp_path / "older"
    out.mkdir()
    manifest = json.loads((whole / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**manifest, "rows": "5c0ffee5"}))
    rows = lines(whole)[:20]
    for row in rows:
        del row["eval"]["compare"]
    (out / "transcripts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(Results.read(out).outcomes) == 20
    tried: list[int] = []
    evaluate(default_model(), out, **SETTINGS, resume=True, on_text=lambda n, _: tried.append(n))
    assert len(tried) == 10
    assert same(whole, out)


def test_the_object_is_what_the_folder_holds(whole: Path) -> None:
    found = json.loads(json.dumps(Results.read(whole).to_json()))
    assert found == json.loads((whole / "results.json").read_text(encoding="utf-8"))
    assert "<title>lzs eval: 30 texts of" in page_of(whole)


def test_two_runs_give_the_same_files(whole: Path, tmp_path: Path) -> None:
    evaluate(default_model(), tmp_path / "again", **{**SETTINGS, "n_parallel": 7})
    assert same(whole, tmp_path / "again")


def test_two_at_once_do_not_write_the_same_texts(whole: Path, tmp_path: Path) -> None:
    with locked(whole), pytest.raises(LzsError, match="another process is using"):
        evaluate(default_model(), whole, **SETTINGS, resume=True)
    with locked(tmp_path / "new"):  # a lock alone is not somebody's folder
        pass
    evaluate(default_model(), tmp_path / "new", **SETTINGS)
    assert same(whole, tmp_path / "new")


def test_a_kill_loses_what_was_in_hand_and_nothing_else(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    code = f"""
import os, signal
import test_evaluate
from lzsampler import evaluate
from lzsampler.models import default_model
def on_text(done, total):
    if done == 5:
        os.kill(os.getpid(), signal.SIGKILL)
evaluate(default_model(), {str(out)!r}, **test_evaluate.SETTINGS, on_text=on_text)
"""
    file = out / "transcripts.jsonl"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, timeout=120)
    assert done.returncode == -signal.SIGKILL
    kept = lines(out)
    assert 5 <= len(kept) < 30
    with file.open("ab") as half:
        half.write(b'{"eval": {"setting"')  # what a kill in the middle of a write leaves
    with (out / "timings.jsonl").open("ab") as half:
        half.write(b'{"setting')
    counted: list[tuple[int, int]] = []
    evaluate(default_model(), out, **SETTINGS, resume=True, on_text=lambda *n: counted.append(n))
    assert counted == [(n, 30) for n in range(len(kept) + 1, 31)]  # none of those that were there
    assert same(whole, out)
    timings = [json.loads(line) for line in (out / "timings.jsonl").read_text(encoding="utf-8").splitlines()]
    assert 29 <= len(timings) <= 30  # the kill may have come between a transcript and its timing
    evaluate(default_model(), out, **SETTINGS, resume=True, on_text=lambda *_: pytest.fail("all was done"))
    assert same(whole, out)


def test_the_block_of_the_docs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "evaluate.md").read_text(encoding="utf-8")
    block = page.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("| kind ")
    assert "Paired(pairs=4" in done.stdout
    assert (tmp_path / "evaluation.html").read_text(encoding="utf-8") == page_of(tmp_path / "eval-in-python")


def test_nothing_is_mixed(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"already exists: give resume=True to continue it, or another folder as out=$"
    ):
        evaluate(default_model(), whole, **SETTINGS)
    other_grid = Grid("small", GRID.settings[:2], GRID.seeds, GRID.max_tokens)
    for change, name in (
        ({"grid": other_grid}, f"grid (small with max_tokens={GRID.max_tokens}, which has changed since)"),
        (
            {"grid": replace(GRID, name="own", max_tokens=9)},
            f"grid (small with max_tokens={GRID.max_tokens}, now own with max_tokens=9)",
        ),
        ({"n_ctx": 300}, "context (n_ctx=256, now n_ctx=300)"),
    ):
        with pytest.raises(ArgumentError) as raised:
            evaluate(default_model(), whole, **{**SETTINGS, **change}, resume=True)
        how = "continue it as it was started, or give another folder as out="
        assert str(raised.value) == f"{whole} was started with another {name}: {how}"
    other = tmp_path / "other.gguf"
    other.write_bytes(default_model().read_bytes() + b"\0")
    with pytest.raises(ValueError, match=r"was started with another model \(.*\.gguf, now other\.gguf\)"):
        evaluate(other, whole, **SETTINGS, resume=True)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("dear")
    for resume in (True, False):
        with pytest.raises(ValueError, match=r"is not an evaluation folder: give another folder as out=$"):
            evaluate(default_model(), tmp_path / "letters", **SETTINGS, resume=resume)


def test_a_run_killed_before_its_first_file_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    (tmp_path / ".lzs-0123456789abcdef.tmp").touch()
    RunFolder(tmp_path).check(resume=False)
    (tmp_path / "run.json").write_text("[" * 100_000)
    with pytest.raises(LzsError, match="cannot read"):
        RunFolder(tmp_path).manifest()


def test_a_damaged_line_is_named(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "damaged"
    out.mkdir()
    for name in ("run.json", "transcripts.jsonl"):
        (out / name).write_bytes((whole / name).read_bytes())
    rows = (out / "transcripts.jsonl").read_bytes().split(b"\n")
    rows[3] = rows[3][:50]
    wrong = json.loads(rows[4])
    wrong["eval"]["right"] = [1]
    rows[4] = json.dumps(wrong).encode()
    rows[5] = rows[5].decode().encode("utf-16-le")
    (out / "transcripts.jsonl").write_bytes(b"\n".join(rows))
    results = evaluate(default_model(), out, **SETTINGS, resume=True)
    assert [row.line for row in results.bad["transcripts"]] == [4, 5, 6]
    assert (out / "transcripts.jsonl").read_bytes() == (whole / "transcripts.jsonl").read_bytes()
    assert '"damaged: generated again"' in (out / "results.json").read_text()


def test_a_run_that_is_refused_is_not_in_the_way_of_the_next_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="n_parallel"):
        evaluate(default_model(), out, **{**SETTINGS, "n_parallel": 0})
    assert evaluate(default_model(), out, **SETTINGS).outcomes


def test_bad_rows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "a", "prompt": "Once", "answer": "x"}\n{"id": "b"}\n{\n')
    results = evaluate(default_model(), tmp_path / "out", tasks=path, grid=GRID, n_ctx=256, n_parallel=2, n_threads=1)
    assert [row.line for row in results.bad["tasks"]] == [2, 3]
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [row["line"] for row in written["bad_rows"]["tasks"]] == [2, 3]
    assert len(results.outcomes) == 5
    path.write_text("{\n")
    with pytest.raises(ValueError, match="has no tasks: "):
        evaluate(default_model(), tmp_path / "none", tasks=path, grid=GRID)
    with pytest.raises(ValueError, match="nothing to do"):
        evaluate(default_model(), tmp_path / "none", grid=GRID)
    with pytest.raises(ValueError, match="a task and a prompt have the same id, 'add-001'"):
        evaluate(default_model(), tmp_path / "none", tasks=FILES["tasks"], prompts=FILES["tasks"], grid=GRID)
    assert not (tmp_path / "none").exists()


def write_rows(path: Path, rows: dict[str, Any], *, named: bool = True) -> Path:
    """Write rows of a prompt each, or of what is given in its place."""
    made = [{"prompt": row} if isinstance(row, str) else row for row in rows.values()]
    made = [{"id": name, **row} for name, row in zip(rows, made, strict=True)] if named else made
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    return path


def resumed(out: Path, again: bool = True, **files: Any) -> tuple[Results, int]:
    """Return the results, and how many texts were tried."""
    tried: list[int] = []
    results = evaluate(
        default_model(),
        out,
        grid=GRID,
        n_ctx=256,
        n_threads=1,
        resume=again,
        allow_code=True,
        on_text=lambda n, _: tried.append(n),
        **files,
    )
    return results, len(tried)


STORY, TALE, LONG = "Once upon a time", "The captain said", "word " * 400


@pytest.mark.parametrize("named", [True, False])
def test_a_text_that_fails_loses_no_other(tmp_path: Path, named: bool) -> None:
    path, out = tmp_path / "prompts.jsonl", tmp_path / "out"
    long = "long" if named else "prompts:2"
    prompts = {"a": STORY, "long": LONG, "b": TALE}
    write_rows(path, prompts, named=named)
    for again, n in ((False, 15), (True, 5)):
        results, tried = resumed(out, again, prompts=path)
        assert (tried, results.missing, len(results.outcomes)) == (n, 0, 10)
        assert {(each.prompt, each.written) for each in results.failed} == {(long, False)}
        assert results.failure.startswith(f"5 texts failed; the first is {long!r} with 'none': the prompt has 40")
    made = json.loads((out / "results.json").read_text())["failed"]
    assert [(row["setting"], row["seed"]) for row in made] == [
        ("none", 1),
        ("lz", 1),
        ("warm", 1),
        ("warm", 2),
        ("dry", 1),
    ]
    page = page_of(out)
    assert "5 texts failed" in page
    assert "the prompt has 40" in page
    assert Results.read(out).failed == results.failed
    before = (out / "transcripts.jsonl").read_bytes()
    write_rows(path, {"a": STORY, "b": TALE}, named=named)
    results, tried = resumed(out, prompts=path)
    assert (tried, len(results.outcomes), results.failed, results.missing) == (0, 10, (), 0)
    assert (out / "transcripts.jsonl").read_bytes() == before
    assert not (out / "failed.jsonl").exists()
    write_rows(path, {"a": STORY, "long": "A short one now", "b": TALE}, named=named)
    results, tried = resumed(out, prompts=path)
    assert (tried, len(results.outcomes), results.failed) == (5, 15, ())
    assert set(before.splitlines()) < set((out / "transcripts.jsonl").read_bytes().splitlines())


def test_rows_that_changed_are_written_again_and_others_keep_their_noise(tmp_path: Path) -> None:
    path, out = tmp_path / "prompts.jsonl", tmp_path / "out"
    write_rows(path, {"a": STORY, "b": TALE, "c": "A dog"})
    resumed(out, False, prompts=path)
    first = {tuple(row["eval"][k] for k in ("setting", "prompt", "seed")): row for row in lines(out)}
    write_rows(path, {"b": TALE, "c": "A cat", "d": STORY})
    results, tried = resumed(out, prompts=path)
    assert tried == 10
    assert {outcome.prompt for outcome in results.outcomes} == {"b", "c", "d"}
    now = {tuple(row["eval"][k] for k in ("setting", "prompt", "seed")): row for row in lines(out)}
    assert {key for key in first if first[key] == now.get(key)} == {key for key in first if key[1] != "c"}
    assert now["warm", "d", 1]["settings"]["seed"] == sequence_seed(1, 3)  # no other row had that number
    assert now["warm", "c", 1]["settings"]["seed"] == sequence_seed(1, 2)
    assert len(Results.read(out).outcomes) == 15  # not those of "a", which are kept
    write_rows(path, {"a": STORY, "b": TALE})
    results, tried = resumed(out, prompts=path)
    assert (tried, len(results.outcomes)) == (0, 10)


def test_an_answer_that_changed_is_compared_again(tmp_path: Path) -> None:
    path, out = tmp_path / "tasks.jsonl", tmp_path / "out"
    row = {"prompt": STORY, "answer": "nothing like it", "compare": "contains"}
    write_rows(path, {"a": row})
    assert resumed(out, False, tasks=path)[0].counts().accuracy == 0
    write_rows(path, {"a": {**row, "answer": ".", "compare": "regex"}})
    results, tried = resumed(out, tasks=path)
    assert (tried, results.counts().accuracy) == (0, 1)
    fresh, _ = resumed(tmp_path / "fresh", False, tasks=path)
    assert fresh.counts().accuracy == 1
    assert same(out, tmp_path / "fresh")


SCORERS = """
import sys, time
def raises(content, answer): return {}["no such key"]
def nothing(content, answer): "It has no return."
def words(content, answer): return "yes"
def ends(content, answer): sys.exit(0)
def sleeps(content, answer):
    while True:
        try:
            time.sleep(60)
        except Exception:
            pass
def right(content, answer): return True
"""


def test_a_scorer_that_fails_loses_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scorers_that_fail.py").write_text(SCORERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("lzsampler.evaluation.score.PATIENCE", 0.3)
    path, out = tmp_path / "tasks.jsonl", tmp_path / "out"
    reasons = {
        "raises": "KeyError: 'no such key'",
        "nothing": "it returned None, which is neither True nor False",
        "words": "it returned 'yes', which is neither True nor False",
        "ends": "SystemExit: 0",
        "sleeps": "it took longer than 0.3 s",
    }
    every = {name: f"scorers_that_fail:{name}" for name in (*reasons, "right")}
    rows: dict[str, Any] = {name: {"prompt": STORY, "answer": "x", "compare": way} for name, way in every.items()}
    rows["pattern"] = {"prompt": STORY, "answer": "(([a-z ]|[ a-z])*)*~", "compare": "regex"}
    rows["no such module"] = {"prompt": STORY, "answer": "x", "compare": "scorers_that_are_not_there:f"}
    results, _ = resumed(out, False, tasks=write_rows(path, rows))
    assert len(results.outcomes) == 5 * 7
    assert [row.line for row in results.bad["tasks"]] == [8]
    said = {each.prompt: each.reason for each in results.failed}
    assert said == {
        **{name: f"scorers_that_fail:{name} failed: {reason}" for name, reason in reasons.items()},
        "pattern": "regex failed: it took longer than 0.3 s",
    }
    assert all(each.written for each in results.failed)
    assert (results.counts().answered, results.counts().accuracy) == (5, 1)
    assert "30 texts with an answer that could not be compared" in page_of(out)
    for name in rows:
        rows[name] |= {"compare": every["right"]}
    results, tried = resumed(out, tasks=write_rows(path, rows))
    assert (tried, results.failed, results.counts().accuracy) == (5, (), 1)  # 5 of the row that was bad


def test_a_run_without_a_text_has_results(tmp_path: Path) -> None:
    results, _ = resumed(tmp_path / "out", False, prompts=write_rows(tmp_path / "prompts.jsonl", {"long": LONG}))
    assert (len(results.outcomes), len(results.failed)) == (0, 5)
    assert "5 texts failed" in page_of(tmp_path / "out")


def test_a_full_disk_loses_no_text_that_was_written(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "full"
    append = TranscriptFile.append
    written: list[Any] = []

    def fills_up(self: Any, transcript: Any) -> None:
        if len(written) == 7:
            raise LzsError("cannot save the transcript: No space left on device")
        if "eval" in transcript:
            written.append(transcript)
        append(self, transcript)

    monkeypatch.setattr(TranscriptFile, "append", fills_up)
    with pytest.raises(LzsError, match="No space left"):
        evaluate(default_model(), out, **SETTINGS)
    monkeypatch.undo()
    assert len(lines(out)) == 7
    evaluate(default_model(), out, **SETTINGS, resume=True)
    assert same(whole, out)
    if os.geteuid():  # root writes anywhere
        out.chmod(0o500)
        with pytest.raises(LzsError, match="cannot write to"):
            evaluate(default_model(), out / "deeper", **SETTINGS)


def test_prompts_have_noise_of_their_own_and_settings_have_the_same(tmp_path: Path) -> None:
    """With one seed for all, prompts that are alike would have one text; two settings that do the same still agree."""
    rows = [{"id": name, "prompt": "Once upon a time there was"} for name in "abc"]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    warm = Params(temperature=1.5)
    grid = Grid("g", (Setting("one", "none", warm), Setting("two", "none", replace(warm, top_k=10**6))), (1, 2), 30)
    evaluate(default_model(), tmp_path / "out", prompts=path, grid=grid, n_ctx=256, n_threads=1)
    texts = {tuple(t["eval"][k] for k in ("setting", "prompt", "seed")): t["tokens"] for t in lines(tmp_path / "out")}
    for prompt in "abc":
        for seed in (1, 2):
            assert texts["one", prompt, seed] == texts["two", prompt, seed]
    assert len({tuple(text) for text in texts.values()}) == 6


def test_dry_ends_a_greedy_loop() -> None:
    with Model(default_model(), n_ctx=512) as model:
        dry = Params(temperature=0.0, dry_multiplier=0.8, dry_breakers=dry_breaker_ids(model.llm))
        prompt = "Between Barton and Delaford, there was that"
        requests = [
            Request(name, prompt, GenerationConfig(params, max_tokens=300))
            for name, params in (("dry", dry), ("off", replace(dry, dry_multiplier=0.0)))
        ]
        texts = {name: made.text for name, made in texts_by_id(generate_many(model, requests)).items()}
    assert audit(texts["off"]).looping
    assert not audit(texts["dry"]).looping


def test_breakers_of_a_setting_are_those_that_it_names(tmp_path: Path) -> None:
    dry = Params(temperature=0.0, dry_multiplier=0.8)
    lz = Params(temperature=0.0, lz_penalty=1.0, lz_min_match=2)
    settings = (
        Setting("own", "dry", dry, 0.8, ("e", "\n")),
        Setting("none", "dry", dry, 0.8, ()),
        Setting("usual", "dry", dry, 0.8),
        Setting("lz", "lz", lz, 1.0, ("e",)),
    )
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"id": "a", "prompt": "Between Barton and Delaford, there was that"}\n')
    evaluate(
        default_model(), tmp_path / "out", prompts=path, grid=Grid("g", settings, (1,), 60), n_ctx=256, n_threads=1
    )
    made = lines(tmp_path / "out")
    strings = [transcript["settings"]["dry_breakers"] for transcript in made]
    assert strings == [["e", "\n"], [], list(DRY_BREAKERS), []]
    with Model(default_model(), n_ctx=256, n_threads=1) as model:
        tokens = [dry_breaker_ids(model.llm, ["e", "\n"]), (), dry_breaker_ids(model.llm)]
        params = [*(replace(dry, dry_breakers=ids) for ids in tokens), with_token_classes(model.llm, lz)]
        assert params[-1].lz_separators
        for transcript, given in zip(made, params, strict=True):
            seeded = replace(given, seed=transcript["settings"]["seed"])
            alone = generate(model, transcript["prompt"], GenerationConfig(seeded, max_tokens=60))
            assert transcript["tokens"] == list(alone.tokens)
    assert made[0]["tokens"] != made[1]["tokens"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            Setting("own", "dry", Params(dry_multiplier=0.8), 0.8, ("zqzqzq",)),
            "no token of this vocabulary contains 'zqzq",
        ),
        (Setting("own", "none", Params(logit_bias={4096: 1.0})), "logit_bias must be tokens below 4096"),
    ],
)
def test_a_setting_that_does_not_fit_the_model_shows_before_the_work(
    setting: Setting, message: str, tmp_path: Path
) -> None:
    grid = Grid("g", (GRID.settings[0], setting))
    with pytest.raises(ValueError, match=rf"the setting 'own' does not fit tale-7m-q8_0\.gguf: {message}"):
        evaluate(default_model(), tmp_path / "out", **{**SETTINGS, "grid": grid})
    assert not (tmp_path / "out" / "run.json").exists()


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_baseline_is_the_dry_of_llama_cpp(temperature: float) -> None:
    """Its penalties in llama.cpp's chain pick what llama.cpp's own DRY there picks, bit for bit."""
    (setting,) = [s for s in paper().settings if s.kind == "dry" and s.params.temperature == 0]
    with Model(default_model(), n_ctx=512, n_threads=1) as model:
        params = replace(setting.params, dry_breakers=dry_breaker_ids(model.llm), temperature=1.0)
        ours, theirs = llama_cpp._internals.LlamaSampler(), llama_cpp._internals.LlamaSampler()
        llama_cpp.llama_sampler_chain_add(ours.sampler, penalties_sampler(Sampler(model.n_vocab, params)))
        more = {"n_ctx_train": 512} if "n_ctx_train" in signature(theirs.add_dry).parameters else {}
        theirs.add_dry(
            model=model.llm._model, dry_multiplier=0.8, dry_base=1.75, dry_allowed_length=2, dry_penalty_last_n=512,
            **more, seq_breakers=list(DRY_BREAKERS),
        )  # fmt: skip
        for chain in (ours, theirs):
            if temperature == 0:
                chain.add_greedy()
                continue
            chain.add_top_k(40)
            chain.add_top_p(0.95)
            chain.add_temp(temperature)
            chain.add_dist(3)
        model.decode(model.tokenize("Between Barton and Delaford, there was that"))
        for _ in range(300):
            token = llama_cpp.llama_sampler_sample(ours.sampler, model.llm.ctx, -1)  # which accepts it, too
            assert token == llama_cpp.llama_sampler_sample(theirs.sampler, model.llm.ctx, -1)
            model.decode((token,))
        ours.close()
        theirs.close()


def test_texts_cannot_end_where_the_grid_forbids_it(tmp_path: Path) -> None:
    """The answer to a sum has a few tokens; with the end forbidden every text has all of max_tokens."""
    lz = Setting("lz", "lz-rate", Params(temperature=0.0, lz_rule="paper", lz_penalty=1.0, lz_buffer=4), 1.0)
    settings = (GRID.settings[0], lz)
    grid = Grid("long", settings, max_tokens=60, ignore_eos=True)
    given: dict[str, Any] = {"tasks": FILES["tasks"], "limit": 2, "n_ctx": 256, "n_threads": 1}
    results = evaluate(default_model(), tmp_path / "out", grid=grid, **given)
    made = lines(tmp_path / "out")
    assert [len(row["tokens"]) for row in made] == [60] * 4
    assert {row["finish_reason"] for row in made} == {"length"}
    assert all(row["settings"]["ignore_eos"] and row["settings"]["logit_bias"] == [] for row in made)
    assert results.counts().capped == 4
    ends = evaluate(default_model(), tmp_path / "ends", grid=replace(grid, ignore_eos=False), **given)
    assert 0 < ends.counts().ended <= 4
    with pytest.raises(ValueError, match="was started with another grid"):
        evaluate(default_model(), tmp_path / "out", grid=replace(grid, ignore_eos=False), **given, resume=True)
    with Model(default_model(), n_ctx=256, n_threads=1) as model:
        row = json.loads(default_tasks().read_text().splitlines()[0])
        alone = generate(model, row["messages"], GenerationConfig(lz.params, max_tokens=60, ignore_eos=True))
    texts = {(row["eval"]["setting"], row["eval"]["prompt"]): row["tokens"] for row in made}
    assert texts["lz", row["id"]] == list(alone.tokens)


def test_the_context_follows_the_grid() -> None:
    """The model was trained with 1,024 tokens, and another file says that it was with more."""
    grid = replace(GRID, max_tokens=4096)
    assert _context(default_model(), GRID) is None
    assert _context(default_model(), replace(GRID, max_tokens=-1)) is None
    with Model(default_model()) as model:
        assert _context(default_model(), grid) == model.n_ctx == context_length(model.header)


def test_a_large_context_leaves_room_for_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lzsampler.evaluation.evaluate.context_length", lambda header: 8192)
    assert _context(default_model(), replace(GRID, max_tokens=4096)) == 4096 + 1024
    assert _context(default_model(), replace(GRID, max_tokens=3072)) is None
    assert _context(default_model(), replace(GRID, max_tokens=100_000)) == 8192


def test_tasks_and_prompts_need_no_ids(tmp_path: Path) -> None:
    """The first command of docs/evaluate.md, with rows of GSM8K, which have no ids."""
    tasks, prompts = tmp_path / "t.jsonl", tmp_path / "p.jsonl"
    tasks.write_text('{"question":"1+1?","answer":"#### 2"}\n')
    prompts.write_text('{"prompt":"Once"}\n')
    grid = replace(GRID, settings=GRID.settings[:1], max_tokens=4)
    results = evaluate(
        default_model(), tmp_path / "out", tasks=tasks, prompts=prompts, grid=grid, n_ctx=64, n_threads=1
    )
    assert [outcome.prompt for outcome in results.outcomes] == ["tasks:1", "prompts:1"]
