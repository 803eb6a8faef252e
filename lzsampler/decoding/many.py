"""`generate_many`: many texts in a few llama.cpp contexts. Each step decodes one token of every text, in one batch.

Every text equals the text of `generate` if llama.cpp computes the same logits for one sequence and for several. With
Q8_0 weights the logits are bit-identical. With F16 weights the logits differ, so a text may change where two tokens
have almost the same logit. The logits also differ with flash attention and several threads in a context of more than
256 tokens (llama.cpp 0.3.36). To get the same logits, every sequence has a cache of its own (``kv_unified`` is off). A
prompt is decoded separately, in the same batches as in `generate`. Cached tokens are reused only if the same kernels
computed them (`_reusable`).

Texts of one prompt share one sequence as long as they are equal. When their samplers pick different tokens, the largest
group of texts with the same token continues. The other groups wait in the same cache until the largest group has ended,
or move to a free cache. Different settings of a grid often write the same text, so sharing saves half of the work. `lzs
eval --grid paper` writes 1.9 tokens for each decoded token, and 7 in answers to tasks (embedded model).

If llama.cpp has fewer threads than there are cores, as for a small model, several contexts decode at the same time.

A draft (together.py) proposes tokens for the texts that have a cache of their own. One call computes the logits of all
texts, so the more texts there are, the less a draft gains.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from time import perf_counter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from .._check import integer
from .._ffi import ffi
from .._values import shown
from ..constraint.grammar import Grammar
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..llama import llama_cpp
from ..llama.model import MAX_THREADS, Model, Prompt, refuse_other_model
from ..util.cores import physical_cores
from ..util.pool import started_pool
from ..util.signals import uninterrupted
from .config import GenerationConfig, config_of
from .draft import Draft, common_length, refuse_draft, warn_of_change
from .generation import Generation
from .sequences import Sequences
from .text_sampler import TextSampler
from .together import Place, Shared, Together
from .writing import Text

MAX_PARALLEL = 256  # LLAMA_MAX_SEQ
_TOGETHER = 256  # the most texts of one prompt that begin together; each text has a sampler in memory
_T = TypeVar("_T")
_KERNELS = (1, 2, 64)  # batch sizes, in tokens, at which llama.cpp (0.3.36) changes to other kernels
_WORTH_COPYING = 8  # fewer prompt tokens are not copied, because llama.cpp copies only whole sequences


@dataclass(frozen=True)
class Request:
    """One text to write, as `generate` writes it. ``id``: any object by which the caller recognises the request.

    ``config``: the settings of the text. The seed is in ``config.params``. With the same seed, texts of different
    prompts draw the same random numbers. For independent texts, use `sequence_seed(seed, number of the prompt)`. Each
    context copies the grammar. Every token is sampled, even if the grammar allows only one token. ``config`` must have
    no draft, because `generate_many` takes one draft for all texts. Penalties are applied on the CPU.

    ``on_text`` may be called from another thread. ``sampler``: a function that returns the sampler of the text, in
    place of the sampler that ``config.params`` describe. The function is called when the text begins.
    """

    id: Any
    prompt: Prompt
    config: GenerationConfig = field(default_factory=GenerationConfig)
    on_text: Callable[[str], object] | None = None
    sampler: Callable[[], TextSampler] | None = None

    def __post_init__(self) -> None:
        config_of(self.config)
        if self.config.draft is not None:
            raise ArgumentError("one draft serves all texts: give it to generate_many, not to a request")
        if self.config.sampler == "graph":
            raise ArgumentError("sampler='graph' is for one text at a time: use generate, or leave it out")


def generate_many(
    model: Model,
    requests: Iterable[Request],
    *,
    n_parallel: int = 16,
    n_threads: int | None = None,
    n_contexts: int | None = None,
    draft: Draft | None = None,
) -> Iterator[tuple[Request, Generation | ValueError | LzsError]]:
    """Yield each request with its text, in the order in which the texts end. The order depends only on the lengths of
    the texts.

    If a request fails, it is yielded with its error instead of a text, and the other requests continue. The error is
    the ValueError or LzsError that `generate` would raise, or that the request's ``sampler`` or ``on_text`` raises. If
    llama.cpp fails, all texts of the context in which it failed get the LzsError. Any other error is a bug, and is
    raised.

    ``n_parallel``: number of different texts at a time, 1..256. Each text has a cache for ``model.n_ctx`` tokens in
    memory. ``n_threads``: llama.cpp's threads for each context; None means as many as the model has. ``n_contexts``:
    how many contexts decode at the same time, each with a part of the texts; None means one for every ``n_threads``
    cores, and one context on a GPU. Requests are taken from the iterable when there is room. Consecutive requests with
    the same prompt are taken together, and one more request is read to see where they end. The timings of a text are
    the time of its prompt and its share of the time of each step. Texts that share a sequence count as one text.

    ``draft``: the source of proposed tokens, which changes the speed but no text. Its mode must be "gumbel" or "match":
    in "mrs" a text would depend on the texts that are decoded in the same call. Nothing is drafted for texts that share
    a sequence.

    Raises ValueError for numbers out of range and for a draft that does not fit; TypeError for a model that is not a
    `Model`; LzsError when there is no memory for the contexts. Closing the iterator frees the contexts. Until then the
    model cannot be closed. Any number of threads may call this function with one model.
    """
    refuse_other_model("generate_many", model)
    n_parallel = integer("n_parallel", n_parallel, 1, MAX_PARALLEL)
    threads = model.n_threads if n_threads is None else integer("n_threads", n_threads, 1, MAX_THREADS)
    if n_contexts is None:
        n_contexts = side_by_side(model, threads)
    n_contexts = min(integer("n_contexts", n_contexts, 1, MAX_PARALLEL), n_parallel)
    if draft is not None:
        refuse_shared(model, draft)
        warn_of_change(model, draft, model.n_ctx, threads, stacklevel=2)
    contexts: list[_Context] = []
    pool = started_pool(n_contexts)
    try:
        with uninterrupted():
            for i in range(n_contexts):
                contexts.append(_Context(model, (n_parallel + i) // n_contexts, threads, draft=draft))
        yield from _run(model, contexts, pool, iter(requests))
    finally:
        with uninterrupted():  # a second Ctrl-C must not free memory that a thread of the pool still uses
            for context in contexts:
                context.stop()
            pool.shutdown(cancel_futures=True)
            for context in contexts:
                context.close()


def refuse_shared(model: Model, draft: Draft) -> None:
    """Raise like `refuse_draft`, and ValueError for a draft that only works for a single text."""
    refuse_draft(model, draft)
    if draft.mode == "mrs":
        raise ArgumentError("mode mrs is for one text, because several texts would depend on each other: use gumbel")
    if draft.on_proposed is not None:
        raise ArgumentError("on_proposed is for one text: leave it out")


def side_by_side(model: Model, n_threads: int | None = None) -> int:
    """Return how many contexts of a model the cores can decode at the same time; 1 on a GPU."""
    if model.n_gpu_layers and llama_cpp.llama_supports_gpu_offload():
        return 1
    return min(MAX_PARALLEL, max(1, physical_cores() // (n_threads or model.n_threads)))


def _run(
    model: Model, contexts: Sequence["_Context"], pool: ThreadPoolExecutor, requests: Iterator[Request]
) -> Iterator[tuple[Request, Generation | ValueError | LzsError]]:
    each = pool.map if len(contexts) > 1 else map
    groups = _alike(requests)
    while True:
        while (roomy := max(contexts, key=lambda context: context.room)).room:
            together = next(groups, None)
            if together is None:
                break
            texts = []
            for request in together:
                try:
                    texts.append((request, _text(model, request, roomy.grammars)))
                except (ValueError, LzsError) as error:
                    yield request, error
            if texts:
                roomy.add(texts)
        working = [context for context in contexts if not context.idle]
        if not working:
            return
        for ended in each(_Context.step, working):
            for request, text in ended:
                text.total_s = text.prompt_s + text.decode_s + text.sampling_s
                yield request, text.generation() if text.error is None else text.error


def _alike(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """Yield lists of consecutive requests with the same prompt."""

    def prompt_of(request: Request) -> object:
        if not isinstance(request, Request):
            raise ArgumentTypeError(f"requests must be Request objects, got {shown(request)}")
        return request.prompt.tolist() if isinstance(request.prompt, np.ndarray) else request.prompt

    for _, group in groupby(requests, prompt_of):
        while together := list(islice(group, _TOGETHER)):
            yield together


def _text(model: Model, request: Request, grammars: MutableMapping[Grammar, Grammar]) -> Text:
    grammar = request.config.grammar
    if grammar is not None:
        if grammar not in grammars:
            grammars[grammar] = grammar.copy()  # one thread at a time may use a grammar, and each context has a thread
        grammar = grammars[grammar]
    return Text(
        model,
        request.prompt,
        replace(request.config, grammar=grammar, fast_forward=False),
        on_text=request.on_text,
        sampler=None if request.sampler is None else request.sampler(),
    )


def _tried(text: Text, call: Callable[..., _T], *arguments: Any) -> _T | None:
    """Call a function for one text and return its result; None if it fails or the text failed before."""
    try:
        return None if text.over else call(*arguments)
    except (ValueError, LzsError) as error:
        text.error, text.over = error, True
        return None


_Writing = tuple[Request, Text]
_Working = Sequence[tuple["_Cache", "_Branch"]]


@dataclass
class _Branch:
    """Texts that are equal so far: ``n_past`` tokens are decoded, and ``token`` is decoded next.

    ``ahead``: tokens to decode before ``token``. An action wrote these tokens in place of the text that it cut.
    """

    texts: list[_Writing]
    token: int
    n_past: int
    ahead: tuple[int, ...] = ()


def _least(n: int) -> int:
    """Return the smallest batch size at which llama.cpp uses the same kernels as for ``n`` tokens."""
    return max(size for size in _KERNELS if size <= n)


class _Cache:
    """The ``n_past`` tokens of one sequence in llama.cpp: a prompt and a text. ``row``: the logits after the prompt.

    ``branch``: the texts that are being written in this cache. ``waiting``: branches of the same prompt that wait. The
    cache holds the tokens of the waiting branches too. Each branch begins with the tokens of the branch before it in
    the list. The last branch of the list resumes first.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.prompt: list[int] = []
        self.row: Any = None
        self.n_past = 0
        self.branch: _Branch | None = None
        self.waiting: list[_Branch] = []


