"""`evaluate`: runs a grid of settings over tasks and prompts, and returns `Results`.

The transcript of every finished text is written to a work folder (`RunFolder`), and `Results` are read from the folder.
A resumed run generates only the missing texts. Two runs of one grid give the same files, except for `timings.jsonl`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..auditing.repetition import repetition
from ..decoding.config import GenerationConfig
from ..decoding.draft import Draft, Speculated
from ..decoding.generation import Generation
from ..decoding.many import Request, generate_many, refuse_shared
from ..decoding.transcript import TranscriptFile, record
from ..errors import ArgumentError, LzsError
from ..llama import gguf
from ..llama.attention import FlashAttention
from ..llama.model import DEFAULT_CONTEXT, Model, Prompt, context_length
from ..llama.vocabulary import DRY_BREAKERS
from ..params import Params
from ..sampler import sequence_seed
from ..util.files import locked
from ..util.json_text import write_json
from .cost import Meter
from .cost_folder import cost_folder
from .cost_texts import BadFile, read_texts
from .costs import SKIP, charges_of
from .fitting import params_for
from .grid import Grid, Setting, read_grid
from .input_rows import known, read_rows
from .judge import Judge, judge_folder, refuse_another
from .results import Results
from .run_folder import FAILED, JUDGED, RUN, TIMINGS, TRANSCRIPTS, VERSION, Key, RunFolder, digest, sha256
from .tasks import BadRow, Task

_PROMPT_ROOM = 1024  # tokens for the prompt, if the context depends on the grid's ``max_tokens``
_NOT_THE_SAME_TWICE = ("id", "created", "timings")  # keys of a transcript that differ between two runs of one grid


def evaluate(
    model: str | Path,
    out: str | Path,
    *,
    tasks: str | Path | None = None,
    prompts: str | Path | None = None,
    grid: Grid | str | Path = "quick",
    limit: int | None = None,
    n_ctx: int | None = None,
    n_parallel: int = 16,
    n_threads: int | None = None,
    resume: bool = False,
    allow_code: bool = False,
    judge: str | Path | None = None,
    texts: str | Path | Sequence[str | Path] | None = None,
    flash_attn: FlashAttention = "auto",
    draft: Draft | None = None,
    on_text: Callable[[int, int], object] | None = None,
    on_judged: Callable[[int, int], object] | None = None,
    on_scored: Callable[[int, int], object] | None = None,
) -> Results:
    """Generate a text for every setting, prompt and seed of a grid, and return the results.

    ``model`` and ``judge``: a GGUF file, or the name of a model such as "smollm2" (`lzsampler.models`).

    ``out``: the work folder (docs/evaluate.md). The folder must not exist yet. With ``resume`` it may exist if it is of
    the same model, grid and context. ``tasks`` and ``prompts``: JSON Lines files (`read_tasks`). ``limit``: how many
    rows of each file to use, spread evenly over the file (`spread`). run.json names the rows in use. If rows change
    before a run is resumed, the texts of unchanged rows still count. ``allow_code``: import and call the functions that
    tasks name as ``module:function``. Without ``allow_code``, such a task is an error. ``n_ctx``: the context of each
    text, in tokens. None means `Model`'s default, or more if the texts of the grid need more. 0 means the context that
    the model was trained with. ``n_parallel``: how many texts are decoded at a time (`generate_many`). ``on_text`` is
    called with (done, all) after each text.

    A setting with random choices gives a text for each prompt and seed. A greedy setting gives one text for each
    prompt. The random numbers of a text come from `sequence_seed` of the seed and the prompt's number (from 0, tasks
    first). They are the same for all settings (common random numbers). Each text is written to the disk as soon as it
    ends. If a line of a resumed folder is damaged, the results name the line, and its text is
    generated again. ``judge``: a GGUF model that says at the end whether each text is degenerate (`Judge`);
    ``on_judged`` is called like ``on_text``. At the end results.json is written to the folder; `lzsampler.save` writes
    the report.

    ``texts``: files and folders of reference texts, on which the cost of the penalties is measured as in `cost`;
    ``on_scored`` is called with (characters done, all characters). The costs are stored and resumed like the texts.
    ``flash_attn``: see `Model`. ``draft``: proposes tokens (`generate_many`). A draft changes no text, so the
    transcripts do not mention it. timings.jsonl has the draft's statistics for each text. ``speculated`` of the results
    has their sums over all texts that this call generates.

    A text fails if it cannot be generated, for example because its prompt is longer than the context, or if its answer
    cannot be compared. Failed texts are in ``failed`` of the results; ``resume`` tries them again.

    ValueError for bad arguments, for a grid that does not fit the model, and for the folder of a different run.
    LzsError if a file, the model or the disk fails.
    """
    chosen = grid if isinstance(grid, Grid) else read_grid(grid)
    rows, bad = read_rows({"tasks": tasks, "prompts": prompts}, limit, allow_code=allow_code)
    right, unread = ([], []) if texts is None else read_texts(texts)
    if texts is not None and not right:
        raise ArgumentError(f"there is no text to score: {unread[0]}" if unread else "there is no text to score")
    folder = RunFolder(out)
    folder.check(resume=resume)
    if judge is not None:
        with Judge(judge, n_threads=n_threads) as judging:  # finds errors of the judge before any text is generated
            refuse_another(judging, folder)
    with ExitStack() as lock:
        with Model(model, n_ctx=_context(model, chosen) if n_ctx is None else n_ctx, flash_attn=flash_attn) as opened:
            if draft is not None:
                refuse_shared(opened, draft)  # raises an error before the folder is made
            params = {
                setting.name: params_for(opened, setting.name, setting.params, setting.dry_breakers)
                for setting in chosen.settings
            }
            lock.enter_context(locked(folder.path))
            before = folder.rows()
            rows = known(rows.values(), before)
            all_rows = {**before, **{name: digest(task.prompt) for name, task in rows.items()}}
            if unread:
                bad["texts"] = [_bad_text(each) for each in unread]
            manifest = _manifest(opened, chosen, rows, all_rows, limit, bad)
            begun = {**manifest, "unscored": len(right)} if right else manifest
            lock.enter_context(folder.claimed(begun, resume=resume))
            keys = list(_keys(chosen, rows))
            settings = {setting.name: setting for setting in chosen.settings}
            numbers = {row: number for number, row in enumerate(all_rows)}
            speculated = None if draft is None else Speculated()
            with (
                TranscriptFile(folder.path / TRANSCRIPTS) as transcripts,
                TranscriptFile(folder.path / TIMINGS) as timings,
            ):
                done, damaged = _done(folder, transcripts, set(keys), settings, rows)
                if damaged:
                    bad["transcripts"] = damaged
                requests = (
                    _request(chosen, settings[key[0]], key, rows[key[1]].prompt, params[key[0]], numbers[key[1]])
                    for key in keys
                    if key not in done
                )
                n_done = len(done)
                for request, generation in generate_many(
                    opened, requests, n_parallel=n_parallel, n_threads=n_threads, draft=draft
                ):
                    if isinstance(generation, Exception):
                        with TranscriptFile(folder.path / FAILED) as failed:
                            failed.append({**_named(request.id), "error": str(generation)})
                    else:
                        setting, task = settings[request.id[0]], rows[request.id[1]]
                        transcripts.append(_transcript(opened, request, setting, task, generation))
                        timings.append(_timing(request.id, generation))
                        if speculated is not None:
                            speculated.add(generation.speculated)
                    n_done += 1
                    if on_text is not None:
                        on_text(n_done, len(keys))
            if right:
                meter = Meter(opened, charges_of(chosen), skip=SKIP, on_progress=on_scored)
                unread += cost_folder(meter, folder, right)
            if unread:
                bad["texts"] = [_bad_text(each) for each in unread]
        folder.sort(TRANSCRIPTS, keys)
        folder.sort(FAILED, keys)
        if judge is not None:
            with Judge(judge, n_threads=n_threads) as judging:
                try:
                    judge_folder(judging, folder, on_text=on_judged)
                except LzsError as error:  # texts without a verdict get one when the run is resumed
                    bad["judge"] = [BadRow(0, str(error))]
            folder.sort(JUDGED, keys)
        folder.write(RUN, {**manifest, "bad_rows": _kept(bad)})
        results = Results.read(folder.path)
        results = replace(results, bad={**results.bad, **bad}, speculated=speculated)
        write_json(folder.path / "results.json", results.to_json())
    return results


# ---- the work to do ----


def _bad_text(found: BadFile) -> BadRow:
    return BadRow(0, str(found))  # line 0, because the reason names the line and the file


def _done(
    folder: RunFolder,
    transcripts: TranscriptFile,
    keys: Set[Key],
    settings: Mapping[str, Setting],
    rows: Mapping[str, Task],
) -> tuple[set[Key], list[BadRow]]:
    """Return the keys of the finished texts, and the damaged lines, whose texts are generated again.

    If the task of a text has changed its answer or comparison, or if the comparison failed, compare the text again.
    """
    is_current = folder.is_current()
    done: set[Key] = set()
    again: set[Key] = set()
    damaged: list[BadRow] = []
    for line in folder.lines(TRANSCRIPTS):
        if line.key is None or line.row is None:
            damaged.append(BadRow(line.number, "damaged: generated again"))
        elif line.key in keys and is_current(line):
            done.add(line.key)
            found, task = line.row["eval"], rows[line.key[1]]
            now = _compared(task)
            if line.key not in again and ("error" in found or not now.items() <= found.items()):
                again.add(line.key)
                content = line.row["messages"][-1]["content"]
                transcripts.append({**line.row, "eval": _eval(settings[line.key[0]], line.key, task, content)})
    return done, damaged


def _keys(grid: Grid, rows: Mapping[str, Task]) -> Iterator[Key]:
    """Yield the keys prompt by prompt, so that the settings share the cache of the prompt."""
    for row in rows:
        for setting in grid.settings:
            for seed in grid.seeds if setting.draws else grid.seeds[:1]:
                yield setting.name, row, seed


def _context(model: str | Path, grid: Grid) -> int | None:
    """Return the context that the texts of a grid need, in tokens; None if the default context is enough."""
    needed = grid.max_tokens + _PROMPT_ROOM
    return None if needed <= DEFAULT_CONTEXT else min(needed, context_length(gguf.read(model)))


def _request(grid: Grid, setting: Setting, key: Key, prompt: Prompt, params: Params, number: int) -> Request:
    """Return the request for a text. ``params``: from `params_for`. ``number``: the row's number, for the seed."""
    params = replace(params, seed=sequence_seed(key[2], number))
    config = GenerationConfig(params, max_tokens=grid.max_tokens, ignore_eos=grid.ignore_eos, on_loop=setting.loops)
    return Request(key, prompt, config)


