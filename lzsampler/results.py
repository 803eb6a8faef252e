"""`Results`: what became of the texts of an evaluation: rates with intervals, comparisons with no penalty, waste."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import __version__
from ._check import LzsError
from .findings import Rules, Tokenizer, audit_record
from .grid import Grid, Setting
from .judge import Judged, read_judged
from .records import Audited, Field, Record
from .run_folder import TIMINGS, TRANSCRIPTS, VERSION, Key, RunFolder
from .statistics import Interval, bootstrap_mean, mcnemar, wilson
from .summary import wasted_tokens
from .tasks import BadRow

NONE = "none"  # the kind that others are compared with
LOOPING_SAMPLES, OTHER_SAMPLES = 300, 100  # texts that are kept to be shown
_OF_A_SETTING = 25  # of each
_RULES = Rules(levels=("char", "word", "line"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one text.

    ``task``: kind of task; ``right``: None where the row has no answer; ``wasted_tokens``: those of all copies of its
    loops but the first. ``seconds`` and ``sampling_seconds``: all of its time and that of its picks, None where no
    timing is known.
    """

    setting: str
    prompt: str
    seed: int
    task: str
    looping: bool
    right: bool | None
    tokens: int
    wasted_tokens: int
    seconds: float | None = None
    sampling_seconds: float | None = None


