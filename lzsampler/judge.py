"""`Judge`: a model that is asked whether a text is degenerate, next to the exact rule; and how far the two agree.

The paper counts a text as degenerate that a rule finds and that a judge, GPT-4o there, confirms (arXiv 2504.20131,
section 4.1). Here the judge is any GGUF, and what it says is reported beside the rule, never in its place.

Importing this loads no llama_cpp: results are read where there is none.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import gguf
from ._check import LzsError, Tokens
from .run_folder import JUDGED, TRANSCRIPTS, Key, RunFolder, sha256
from .statistics import Agreement, agreement

if TYPE_CHECKING:
    from .parallel import Request

N_CTX = 1024  # tokens of a question with its text: room for many copies of all but the longest loops
_LEAST_ROOM = 64  # tokens of a text
_CHARACTERS_A_TOKEN = 16  # more than a text has; what is before them is not even tokenized
_MARK = "\ufdd0"  # stands for the text while the template is filled in; Unicode has no such character
_QUESTION = """Between the lines of dashes is the end of a text that a language model wrote. Is the text degenerate: \
does it end by repeating the same words, line or passage over and over?

-----
{text}
-----

Is this text degenerate? Answer with one word, yes or no."""
_PLAIN = "\nAnswer:"  # what a model without a chat template goes on from
_THINK, _END_THINK = "<think>", "\n\n</think>\n\n"


class Verdict(NamedTuple):
    """What a judge says of a text: P(yes) / (P(yes) + P(no)) of its first token, 0..1, and P(yes) + P(no), 0..1.

    Where ``answered`` is small the judge does not answer the question, and ``degenerate`` means little.
    """

    degenerate: float
    answered: float


class Judge:
    """A GGUF model as a judge. ``n_ctx``: tokens of a question with its text, None is 1024, or what the model has.

    Of a text the model gets the end, as many tokens as there is room for; what is more than 16 characters for each of
    them from the end is cut before, so that a huge text costs no more. It is tokenized by itself, so that names of
    control tokens in it are plain text. The question is put by the model's chat template, with an empty thought if that
    knows of thoughts, or where there is none as a text to go on with. The answer is in the probabilities of the next
    token: all tokens that read yes, or no, whatever their case and the white space around. Nothing is drawn.

    Raises as `Model`, and LzsError when it has no such tokens, its template does not keep the text as it is, or there
    is no room for 64 tokens of one. Use it with ``with``, or `close` it.
    """

    def __init__(self, path: str | Path, *, n_ctx: int | None = None, n_threads: int | None = None) -> None:
        from .model import Model

        if n_ctx is None:
            n_ctx = min(N_CTX, gguf.read(path).of_architecture("context_length") or N_CTX)
        self.model = Model(path, n_ctx=n_ctx, n_threads=n_threads)
        try:
            before, after = self._question()
            self._before = self.model.tokenize(before)
            self._after = self.model.llm.tokenize(after.encode("utf-8"), add_bos=False, special=True)
            self._yes, self._no = self._tokens_that_read("yes"), self._tokens_that_read("no")
            self._room = self.model.n_ctx - len(self._before) - len(self._after)
            if self._room < _LEAST_ROOM:
                raise LzsError(
                    f"{self.model.path.name} cannot judge in a context of {self.model.n_ctx} tokens: "
                    f"it takes {self.model.n_ctx + _LEAST_ROOM - self._room}"
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the model."""
        self.model.close()

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What verdicts depend on besides the text, ready for JSON."""
        question = blake2b((_QUESTION + _PLAIN).encode("utf-8"), digest_size=8).hexdigest()
        model = self.model
        return {"file": model.path.name, "sha256": sha256(model.path), "n_ctx": model.n_ctx, "question": question}

    def degenerate(self, texts: Iterable[str]) -> list[float]:
        """Return of each text the probability, 0..1, that the judge calls it degenerate rather than not."""
        return [verdict.degenerate for verdict in self.verdicts(texts)]

    def verdicts(self, texts: Iterable[str]) -> Iterator[Verdict]:
        """Yield the verdicts on texts, in their order; texts are taken as they are needed.

        A text with nothing but white space is not asked about: (0, 1). Several are judged side by side where a model
        has fewer threads than there are cores; verdicts are those of one at a time wherever texts would be
        (`generate_many`). LzsError when llama.cpp fails.
        """
        from .parallel import generate_many, side_by_side

        answers: dict[int, _Answer] = {}
        n_contexts = side_by_side(self.model)
        at = 0
        for request, _ in generate_many(
            self.model, self._requests(texts, answers), n_parallel=n_contexts, n_contexts=n_contexts
        ):
            answers[request.id].ended = True
            while at in answers and answers[at].ended:
                yield answers.pop(at).verdict
                at += 1
        yield from (answers[at].verdict for at in sorted(answers))  # empty ones at the end

    def _requests(self, texts: Iterable[str], answers: "dict[int, _Answer]") -> "Iterator[Request]":
        from .parallel import Request
        from .params import Params

        for i, text in enumerate(texts):
            answers[i] = answer = _Answer(self._yes, self._no)
            if text.strip():
                yield Request(i, self._prompt(text), Params(), n_predict=1, sampler=answer.itself)
            else:
                answer.verdict, answer.ended = Verdict(0.0, 1.0), True

    def _prompt(self, text: str) -> npt.NDArray[np.int32]:
        tail = text[-self._room * _CHARACTERS_A_TOKEN :].encode("utf-8", "replace")
        tokens = self.model.llm.tokenize(tail, add_bos=False, special=False)
        return np.array([*self._before, *tokens[-self._room :], *self._after], np.int32)

    def _question(self) -> tuple[str, str]:
        """Return what comes before a text, and after it."""
        question = _QUESTION.format(text=_MARK)
        template = self.model.header.chat_template
        if template is None:
            whole = question + _PLAIN
        else:
            whole = self.model.chat_prompt([{"role": "user", "content": question}])
            if _THINK in template:
                whole += _END_THINK if whole.rstrip().endswith(_THINK) else _THINK + _END_THINK
        before, found, after = whole.partition(_MARK)
        if not found or _MARK in after:
            raise LzsError(f"{self.model.path.name} cannot judge: its chat template does not keep a message as it is")
        return before, after

    def _tokens_that_read(self, word: str) -> npt.NDArray[np.intp]:
        pieces = (self.model.piece(token).strip().lower() for token in range(self.model.n_vocab))
        tokens = [token for token, piece in enumerate(pieces) if piece == word.encode()]
        if not tokens:
            raise LzsError(f"{self.model.path.name} cannot judge: none of its tokens reads {word}")
        return np.array(tokens)


class _Answer:
    """Stands where a sampler does, and takes the verdict out of the logits after the question."""

    loop = None

    def __init__(self, yes: npt.NDArray[np.intp], no: npt.NDArray[np.intp]) -> None:
        self._yes, self._no = yes, no
        self.verdict = Verdict(0.0, 0.0)
        self.ended = False

    def itself(self) -> "_Answer":
        return self

    def prime(self, tokens: Tokens) -> None:
        """Take the prompt, which does not matter here."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Take the verdict; ValueError for NaN."""
        if np.isnan(logits).any():
            raise ValueError("logits are nan")
        x = logits.astype(np.float64)
        yes, no, every = (np.logaddexp.reduce(part) for part in (x[self._yes], x[self._no], x))
        either = np.logaddexp(yes, no)
        self.verdict = Verdict(float(np.exp(yes - either)), float(np.exp(either - every)))
        return int(self._yes[0] if yes > no else self._no[0])

    def accept(self, token: int) -> None:
        """End."""