def _transcript(model: Model, request: Request, setting: Setting, task: Task, generation: Generation) -> dict[str, Any]:
    """Return the transcript of a text, without the keys that differ in every run."""
    whole = record(
        model,
        task.prompt,
        request.config,
        generation,
        repetition(generation.text).to_json(),
        dry_breakers=DRY_BREAKERS if setting.dry_breakers is None else setting.dry_breakers,
    )
    ours = _eval(setting, request.id, task, generation.content)
    return {"eval": ours, **{name: value for name, value in whole.items() if name not in _NOT_THE_SAME_TWICE}}


def _eval(setting: Setting, key: Key, task: Task, content: str) -> dict[str, Any]:
    """Return the ``eval`` entry of a transcript: the text's key, and whether its answer is correct.

    ``content``: the text without its reasoning.
    """
    right, failed = None, {}
    if task.answer is not None:
        try:
            right = task.right(content)
        except LzsError as error:
            failed = {"error": str(error)}
    return {**_named(key), "kind": setting.kind, **_compared(task), "right": right, **failed}


def _compared(task: Task) -> dict[str, str | None]:
    return {"task": task.kind, "answer": task.answer, "compare": None if task.answer is None else task.compare}


def _named(key: Key) -> dict[str, Any]:
    return dict(zip(("setting", "prompt", "seed"), key, strict=True))


