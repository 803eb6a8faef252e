"""`Results` of an evaluation: rates with intervals, wasted tokens, and comparisons with texts without a penalty."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from statistics import stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__
from .._values import counted
from ..errors import ArgumentError, LzsError, missing
from ..util.typed import checked
from .cost_folder import read_costs
from .costs import Costs, front
from .counts import Counts, Outcome
from .first_loop import FirstLoop, first_loop
from .grid import Grid, Setting
from .judged import Judged, read_judged
from .paired import Paired, paired
from .run_folder import FAILED, TIMINGS, TRANSCRIPTS, VERSION, Key, RunFolder
from .shown_texts import Sample, Samples
from .tasks import BadRow
from .transcripts import audited_text, outcome_of

if TYPE_CHECKING:
    import pandas

    from ..decoding.draft import Speculated

NONE = "none"  # the kind without a penalty, with which the other kinds are compared
_LISTED = 20  # largest number of values that a message names


class Spread(NamedTuple):
    """Standard deviations of the loop rate and the accuracy over the seeds of a grid; None for fewer than two seeds."""

    loop_rate: float | None
    accuracy: float | None


class Standing(NamedTuple):
    """The rank of a strength of a penalty, from the texts that have a partner (`Paired`). The smallest rank is best.

    ``alone``: whether no text has a partner. The other fields then cover all texts of the strength. ``lost``: the
    accuracy that the penalty loses; 0 unless the whole interval of the difference is below 0. ``left``: the number of
    texts that loop, divided by the number of partners that loop. If no partner loops, ``left`` is 1 plus the number of
    texts that loop. If ``alone`` is true, ``left`` is the loop rate. ``cost``: the accuracy that the penalty loses,
    significant or not. If ``alone`` is true, ``cost`` is minus the accuracy. Without tasks, ``cost`` is 0.
    """

    alone: bool
    lost: float
    left: float
    cost: float


@dataclass(frozen=True)
class Tradeoff:
    """How many loops some penalties stop, and how much they cost.

    ``name``, ``kind``, ``strength`` and ``settings`` as in `Charge`. ``cost``: extra nats per token on reference texts.
    ``stopped``: 1 - a / b, where a texts loop with the penalties, and b texts loop without a penalty. It is at most 1,
    and negative if a > b. ``best``: whether the penalties are on the Pareto front (`front`).
    """

    name: str
    kind: str
    strength: float
    settings: tuple[str, ...]
    cost: float
    stopped: float
    best: bool


@dataclass(frozen=True)
class Failed:
    """A text that could not be generated, or whose answer could not be compared; ``reason`` is one line.

    ``setting``, ``prompt`` and ``seed`` as in `Outcome`. ``written``: whether the text was generated. If so, the text
    counts, and only the comparison of its answer is missing.
    """

    setting: str
    prompt: str
    seed: int
    reason: str
    written: bool


@dataclass(frozen=True)
class Results:
    """The results of a run of `evaluate`.

    ``outcomes``: the outcome of each text, in the order of transcripts.jsonl. ``failed``: the texts that failed, each
    with its reason. ``model``: the name of the model's file. ``bad``: for each file, the rows that could not be read as
    tasks, or the damaged transcripts. ``samples``: at most `LOOPING_SAMPLES` looping texts and `OTHER_SAMPLES` others.
    Of the looping texts of each setting, ``samples`` has the texts that waste the most tokens. ``judged``: how well a
    judge agrees with the audit; None without a judge. ``costs``: the costs of the penalties on reference texts; None if
    they were not measured. ``expected``: the number of texts of the finished run; None in folders of older versions.
    ``unscored``: if the run is unfinished, the number of reference texts of ``--texts``. It is 0 if the run is
    finished, or does not measure costs. ``speculated``: the draft's statistics for the texts that `evaluate` has just
    written; None without a draft, or if the results were read from a folder. results.json omits ``speculated``, since
    it differs in every run.
    """

    grid: Grid
    outcomes: Sequence[Outcome] = field(repr=False)
    model: str = ""
    bad: Mapping[str, Sequence[BadRow]] = field(default_factory=dict)
    samples: Sequence[Sample] = field(default=(), repr=False)
    judged: Judged | None = None
    costs: Costs | None = None
    expected: int | None = None
    speculated: "Speculated | None" = field(default=None, compare=False)
    failed: Sequence[Failed] = ()
    unscored: int = 0

    @property
    def missing(self) -> int:
        """Number of texts that are neither written nor failed; 0 if ``expected`` is None."""
        failed = sum(not each.written for each in self.failed)
        return max(0, (self.expected or 0) - len(self.outcomes) - failed)

    @property
    def failure(self) -> str:
        """One line with the number of failed texts and the reason of the first failure; "" if no text failed."""
        if not self.failed:
            return ""
        first, n = self.failed[0], counted(len(self.failed), "text")
        of = "it is" if len(self.failed) == 1 else "the first is"
        return f"{n} failed; {of} {first.prompt!r} with {first.setting!r}: {first.reason}"

    @classmethod
    def read(cls, folder: str | Path) -> "Results":
        """Return the results so far from a work folder of `evaluate`, even while a run is writing to the folder.

        LzsError if ``folder`` is not a work folder of `evaluate`.
        """
        there = RunFolder(folder)
        manifest = there.manifest()
        try:
            grid, model = Grid.from_json(manifest["grid"]), str(manifest["model"]["file"])
            expected = None if manifest.get("texts") is None else int(manifest["texts"])
            unscored = int(manifest.get("unscored", 0))
            bad = {
                name: [checked(BadRow(**row)) for row in rows] for name, rows in manifest.get("bad_rows", {}).items()
            }
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise LzsError(f"{there.path / 'run.json'} was written by another version: {error}") from error
        names = {setting.name for setting in grid.settings}
        is_current = there.is_current()
        timings = {line.key: line.row for line in there.lines(TIMINGS) if line.key is not None}
        outcomes: dict[Key, Outcome] = {}
        uncompared: dict[Key, Failed] = {}
        samples, damaged = Samples(), []
        for line in there.lines(TRANSCRIPTS):
            if line.key is None or line.row is None or line.key[0] not in names:
                damaged.append(BadRow(line.number, "damaged"))
                continue
            if not is_current(line):
                continue
            audited = audited_text(line.row, line.number - 1)
            outcomes[line.key] = outcome_of(line.key, line.row, audited, timings.get(line.key))
            samples.add(line.key, audited, line.row)
            if "error" in line.row["eval"]:
                uncompared[line.key] = Failed(*line.key, str(line.row["eval"]["error"]), written=True)
            else:
                uncompared.pop(line.key, None)  # if two lines have the same key, the last line counts
        unwritten = {
            line.key: line.row for line in there.lines(FAILED) if line.key is not None and line.row is not None
        }
        failed = [
            Failed(*key, str(row.get("error")), written=False) for key, row in unwritten.items() if key not in outcomes
        ]
        if damaged:
            bad["transcripts"] = damaged
        judged = read_judged(there, {key: outcome.looping for key, outcome in outcomes.items()})
        costs = read_costs(there, grid, model)
        chosen, all_failed = samples.chosen(), (*failed, *uncompared.values())
        return cls(
            grid,
            tuple(outcomes.values()),
            model,
            bad,
            chosen,
            judged,
            costs,
            expected,
            failed=all_failed,
            unscored=unscored,
        )

    # ---- counts ----

    @cached_property
    def _cells(self) -> dict[str, dict[tuple[str, int], Counts]]:
        """Name of a setting -> (kind of task, seed) -> counts."""
        cells: dict[str, dict[tuple[str, int], Counts]] = {}
        for outcome in self.outcomes:
            of_setting = cells.setdefault(outcome.setting, {})
            of_setting.setdefault((outcome.task, outcome.seed), Counts()).add(outcome)
        return cells

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Kinds of tasks with answers, in the order of their rows."""
        return tuple(dict.fromkeys(o.task for o in self.outcomes if o.right is not None))

    @cached_property
    def _kinds_of_tasks(self) -> dict[str, None]:
        """Kinds of tasks and prompts, with or without answers."""
        return dict.fromkeys(outcome.task for outcome in self.outcomes)

    def _check_task(self, task: str | None) -> None:
        if task is not None and task not in self._kinds_of_tasks:
            raise ArgumentError(f"no text has the task {task}, only {_listed(self._kinds_of_tasks)}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of settings, in the grid's order."""
        return self.grid.kinds

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Temperatures of the grid, in ascending order."""
        return tuple(sorted({setting.params.temperature for setting in self.grid.settings}))

    def strengths(self, kind: str) -> tuple[float, ...]:
        """Return the strengths of the settings of a kind, in ascending order."""
        return tuple(sorted({setting.strength for setting in self.settings(kind=kind)}))

    def settings(
        self,
        *,
        name: str | Sequence[str] | None = None,
        kind: str | None = None,
        strength: float | None = None,
        temperature: float | None = None,
    ) -> list[Setting]:
        """Return the settings of the grid that meet all given conditions; ``kind`` works as in `Grid.of_kind`.

        ``name``: one name, or several. ArgumentError if no setting meets the conditions.
        """
        found = list(self.grid.settings) if kind is None else self.grid.of_kind(kind)
        of = "" if kind is None else f" of kind {kind}"
        given = {
            "name": (name,) if isinstance(name, str) else name,
            "strength": None if strength is None else (strength,),
            "temperature": None if temperature is None else (temperature,),
        }
        for what, wanted in given.items():
            if wanted is None:
                continue
            there = [_value(setting, what) for setting in found]
            found = [setting for setting, value in zip(found, there, strict=True) if value in wanted]
            asked = f" with {what} {_listed(wanted)}"
            if not found:
                raise ArgumentError(f"the grid has no setting{of}{asked}, only {_listed(there)}")
            of += asked
        return found

    def counts(self, *, task: str | None = None, **which: Any) -> Counts:
        """Return the counts of the texts of some settings. ``which``: the arguments of `settings`.

        ``task``: the kind of task whose texts count; None counts all texts. ArgumentError if no text of the results has
        this kind of task.
        """
        self._check_task(task)
        total = Counts()
        for setting in self.settings(**which):
            for (kind_of_task, _), counts in self._cells.get(setting.name, {}).items():
                if task is None or kind_of_task == task:
                    total.merge(counts)
        return total

    def spread(self, **which: Any) -> Spread:
        """Return the sample standard deviations of rates over the seeds. ``which``: the arguments of `settings`.

        A greedy setting has one text for each prompt, which counts for every seed. Both deviations are None if all
        settings are greedy, or if there are fewer than two seeds. Without tasks, the deviation of the accuracy is None.
        """
        settings = self.settings(**which)
        greedy = {setting.name for setting in settings if setting.params.temperature == 0}
        if len(greedy) == len(settings):
            return Spread(None, None)
        of_seeds = []
        for seed in self.grid.seeds:
            total = Counts()
            for setting in settings:
                wanted = self.grid.seeds[0] if setting.name in greedy else seed
                for (_, its_seed), counts in self._cells.get(setting.name, {}).items():
                    if its_seed == wanted:
                        total.merge(counts)
            of_seeds.append(total)
        loops = [counts.loop_rate for counts in of_seeds if counts.texts]
        rights = [counts.accuracy for counts in of_seeds if counts.accuracy is not None]
        return Spread(
            stdev(loops) if len(loops) > 1 else None,
            stdev(rights) if len(rights) > 1 else None,
        )

    def first_loops(self, **which: Any) -> FirstLoop:
        """Return where first loops begin in the texts of some settings. ``which``: the arguments of `settings`.

        If a text loops at an unknown position, the text is left out.
        """
        texts = [text for setting in self.settings(**which) for text in self._by_setting.get(setting.name, ())]
        return first_loop(
            (text.tokens, False) if text.first_loop is None else (text.first_loop, True)
            for text in texts
            if text.first_loop is not None or not text.looping
        )

    # ---- comparisons ----

    def against(self, setting: Setting) -> Setting | None:
        """Return the setting of kind "none" with the same temperature and truncation as ``setting``.

        None if the grid has no such setting, or if ``setting`` itself is of kind "none".
        """
        if setting.kind == NONE:
            return None
        same = (name for name in self.grid.settings if name.kind == NONE and _draws(name) == _draws(setting))
        return next(same, None)

    def compare(self, *, task: str | None = None, **which: Any) -> Paired | None:
        """Compare the texts of some settings with their partners, the texts without a penalty (`against`).

        ``task`` and ``which``: as in `counts`. A partner has the same prompt and seed as its text. None if no text has
        a partner. Several seeds of a prompt are not independent pairs. The intervals take this dependence into account;
        McNemar's p does not.
        """
        self._check_task(task)
        before = {setting.name: self.against(setting) for setting in self.settings(**which)}
        pairs = [
            (text, self._by_key[key])
            for name, none in before.items()
            if none is not None
            for text in self._by_setting.get(name, ())
            if (task is None or text.task == task) and (key := (none.name, text.prompt, text.seed)) in self._by_key
        ]
        return paired(pairs) if pairs else None

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
        """Name of a setting -> comparison of its texts with their partners. Settings without a partner are missing."""
        made = ((setting.name, self.compare(name=setting.name)) for setting in self.grid.settings)
        return {name: paired for name, paired in made if paired is not None}

    def standing(self, kind: str, strength: float) -> Standing:
        """Return the rank of a strength of a kind, from all settings that have a partner (`against`)."""
        which: dict[str, Any] = {"kind": kind, "strength": strength}
        compared = self.compare(**which)
        if compared is None:
            counts = self.counts(**which)
            return Standing(True, 0.0, counts.loop_rate, -(counts.accuracy or 0.0))
        interval, cost = compared.accuracy_interval, -(compared.accuracy_difference or 0.0)
        before, now = compared.looping_none, compared.looping_none + compared.newly - compared.cured
        lost = cost if interval is not None and interval.high < 0 else 0.0
        return Standing(False, lost, now / before if before else 1.0 + now, cost)

    @cached_property
    def chosen(self) -> dict[str, float]:
        """Kind -> its best strength (`standing`) over all temperatures. Of equally good strengths, the weakest counts.

        The figures of the best strengths are somewhat too good, because the same texts decide which strength is best.
        """
        return {kind: min(self.strengths(kind), key=lambda s: (self.standing(kind, s), s)) for kind in self.kinds}

    @cached_property
    def best(self) -> str | None:
        """The kind whose chosen strength is the best (`standing`). Of equally good kinds, the first counts.

        If the cost on reference texts was measured, it is compared before `Standing.cost`. None if there is no text
        with a penalty.
        """
        paid = (
            {}
            if self.costs is None
            else {
                (charge.kind, charge.strength): self.costs.figures(charge.name).extra_nats
                for charge in self.costs.charges
            }
        )
        kinds = [kind for kind, s in self.chosen.items() if kind != NONE and self.counts(kind=kind, strength=s).texts]

        def place(kind: str) -> tuple[bool, float, float, float, float]:
            alone, lost, left, cost = self.standing(kind, self.chosen[kind])
            return alone, lost, left, paid.get((kind, self.chosen[kind]), 0.0), cost

        return min(kinds, key=place, default=None)

    @cached_property
    def tradeoffs(self) -> "tuple[Tradeoff, ...]":
        """The `Tradeoff` of each penalty. Empty if costs were not measured, or if no text without a penalty loops.

        Penalties with an infinite cost are missing. Settings without a partner (`against`) do not count.
        """
        if self.costs is None:
            return ()
        found = []
        for charge in self.costs.charges:
            pairs = [(name, self._partner(name)) for name in charge.settings]
            before, loops = 0, 0.0  # looping texts; ``loops`` is scaled to the number of the partners' texts
            for name, none in pairs:
                if none is not None:
                    without = self.counts(name=none)
                    before += without.looping
                    loops += self.counts(name=name).loop_rate * without.texts
            made = self.costs.figures(charge.name)
            if before and not made.forbidden:
                found.append((charge, made, 1 - loops / before))
        best = front((made.extra_nats, stopped) for _, made, stopped in found)
        return tuple(
            Tradeoff(charge.name, charge.kind, charge.strength, charge.settings, made.extra_nats, stopped, is_best)
            for (charge, made, stopped), is_best in zip(found, best, strict=True)
        )

    def _partner(self, name: str) -> str | None:
        """Return the name of the partner of a setting (`against`). A setting without a penalty is its own partner."""
        (setting,) = self.settings(name=name)
        none = setting if setting.kind == NONE else self.against(setting)
        return None if none is None else none.name

    # ---- exports ----

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a row for each text: the fields of `Outcome` after ``kind``, ``strength`` and ``temperature``.

        If the task has no answer, ``right`` is None. If the timing is unknown, ``seconds`` is None. MissingExtra if
        pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise missing("a data frame needs pandas", "pandas") from error
        named = {setting.name: setting for setting in self.grid.settings}
        of_setting = [(named[o.setting].kind, named[o.setting].strength, named[o.setting].params.temperature)
                      for o in self.outcomes]  # fmt: skip
        rows = [(*about, *astuple(outcome)) for about, outcome in zip(of_setting, self.outcomes, strict=True)]
        columns = ["kind", "strength", "temperature", *(column.name for column in fields(Outcome))]
        return pandas.DataFrame.from_records(rows, columns=columns)

    def to_json(self) -> dict[str, Any]:
        """Return results.json, ready for json.dumps. Two runs of one grid give equal data."""
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
                    **self._figures(name=setting.name),
                    "tasks": {t: self.counts(name=setting.name, task=t).to_json() for t in self.tasks},
                    "against_none": _json(self.comparisons.get(setting.name)),
                }
                for setting in self.grid.settings
            ],
            "kinds": {kind: self._figures(kind=kind) for kind in self.kinds},
            "chosen": [
                {
                    "kind": kind,
                    "strength": strength,
                    **self._figures(kind=kind, strength=strength),
                    "against_none": _json(self.compare(kind=kind, strength=strength)),
                }
                for kind, strength in self.chosen.items()
            ],
            "costs": None if self.costs is None else self.costs.to_json(),
            "tradeoffs": [asdict(tradeoff) for tradeoff in self.tradeoffs],
            "judge": None if self.judged is None else self.judged.to_json(),
            "failed": [asdict(each) for each in self.failed],
            "bad_rows": {name: [asdict(row) for row in rows] for name, rows in self.bad.items()},
        }

    def _figures(self, **which: Any) -> dict[str, Any]:
        spread = self.spread(**which)
        return {
            **self.counts(**which).to_json(),
            "loop_sd": spread.loop_rate,
            "accuracy_sd": spread.accuracy,
            "first_loop": self.first_loops(**which).to_json(),
        }


def _value(setting: Setting, what: str) -> object:
    return setting.params.temperature if what == "temperature" else getattr(setting, what)


def _listed(values: Iterable[object]) -> str:
    """Return values in one line, each once, at most `_LISTED` of them."""
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in dict.fromkeys(values)]
    more = len(shown) - _LISTED
    return ", ".join(shown[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _json(compared: Paired | None) -> dict[str, Any] | None:
    return None if compared is None else compared.to_json()


def _draws(setting: Setting) -> tuple[object, ...]:
    """Return the temperature and truncation of a setting, which its partner has too (`Results.against`)."""
    p = setting.params
    return p.temperature, p.temperature_last, p.top_k, p.top_p, p.min_p, p.ties