# ---- in the work folder of an evaluation ----


@dataclass(frozen=True)
class Judged:
    """What a judge said of a run's texts, next to the exact rule.

    ``agreement``: a is the judge, b the rule; ``answered``: mean of `Verdict.answered`.
    """

    file: str
    agreement: Agreement
    answered: float

    def to_json(self) -> dict[str, Any]:
        """Return it for results.json."""
        a = self.agreement
        return {
            "file": self.file,
            "texts": a.n,
            "both": a.both,
            "only_judge": a.only_a,
            "only_rule": a.only_b,
            "neither": a.neither,
            "agreement": a.share,
            "kappa": a.kappa,
            "answered": self.answered,
        }

    def __str__(self) -> str:
        a = self.agreement
        kappa = "" if a.kappa is None else f" (kappa {a.kappa:.2f})"
        return (
            f"judge {self.file}: like the rule on {a.both + a.neither} of {a.n} texts{kappa}; loops by both {a.both}, "
            f"by the judge alone {a.only_a}, by the rule alone {a.only_b}; it gives yes and no together "
            f"{100 * self.answered:.1f} % of the probability"
        )


def refuse_another(judge: Judge, folder: RunFolder) -> None:
    """Raise ValueError when another judge was at work in a folder."""
    for line in folder.lines(JUDGED):
        if line.row is not None and line.row.get("judge") != judge.identity:
            raise ValueError(
                f"{folder.path / JUDGED} is by another judge, context or version: "
                "give that one, or move the file away to judge anew"
            )