def _timing(key: Key, generation: Generation) -> dict[str, Any]:
    """Return the line of timings.jsonl for a text."""
    timings = generation.timings
    return {
        **_named(key),
        "tokens": generation.completion_tokens,
        "prompt_seconds": round(timings.prompt, 6),
        "decode_seconds": round(timings.decode, 6),
        "sampling_seconds": round(timings.sampling, 6),
        **({} if generation.speculated is None else {"draft": generation.speculated.to_json()}),
    }


def _manifest(
    model: Model,
    grid: Grid,
    rows: Mapping[str, Task],
    all_rows: Mapping[str, str],
    limit: int | None,
    bad: Mapping[str, Sequence[BadRow]],
) -> dict[str, Any]:
    """Return run.json: everything that may change a text, all rows of the folder so far, and the rows in use."""
    return {
        "version": VERSION,
        "model": {"file": model.path.name, "sha256": sha256(model.path)},
        "n_ctx": model.n_ctx,
        "grid": json.loads(json.dumps(grid.to_json())),
        "flash_attn": model.flash_attn,
        "texts": sum(1 for _ in _keys(grid, rows)),
        **({} if limit is None else {"limit": limit}),
        "rows": dict(all_rows),
        "used": list(rows),
        "bad_rows": _kept(bad),
    }


def _kept(bad: Mapping[str, Sequence[BadRow]]) -> dict[str, Any]:
    """Return the bad rows for run.json: all except damaged transcripts, whose texts are generated again."""
    return {name: [asdict(row) for row in rows] for name, rows in bad.items() if name != "transcripts"}
