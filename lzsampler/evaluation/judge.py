"""`Judge`: a model that is asked whether a text is degenerate.

The paper counts a text as degenerate if a rule finds a loop and a judge, GPT-4o, confirms it (arXiv 2504.20131, section
4.1). Here any GGUF model can be the judge. The verdicts of the judge and of the rule are reported side by side.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._check import Tokens
from ..errors import ArgumentError, LzsError
from ..llama import gguf
from .judged import Verdict, digest_of, text_of, verdict_of
from .run_folder import JUDGED, TRANSCRIPTS, Key, RunFolder, sha256

if TYPE_CHECKING:
    from ..decoding.many import Request

N_CTX = 1024  # tokens for the question and the text: enough for many copies of all but the longest loops
_LEAST_ROOM = 64  # least number of tokens for the text
_CHARACTERS_A_TOKEN = 16  # more than the average of any text; longer texts are cut before they are tokenized
_MARK = "\ufdd0"  # placeholder of the text while the template is filled in; Unicode never assigns this character
_QUESTION = """Between the lines of dashes is the end of a text that a language model wrote. Is the text degenerate: \
does it end by repeating the same words, line or passage over and over?

-----
{text}
-----

Is this text degenerate? Answer with one word, yes or no."""
_PLAIN = "\nAnswer:"  # the end of the prompt for a model without a chat template
_THINK, _END_THINK = "<think>", "\n\n</think>\n\n"


class Judge:
    """A GGUF model that says whether texts are degenerate. ``n_ctx``: context for the question and a text, in tokens.

    If ``n_ctx`` is None, it is 1024, or the context with which the model was trained if this is smaller. The model gets
    as many tokens of the text's end as fit. The text is first cut to 16 characters for each token that fits, so that a
    huge text is never tokenized as a whole. The text is tokenized separately, so that names of control tokens in the
    text are plain text. The question is asked through the model's chat template, with empty reasoning if the template
    supports reasoning. Without a template, the question is a text to continue. The verdict comes from the probabilities
    of the next token. It compares all tokens for yes with all tokens for no, in upper or lower case and with any white
    space around. No token is chosen at random.

    Errors as for `Model`. LzsError if the model has no token for yes or no, if its template changes the text, or if 64
    tokens of a text do not fit. Use a judge in a ``with`` block, or `close` it.
    """

    def __init__(self, path: str | Path, *, n_ctx: int | None = None, n_threads: int | None = None) -> None:
        from ..llama.model import Model

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
                    f"it needs {self.model.n_ctx + _LEAST_ROOM - self._room}"
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
        """What a verdict depends on besides the text, as JSON data."""
        question = blake2b((_QUESTION + _PLAIN).encode("utf-8"), digest_size=8).hexdigest()
        model = self.model
        return {"file": model.path.name, "sha256": sha256(model.path), "n_ctx": model.n_ctx, "question": question}

    def degenerate(self, texts: Iterable[str]) -> list[float]:
        """Return for each text the probability, 0..1, that the judge calls it degenerate."""
        return [verdict.degenerate for verdict in self.verdicts(texts)]

    def verdicts(self, texts: Iterable[str]) -> Iterator[Verdict]:
        """Yield the verdicts on texts, in their order; texts are read from the iterable as needed.

        A text of white space is not shown to the judge: its verdict is (0, 1). If the model has fewer threads than
        there are cores, several texts are judged in parallel. This changes a verdict only where `generate_many` would
        change a generated text. LzsError if llama.cpp fails.
        """
        from ..decoding.many import generate_many, side_by_side

        answers: dict[int, _Answer] = {}
        n_contexts = side_by_side(self.model)
        at = 0
        for request, made in generate_many(
            self.model, self._requests(texts, answers), n_parallel=n_contexts, n_contexts=n_contexts
        ):
            if isinstance(made, Exception):
                raise made
            answers[request.id].ended = True
            while at in answers and answers[at].ended:
                yield answers.pop(at).verdict
                at += 1
        yield from (answers[at].verdict for at in sorted(answers))  # the verdicts on empty texts at the end

    def _requests(self, texts: Iterable[str], answers: "dict[int, _Answer]") -> "Iterator[Request]":
        from ..decoding.config import GenerationConfig
        from ..decoding.many import Request
        from ..params import Params

        for i, text in enumerate(texts):
            answers[i] = answer = _Answer(self._yes, self._no)
            if text.strip():
                yield Request(i, self._prompt(text), GenerationConfig(Params(), max_tokens=1), sampler=answer.itself)
            else:
                answer.verdict, answer.ended = Verdict(0.0, 1.0), True

    def _prompt(self, text: str) -> npt.NDArray[np.int32]:
        tail = text[-self._room * _CHARACTERS_A_TOKEN :].encode("utf-8", "replace")
        tokens = self.model.llm.tokenize(tail, add_bos=False, special=False)
        return np.array([*self._before, *tokens[-self._room :], *self._after], np.int32)

    def _question(self) -> tuple[str, str]:
        """Return the parts of the prompt before and after the text."""
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
            raise LzsError(f"{self.model.path.name} cannot judge: its chat template changes the text of a message")
        return before, after

    def _tokens_that_read(self, word: str) -> npt.NDArray[np.intp]:
        pieces = (self.model.piece(token).strip().lower() for token in range(self.model.n_vocab))
        tokens = [token for token, piece in enumerate(pieces) if piece == word.encode()]
        if not tokens:
            raise LzsError(f"{self.model.path.name} cannot judge: it has no token for {word!r}")
        return np.array(tokens)


def refuse_another(judge: Judge, folder: RunFolder) -> None:
    """Raise ValueError if a folder has verdicts from another judge."""
    for line in folder.lines(JUDGED):
        if line.row is not None and line.row.get("judge") != judge.identity:
            raise ArgumentError(
                f"{folder.path / JUDGED} was written by another judge, context or version: "
                "use that judge, or move the file away to judge again"
            )


def judge_folder(judge: Judge, folder: RunFolder, *, on_text: Callable[[int, int], object] | None = None) -> None:
    """Judge the texts of a folder that have no verdict yet; append each verdict to judge.jsonl at once.

    ``on_text`` is called with (done, all) after each text. Errors as for `refuse_another`; LzsError if a file or the
    model fails.
    """
    from ..decoding.transcript import TranscriptFile

    refuse_another(judge, folder)
    done = {line.key: line.row["text"] for line in folder.lines(JUDGED) if line.row and verdict_of(line.row)}
    texts = {line.key: digest_of(line.row) for line in folder.lines(TRANSCRIPTS) if line.key and line.row}
    missing = {key: digest for key, digest in texts.items() if done.get(key) != digest}
    asked: deque[Key] = deque()

    def to_judge() -> Iterator[str]:
        for line in folder.lines(TRANSCRIPTS):
            if line.key in missing and line.key is not None and line.row is not None:
                asked.append(line.key)
                yield text_of(line.row)

    n = len(texts) - len(missing)
    with TranscriptFile(folder.path / JUDGED) as file:
        for verdict in judge.verdicts(to_judge()):
            key = asked.popleft()
            names = dict(zip(("setting", "prompt", "seed"), key, strict=True))
            file.append({**names, **verdict._asdict(), "text": missing[key], "judge": judge.identity})
            n += 1
            if on_text is not None:
                on_text(n, len(texts))


class _Answer:
    """A substitute for a sampler, which reads the verdict from the logits after the question."""

    def __init__(self, yes: npt.NDArray[np.intp], no: npt.NDArray[np.intp]) -> None:
        self._yes, self._no = yes, no
        self.verdict = Verdict(0.0, 0.0)
        self.ended = False

    def itself(self) -> "_Answer":
        return self

    def prime(self, tokens: Tokens) -> None:
        """Ignore the prompt."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Read the verdict; ValueError for NaN."""
        if np.isnan(logits).any():
            raise ArgumentError("logits are nan")
        x = logits.astype(np.float64)
        yes, no, every = (np.logaddexp.reduce(part) for part in (x[self._yes], x[self._no], x))
        either = np.logaddexp(yes, no)
        self.verdict = Verdict(float(np.exp(yes - either)), float(np.exp(either - every)))
        return int(self._yes[0] if yes > no else self._no[0])

    def accept(self, token: int) -> None:
        """Do nothing: the text ends after its only token."""