@dataclass
class Counts:
    """Sums over some texts: ``answered`` of them belong to tasks, ``right`` of these; ``looping`` of all of them.

    ``timed_tokens``, ``seconds``, ``sampling_seconds``: of the texts whose timings are known.
    """

    texts: int = 0
    looping: int = 0
    answered: int = 0
    right: int = 0
    tokens: int = 0
    wasted_tokens: int = 0
    timed_tokens: int = 0
    seconds: float = 0.0
    sampling_seconds: float = 0.0

    @property
    def loop_rate(self) -> float:
        """Share of the texts that loop, 0..1; 0 for no texts."""
        return self.looping / self.texts if self.texts else 0.0

    @property
    def loop_interval(self) -> Interval:
        """Wilson's 95 % interval of the loop rate."""
        return wilson(self.looping, self.texts)

    @property
    def accuracy(self) -> float | None:
        """Share of the tasks' texts that are right, 0..1; None when there are none."""
        return self.right / self.answered if self.answered else None

    @property
    def accuracy_interval(self) -> Interval:
        """Wilson's 95 % interval of the accuracy."""
        return wilson(self.right, self.answered)

    @property
    def wasted_share(self) -> float:
        """Share of the tokens that are further copies in loops, 0..1."""
        return self.wasted_tokens / self.tokens if self.tokens else 0.0

    @property
    def sampling_share(self) -> float | None:
        """Sampling overhead: share of the time that picks took, 0..1; None where no timings are known."""
        return self.sampling_seconds / self.seconds if self.seconds else None

    @property
    def sampling_microseconds(self) -> float | None:
        """Microseconds a pick took; None where no timings are known."""
        return 1e6 * self.sampling_seconds / self.timed_tokens if self.timed_tokens else None

    def add(self, outcome: Outcome) -> None:
        """Count a text."""
        self.texts += 1
        self.looping += outcome.looping
        self.answered += outcome.right is not None
        self.right += outcome.right is True
        self.tokens += outcome.tokens
        self.wasted_tokens += outcome.wasted_tokens
        if outcome.seconds is not None and outcome.sampling_seconds is not None:
            self.timed_tokens += outcome.tokens
            self.seconds += outcome.seconds
            self.sampling_seconds += outcome.sampling_seconds

    def merge(self, other: "Counts") -> None:
        """Add the counts of other texts."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def to_json(self) -> dict[str, Any]:
        """Return all that two runs of one grid agree in: no timings."""
        return {
            "texts": self.texts,
            "looping": self.looping,
            "loop_rate": self.loop_rate,
            "loop_interval": list(self.loop_interval),
            "answered": self.answered,
            "right": self.right,
            "accuracy": self.accuracy,
            "accuracy_interval": list(self.accuracy_interval) if self.answered else None,
            "tokens": self.tokens,
            "wasted_tokens": self.wasted_tokens,
        }


@dataclass(frozen=True)
class Paired:
    """Texts next to those of the same prompt and seed without a penalty, at the same temperature and truncation.

    ``newly``: loop only with the penalty, ``cured``: only without; ``loop_p``: McNemar's exact test, two-sided.
    ``loop_difference``: loop rate with it minus that without, -1..1. ``gained``, ``lost``: right only with it, only
    without, among ``answered`` pairs; ``accuracy_p`` and ``accuracy_difference`` likewise, the latter None without
    tasks. Intervals: 95 %, bootstrap, whole prompts drawn.
    """

    pairs: int
    newly: int
    cured: int
    loop_p: float
    loop_difference: float
    loop_interval: Interval
    answered: int
    gained: int
    lost: int
    accuracy_p: float
    accuracy_difference: float | None
    accuracy_interval: Interval | None


@dataclass(frozen=True)
class Sample:
    """A text to show: ``record`` with its texts and, of a looping one, what was found in it; ``prompt`` before it."""

    record: Audited
    prompt: str


@dataclass(frozen=True)
class Results:
    """What became of a run's texts. ``bad``: by file, rows that were no tasks, and transcripts that were damaged.

    ``outcomes``: one for each text, in the order of the file; ``model``: its file's name. ``samples``: at most
    `LOOPING_SAMPLES` looping texts, of each setting those that waste most, and `OTHER_SAMPLES` others. ``judged``: how
    a judge agrees with the rule, None where none was asked.
    """

    grid: Grid
    outcomes: Sequence[Outcome] = field(repr=False)
    model: str = ""
    bad: Mapping[str, Sequence[BadRow]] = field(default_factory=dict)
    samples: Sequence[Sample] = field(default=(), repr=False)
    judged: Judged | None = None

    @classmethod
    def read(cls, folder: str | Path, bad: Mapping[str, Sequence[BadRow]] | None = None) -> "Results":
        """Return what a work folder of `evaluate` has by now, even while a run goes on in it.

        ``bad``: of the tasks and prompts, which the folder does not keep. LzsError when it is no such folder.
        """
        there = RunFolder(folder)
        manifest = there.manifest()
        try:
            grid, model = Grid.from_json(manifest["grid"]), str(manifest["model"]["file"])
        except (KeyError, TypeError, ValueError) as error:
            raise LzsError(f"{there.path / 'run.json'} is not of this version: {error}") from error
        names = {setting.name for setting in grid.settings}
        timings = {line.key: line.row for line in there.lines(TIMINGS) if line.key is not None}
        outcomes: dict[Key, Outcome] = {}
        samples, damaged = _Samples(), []
        for line in there.lines(TRANSCRIPTS):
            if line.key is None or line.row is None or line.key[0] not in names:
                damaged.append(BadRow(line.number, "damaged"))
                continue
            audited = _audited(line.row, line.number - 1)
            outcomes[line.key] = _outcome(line.key, line.row, audited, timings.get(line.key))
            samples.add(line.key, audited, line.row)
        bad_rows = {**(bad or {}), **({"transcripts": damaged} if damaged else {})}
        judged = read_judged(there, {key: outcome.looping for key, outcome in outcomes.items()})
        return cls(grid, tuple(outcomes.values()), model, bad_rows, samples.chosen(), judged)

    # ---- counts ----

    @cached_property
    def _cells(self) -> dict[tuple[str, str], Counts]:
        cells: dict[tuple[str, str], Counts] = {}
        for outcome in self.outcomes:
            cells.setdefault((outcome.setting, outcome.task), Counts()).add(outcome)
        return cells

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Kinds of tasks with answers, in the order of their rows."""
        return tuple(dict.fromkeys(o.task for o in self.outcomes if o.right is not None))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of settings, in the grid's order."""
        return self.grid.kinds

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Temperatures of the grid, ascending."""
        return tuple(sorted({setting.params.temperature for setting in self.grid.settings}))

    def strengths(self, kind: str) -> tuple[float, ...]:
        """Return the strengths of a kind, ascending."""
        return tuple(sorted({setting.strength for setting in self.settings(kind=kind)}))

    def settings(
        self,
        *,
        name: str | None = None,
        kind: str | None = None,
        strength: float | None = None,
        temperature: float | None = None,
    ) -> list[Setting]:
        """Return the settings of the grid that are of all that is given, maybe none; ``kind`` as of `Grid.of_kind`."""
        return [
            setting
            for setting in (self.grid.settings if kind is None else self.grid.of_kind(kind))
            if (name is None or setting.name == name)
            and (strength is None or setting.strength == strength)
            and (temperature is None or setting.params.temperature == temperature)
        ]

    def counts(self, *, task: str | None = None, **which: Any) -> Counts:
        """Return the counts of all texts of some settings, chosen as by `settings`, and maybe of one kind of task."""
        total = Counts()
        names = {setting.name for setting in self.settings(**which)}
        for (setting, kind_of_task), counts in self._cells.items():
            if setting in names and (task is None or kind_of_task == task):
                total.merge(counts)
        return total

    # ---- comparisons ----

    def against(self, setting: Setting) -> Setting | None:
        """Return the setting of kind "none" that draws as this one does; None when there is none, or it is one."""
        if setting.kind == NONE:
            return None
        same = (name for name in self.grid.settings if name.kind == NONE and _draws(name) == _draws(setting))
        return next(same, None)

    def compare(self, **which: Any) -> Paired | None:
        """Compare the texts of some settings, chosen as by `settings`, with those of no penalty.

        None where a grid has nothing to compare with. Several seeds of a prompt are no independent pairs: the intervals
        know it, McNemar's p does not.
        """
        before = {setting.name: self.against(setting) for setting in self.settings(**which)}
        pairs = [
            (text, self._by_key[key])
            for name, none in before.items()
            if none is not None
            for text in self._by_setting.get(name, ())
            if (key := (none.name, text.prompt, text.seed)) in self._by_key
        ]
        return _paired(pairs) if pairs else None

    @cached_property
    def _by_key(self) -> dict[Key, Outcome]:
        return {(o.setting, o.prompt, o.seed): o for o in self.outcomes}

    @cached_property
    def _by_setting(self) -> dict[str, list[Outcome]]:
        found: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.setting, []).append(outcome)
        return found

    @cached_property
    def comparisons(self) -> dict[str, Paired]:
        """Each setting next to no penalty, by its name; those that have nothing to be compared with are not there."""
        made = ((setting.name, self.compare(name=setting.name)) for setting in self.grid.settings)
        return {name: paired for name, paired in made if paired is not None}

    @cached_property
    def chosen(self) -> dict[str, float]:
        """For each kind the strength with fewest loops among those that do not lose accuracy, over all temperatures.

        To lose is that the whole interval of the paired difference is below 0; where all do, it is the strength with
        the highest accuracy. Of equals it is the more accurate, then the weaker. It is chosen on the texts that it is
        then described by, which flatters it.
        """
        return {kind: self._choose(kind) for kind in self.kinds}

    def _choose(self, kind: str) -> float:
        def loses(strength: float) -> bool:
            paired = self.compare(kind=kind, strength=strength)
            return paired is not None and paired.accuracy_interval is not None and paired.accuracy_interval.high < 0

        strengths = self.strengths(kind)
        if len(strengths) == 1:
            return strengths[0]
        counts = {strength: self.counts(kind=kind, strength=strength) for strength in strengths}
        keep = [strength for strength in strengths if not loses(strength)]
        if keep:
            return min(keep, key=lambda s: (counts[s].loop_rate, -(counts[s].accuracy or 0.0), s))
        return max(strengths, key=lambda s: (counts[s].accuracy or 0.0, -s))

    # ---- what is made of it ----

    def table(self) -> str:
        """Return a Markdown table, a row a setting, as lm-eval prints one; ± is half of Wilson's 95 % interval."""
        from .reports.markdown import markdown_table

        return markdown_table(self)

    def save(self, path: str | Path) -> None:
        """Write ``path``, by its ending: .html is the report, .json results.json (docs/evaluate.md).

        ValueError for another ending, LzsError when it cannot be written.
        """
        ending = Path(path).suffix.lower()
        if ending == ".html":
            from .reports.evaluation import write_evaluation

            write_evaluation(path, self)
        elif ending == ".json":
            RunFolder(Path(path).parent).write(Path(path).name, self.to_json())
        else:
            raise ValueError(f"results are saved as .html or .json, by the ending of the file, got {str(path)!r}")

    def to_json(self) -> dict[str, Any]:
        """Return results.json, ready for json.dumps; two runs of one grid agree in all of it."""
        return {
            "version": VERSION,
            "lzsampler": __version__,
            "model": self.model,
            "grid": self.grid.name,
            "settings": [
                {
                    "name": setting.name,
                    "kind": setting.kind,
                    "strength": setting.strength,
                    "temperature": setting.params.temperature,
                    **self.counts(name=setting.name).to_json(),
                    "tasks": {t: self.counts(name=setting.name, task=t).to_json() for t in self.tasks},
                    "against_none": _json(self.comparisons.get(setting.name)),
                }
                for setting in self.grid.settings
            ],
            "kinds": {kind: self.counts(kind=kind).to_json() for kind in self.kinds},
            "chosen": [
                {
                    "kind": kind,
                    "strength": strength,
                    **self.counts(kind=kind, strength=strength).to_json(),
                    "against_none": _json(self.compare(kind=kind, strength=strength)),
                }
                for kind, strength in self.chosen.items()
            ],
            "judge": None if self.judged is None else self.judged.to_json(),
            "bad_rows": {name: [asdict(row) for row in rows] for name, rows in self.bad.items()},
        }