class _Context(Sequences):
    """One llama.cpp context, perhaps with a draft, and its texts, with one cache for each different text."""

    def __init__(
        self, model: Model, n_caches: int, n_threads: int, n_ctx: int | None = None, draft: Draft | None = None
    ) -> None:
        super().__init__(model, n_caches, n_threads, n_ctx)
        self._together: Together | None = None
        if draft is not None:
            rows = min(self.capacity, n_caches * (1 + draft.most))
            try:
                self._together = Together(draft, n_caches, rows, n_threads)
            except BaseException:
                self.close()
                raise
        self._draft, self._clock = draft, perf_counter if draft is None else draft.clock
        self._texts: list[_Writing] = []  # texts that have not ended
        self._empty(n_caches)
        self.grammars = WeakKeyDictionary[Grammar, Grammar]()  # grammar of a request -> copy for this context

    def _empty(self, n_caches: int) -> None:
        self._caches = [_Cache(i) for i in range(n_caches)]
        self._free = list(self._caches)
        self._begun: list[tuple[_Cache, list[_Writing]]] = []  # texts whose prompt is not decoded yet

    def close(self) -> None:
        """Free the context and the draft's context."""
        if self._together is not None:
            self._together.close()
            self._together = None
        super().close()

    @property
    def room(self) -> int:
        """Number of free caches."""
        return len(self._free)

    @property
    def idle(self) -> bool:
        """Whether there is no text to write."""
        return len(self._free) == len(self._caches)

    def add(self, texts: list[_Writing]) -> None:
        """Begin texts of one prompt in the free cache that already holds the largest part of the prompt."""
        if self._draft is not None and self._together is not None:
            for _, text in texts:
                text.speculator = None if text.own is None else Shared(text, self._draft, self._together.pace)
        prompt = texts[0][1].prompt
        cache = max(self._free, key=lambda cache: self._reusable(cache, prompt))
        self._free.remove(cache)
        self._texts += texts
        self._begun.append((cache, texts))

    def step(self) -> list[_Writing]:
        """Write the next token of each text that does not wait, and return the texts that end.

        A text gets one token, but two tokens in its first step, and perhaps several with a draft. If llama.cpp fails,
        all texts end.
        """
        try:
            self._step()
        except LzsError as error:
            self._fail(error)
        ended = [(request, text) for request, text in self._texts if text.over]
        self._texts = [(request, text) for request, text in self._texts if not text.over]
        return ended

    def _fail(self, error: LzsError) -> None:
        """End all texts, and empty the caches, whose contents are now unknown."""
        for _, text in self._texts:
            if not text.over:
                text.error, text.over = error, True
        self.clear()
        if self._together is not None:
            self._together.clear()
        self._empty(len(self._caches))

    def _step(self) -> None:
        for cache, texts in self._begun:
            start = perf_counter()
            row = self._prompt(cache, texts[0][1].prompt)
            for _, text in texts:
                text.prompt_s = perf_counter() - start
            self._pick(cache, texts, row)
        self._go_on([cache for cache, _ in self._begun])
        self._begun = []
        self._close_up()
        working = [(cache, cache.branch) for cache in self._caches if cache.branch is not None]
        if working:
            if self._together is None:
                self._write(working)
            else:
                self._write_drafted(working, self._together)
            self._go_on([cache for cache, _ in working])
        self._spread()

    def _write(self, working: _Working) -> None:
        """Decode the last picked token of each text, and pick the next token."""
        start = perf_counter()
        batch = [(branch.token, cache.n_past, cache.number) for cache, branch in working]
        rows = self._decode(batch, wanted=len(batch))
        share = (perf_counter() - start) / len(batch)
        for (cache, branch), row in zip(working, rows, strict=True):
            cache.n_past += 1
            for _, text in branch.texts:
                text.decode_s += share
            self._pick(cache, branch.texts, row)

    def _write_drafted(self, working: _Working, together: Together) -> None:
        """Decode the last picked token of each text and the tokens drafted after it, and pick the next tokens."""
        start, clock = perf_counter(), self._clock
        places = [self._place(cache, branch) for cache, branch in working]
        drafted = together.propose(places)
        longest = max(len(tokens) for _, tokens in drafted)
        for (_, branch), (_, tokens) in zip(working, drafted, strict=True):
            for _, text in branch.texts:
                if isinstance(text.speculator, Shared) and not tokens:
                    text.speculator.counted.plain += 1
        before = clock()
        if not longest:
            self._write(working)
            together.pace.went(len(working), clock() - before)
            return
        batch: list[tuple[int, int, int]] = []
        firsts = []
        for (cache, branch), (_, tokens) in zip(working, drafted, strict=True):
            firsts.append(len(batch))
            # llama.cpp computes only sequences of equal length together. So shorter blocks are padded with copies of
            # the first token, which are purged together with the rejected tokens.
            more = min(longest, self._model.n_ctx - cache.n_past - 1) - len(tokens)
            block = [branch.token, *tokens, *[branch.token] * more]
            batch += [(token, cache.n_past + i, cache.number) for i, token in enumerate(block)]
        rows = self._decode(batch, wanted=len(batch))
        share = (perf_counter() - start) / len(working)
        blocks, added = [], 0
        for (cache, branch), (kind, tokens), first, place in zip(working, drafted, firsts, places, strict=True):
            for _, text in branch.texts:
                text.decode_s += share
            if tokens and place.shared is not None:
                request, text = branch.texts[0]
                last, judged = None, _tried(text, place.shared.judge, rows[first])
                if judged is not None:
                    made, last = judged
                    blocks.append((kind, len(tokens), made.n_accepted))
                    added += len(made.tokens)
                    cache.n_past += len(made.tokens)
                self._going_on(cache, [(request, text, last)])
            else:
                added += 1
                cache.n_past += 1
                self._pick(cache, branch.texts, rows[first])
            self._keep(cache.number, cache.n_past)
        together.pace.judged_together(len(working), len(batch), blocks, together.seconds, added, clock() - before)

    def _place(self, cache: _Cache, branch: _Branch) -> Place:
        """Return the `Place` of a branch, without a draft if texts share the cache or the sampler's settings may
        change.
        """
        text = branch.texts[0][1]
        shared = text.speculator if len(branch.texts) == 1 and text.steady else None
        return Place(cache.number, cache.n_past, shared if isinstance(shared, Shared) else None)

    def _pick(self, cache: _Cache, texts: list[_Writing], row: Any) -> None:
        """Let each text of a branch take its next token from the logits ``row``."""
        room = cache.n_past < self._model.n_ctx
        self._going_on(cache, [(request, text, _tried(text, text.take, row, room)) for request, text in texts])

    def _going_on(self, cache: _Cache, texts: list[tuple[Request, Text, int | None]]) -> None:
        """Split the texts of a branch by next token into waiting branches. A text without a next token has ended."""
        branches, cut = dict[int, _Branch](), list[_Branch]()
        for request, text, token in texts:
            if token is None:
                continue
            if text.behind is not None:
                cut.append(_Branch([(request, text)], token, text.behind, text.ahead))
                text.behind = None
            else:
                branches.setdefault(token, _Branch([], token, cache.n_past)).texts.append((request, text))
        cache.branch = None
        cache.waiting += sorted(branches.values(), key=lambda branch: len(branch.texts))
        if cut:  # the order by ``n_past`` must stay, and a cut text has a smaller ``n_past``
            cache.waiting = sorted([*cut, *cache.waiting], key=lambda branch: branch.n_past)

    def _go_on(self, caches: Iterable[_Cache]) -> None:
        """Resume in each cache the branch that began to wait last, or mark the cache as free."""
        for cache in caches:
            if cache.waiting:
                self._resume(cache, cache.waiting.pop())
            else:
                self._free.append(cache)

    def _resume(self, cache: _Cache, branch: _Branch) -> None:
        """Resume a branch in a cache that holds its tokens, and perhaps more tokens after them."""
        cache.branch = branch
        if branch.n_past == cache.n_past:
            more: Sequence[int] = branch.ahead
        elif self._keep(cache.number, branch.n_past):
            cache.n_past = branch.n_past
            more = branch.ahead
        else:
            text = branch.texts[0][1]  # a recurrent model can only start anew, not remove its last tokens
            self._prompt(cache, text.prompt)
            more = text.tokens[:-1]
        for token in more:
            self._decode([(token, cache.n_past, cache.number)], wanted=1)
            cache.n_past += 1

    def _prompt(self, cache: _Cache, prompt: list[int]) -> Any:
        """Bring a prompt into a cache, and return the logits after the prompt.

        As many tokens as possible are copied from another cache.
        """
        source = max(self._caches, key=lambda other: (self._reusable(other, prompt), other is cache))
        keep = self._reusable(source, prompt)
        if source is not cache:
            keep = keep if keep >= _WORTH_COPYING else 0
            if keep:
                self._copy(source, cache)
        if not keep or not self._keep(cache.number, keep):
            keep = 0  # a recurrent model can only start anew, not remove its last tokens
            llama_cpp.llama_memory_seq_rm(self._memory, cache.number, -1, -1)
        cache.n_past = keep
        while cache.n_past < len(prompt):
            end = self._end(cache.n_past, prompt)
            part = [(prompt[place], place, cache.number) for place in range(cache.n_past, end)]
            (row,) = self._decode(part, wanted=1)
            cache.row = ffi.new("float[]", self._model.n_vocab)
            ffi.memmove(cache.row, row, 4 * self._model.n_vocab)
            cache.n_past = end
        cache.prompt = prompt
        return cache.row

    def _reusable(self, cache: _Cache, prompt: list[int]) -> int:
        """Return how many tokens of a prompt a cache holds exactly as `generate` would compute them.

        llama.cpp has different kernels for batches of one token, of a few tokens and of many tokens. Each kernel rounds
        differently. So the batch in which a cached token was decoded must use the same kernels as the batch in which
        `generate` would decode the token.
        """
        if cache.prompt == prompt:
            return len(prompt)
        n = min(common_length(cache.prompt, prompt), len(prompt) - 1)
        begin = (n - 1) // self._model.n_batch * self._model.n_batch  # start of the batch of token n - 1
        if n and _least(self._end(begin, cache.prompt) - begin) != _least(self._end(begin, prompt) - begin):
            n = begin
        begin, end = n // self._model.n_batch * self._model.n_batch, self._end(n, prompt)
        return min(n, end - _least(end - begin))

    def _end(self, place: int, prompt: list[int]) -> int:
        """Return the end of the batch that contains the prompt's token at offset ``place``."""
        n_batch = self._model.n_batch
        return min(len(prompt), (place // n_batch + 1) * n_batch)

    def _spread(self) -> None:
        """Move waiting branches to free caches, as long as there are both."""
        while self._free and (source := max(self._caches, key=lambda cache: len(cache.waiting))).waiting:
            target = self._free.pop(0)
            self._copy(source, target)
            self._resume(target, source.waiting.pop(0))

    def _close_up(self) -> None:
        """Move the texts into the first caches, because llama.cpp computes only neighbouring caches together."""
        working = [cache for cache in self._caches if cache.branch is not None]
        gaps = [cache for cache in self._caches[: len(working)] if cache.branch is None]
        beyond = [cache for cache in working if cache.number >= len(working)]
        for gap, cache in zip(gaps, beyond, strict=True):
            self._copy(cache, gap)
            gap.branch, cache.branch = cache.branch, None
            gap.waiting, cache.waiting = cache.waiting, []
            self._free[self._free.index(gap)] = cache

    def _copy(self, source: _Cache, target: _Cache) -> None:
        self._copy_sequence(source.number, target.number)
        if self._together is not None:
            self._together.copied(source.number, target.number)
        target.prompt, target.row, target.n_past = source.prompt, source.row, source.n_past