def judge_folder(judge: Judge, folder: RunFolder, *, on_text: Callable[[int, int], object] | None = None) -> None:
    """Judge the texts of a folder that were not judged yet, a line of judge.jsonl as each verdict is there.

    ``on_text`` is called with (done, all) after each. ValueError as of `refuse_another`; LzsError for files and the
    model.
    """
    from .transcript import TranscriptFile

    refuse_another(judge, folder)
    done = {line.key: line.row["text"] for line in folder.lines(JUDGED) if line.row and _verdict(line.row)}
    texts = {line.key: _digest(line.row) for line in folder.lines(TRANSCRIPTS) if line.key and line.row}
    missing = {key: digest for key, digest in texts.items() if done.get(key) != digest}
    asked: deque[Key] = deque()

    def to_judge() -> Iterator[str]:
        for line in folder.lines(TRANSCRIPTS):
            if line.key in missing and line.key is not None and line.row is not None:
                asked.append(line.key)
                yield _text(line.row)

    n = len(texts) - len(missing)
    with TranscriptFile(folder.path / JUDGED) as file:
        for verdict in judge.verdicts(to_judge()):
            key = asked.popleft()
            names = dict(zip(("setting", "prompt", "seed"), key, strict=True))
            file.append({**names, **verdict._asdict(), "text": missing[key], "judge": judge.identity})
            n += 1
            if on_text is not None:
                on_text(n, len(texts))


def read_judged(folder: RunFolder, looping: Mapping[Key, bool]) -> Judged | None:
    """Return how the verdicts in a folder agree with the rule's, by the text's key; None where there are none."""
    name, verdicts = "", {}
    for line in folder.lines(JUDGED):
        if line.key is not None and line.key in looping and line.row and (verdict := _verdict(line.row)):
            verdicts[line.key] = verdict
            name = str(line.row["judge"]["file"])
    if not verdicts:
        return None
    table = agreement([v.degenerate > 0.5 for v in verdicts.values()], [looping[key] for key in verdicts])
    return Judged(name, table, sum(v.answered for v in verdicts.values()) / len(verdicts))


def _verdict(row: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict of a line, None when it is damaged."""
    try:
        _ = row["text"], row["judge"]["file"]
        return Verdict(float(row["degenerate"]), float(row["answered"]))
    except (LookupError, TypeError, ValueError):
        return None


def _text(transcript: Mapping[str, Any]) -> str:
    """Return all that the model wrote."""
    answer = transcript["messages"][-1]
    return "\n".join(part for part in (answer.get("reasoning_content"), answer["content"]) if part)


def _digest(transcript: Mapping[str, Any]) -> str:
    return blake2b(_text(transcript).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