def _json(paired: Paired | None) -> dict[str, Any] | None:
    if paired is None:
        return None
    return {name: list(v) if isinstance(v, Interval) else v for name, v in vars(paired).items()}


def _draws(setting: Setting) -> tuple[float, ...]:
    params = setting.params
    return params.temperature, params.top_k, params.top_p, params.min_p


def _paired(pairs: Sequence[tuple[Outcome, Outcome]]) -> Paired:
    prompts = [text.prompt for text, _ in pairs]
    loops = [int(text.looping) - int(none.looping) for text, none in pairs]
    tasks = [(text, none) for text, none in pairs if text.right is not None and none.right is not None]
    rights = [int(bool(text.right)) - int(bool(none.right)) for text, none in tasks]
    return Paired(
        pairs=len(pairs),
        newly=loops.count(1),
        cured=loops.count(-1),
        loop_p=mcnemar(loops.count(1), loops.count(-1)),
        loop_difference=sum(loops) / len(pairs),
        loop_interval=bootstrap_mean(loops, prompts),
        answered=len(tasks),
        gained=rights.count(1),
        lost=rights.count(-1),
        accuracy_p=mcnemar(rights.count(1), rights.count(-1)),
        accuracy_difference=sum(rights) / len(tasks) if tasks else None,
        accuracy_interval=bootstrap_mean(rights, [text.prompt for text, _ in tasks]) if tasks else None,
    )


# ---- from the rows of a folder ----


def _outcome(key: Key, row: Mapping[str, Any], audited: Audited, timing: Mapping[str, Any] | None) -> Outcome:
    times = [] if timing is None else [timing.get(f"{part}_seconds") for part in ("sampling", "prompt", "decode")]
    seconds = [float(time) for time in times if isinstance(time, int | float)]
    known = len(seconds) == 3
    return Outcome(
        *key,
        task=str(row["eval"]["task"]),
        looping=bool(row["repetition"]["loops"]),
        right=row["eval"]["right"],
        tokens=row["usage"]["completion_tokens"],
        wasted_tokens=min(wasted_tokens(audited), row["usage"]["completion_tokens"]),
        seconds=sum(seconds) if known else None,
        sampling_seconds=seconds[0] if known else None,
    )


def _audited(row: Mapping[str, Any], number: int) -> Audited:
    """Return a text with what `audit` finds in it; `generate` has told already whether it loops."""
    ours, answer = row["eval"], row["messages"][-1]
    texts = (("reasoning", answer.get("reasoning_content") or ""), ("answer", answer["content"]))
    groups = {
        "kind": ours["kind"], "setting": ours["setting"], "seed": ours["seed"], "task": ours["task"],
        "answer": ours["answer"], "right": {True: "yes", False: "no"}.get(ours["right"], ""),
        "finish reason": row.get("finish_reason"), "tokens": row["usage"]["completion_tokens"],
    }  # fmt: skip
    record = Record(
        file=TRANSCRIPTS,
        number=number,
        id=str(ours["prompt"]),
        fields=tuple(Field("reasoning" if name == "reasoning" else "answer", text) for name, text in texts if text),
        groups={name: str(value) for name, value in groups.items() if value not in (None, "")},
    )
    size = sum(len(field.text) for field in record.fields)
    if row["repetition"]["loops"]:
        return audit_record(record, _RULES, _even(row["usage"]["completion_tokens"] / max(size, 1)))
    return Audited(record.file, number, record.id, record.groups, False, False, size, (), {},
                   tuple((field.name, field.text) for field in record.fields))  # fmt: skip


def _even(tokens_per_character: float) -> Tokenizer:
    """Return tokens spread evenly over the text: only how many there are is known, and waste is counted in them."""

    def tokenize(text: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        n = max(1, round(len(text) * tokens_per_character))
        return np.zeros(n, np.int32), np.arange(n, dtype=np.int64) * len(text) // n

    return tokenize


_Heap = list[tuple[int, int, Sample]]  # rank, -number of the line, text; the number keeps texts from being compared


class _Samples:
    """The texts of a run that are shown, chosen as they come, in memory that does not grow with their number."""

    def __init__(self) -> None:
        self._looping: dict[str, _Heap] = {}  # by setting
        self._others: dict[str, _Heap] = {}

    def add(self, key: Key, audited: Audited, row: Mapping[str, Any]) -> None:
        """Keep a text if it is among those to show."""
        if audited.looping:
            heap, rank = self._looping.setdefault(key[0], []), wasted_tokens(audited)
        elif row["repetition"]["loops"]:
            return  # it repeats from the reasoning on into the answer, and there is nothing to mark in either
        else:  # as good as drawn by chance, but the same in every run
            name = "\0".join(map(str, key)).encode("utf-8", "surrogatepass")
            heap, rank = (
                self._others.setdefault(key[0], []),
                int.from_bytes(blake2b(name, digest_size=8).digest(), "big"),
            )
        if len(heap) < _OF_A_SETTING:
            heapq.heappush(heap, (rank, -audited.number, Sample(audited, _prompt(row))))
        elif (rank, -audited.number) > heap[0][:2]:
            heapq.heapreplace(heap, (rank, -audited.number, Sample(audited, _prompt(row))))

    def chosen(self) -> tuple[Sample, ...]:
        """Return looping texts, then others."""
        return (*_best(self._looping, LOOPING_SAMPLES), *_best(self._others, OTHER_SAMPLES))


def _best(heaps: Mapping[str, _Heap], most: int) -> list[Sample]:
    """Return the first of every setting before the second of any, at most ``most``, in the order of their rank."""
    placed = [
        (place, -rank, -order, sample)
        for heap in heaps.values()
        for place, (rank, order, sample) in enumerate(sorted(heap, key=lambda item: item[:2], reverse=True))
    ]
    kept = sorted(placed, key=lambda item: item[:3])[:most]
    return [sample for *_, sample in sorted(kept, key=lambda item: item[1:3])]


def _prompt(row: Mapping[str, Any]) -> str:
    if "prompt" in row:
        return str(row["prompt"])
    return "\n\n".join(str(message.get("content", "")) for message in row["messages"][:-1])
