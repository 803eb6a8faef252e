"""The penalties inside an application of llama-cpp-python: `attach` to a `llama_cpp.Llama`, or `LZLlama` in its place.

Both put the native link into every sampler chain that `Llama` builds, before truncation. What they take care of on the
way, since llama-cpp-python (0.3.17 to 0.3.36, `llama.py`) does not: the prompt reaches the penalties when
``history="all"``; a chain is freed when its text ends, not when the garbage collector comes; no chain outlives its text
to serve a later low-level `sample`; tokens given to `generate().send()`, which it takes for drafts, cannot end the
process; `logit_bias` and `logits_processor` work together; a call without a seed, on a model without one, draws a new
seed each time.
"""

import dataclasses
import inspect
import random
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._ffi import lib
from ..params import Params, sampling_fields
from ..sampler import Loop, Sampler, loop_found, refuse_tokens_outside
from .binding import llama_cpp
from .chain import address, check_chain_sampler, penalties_sampler
from .grammar import PickFirst
from .vocabulary import dry_breaker_ids, exempt_ids

UNSEEDED: int = llama_cpp.LLAMA_DEFAULT_SEED
_DRY = ("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_breakers")
PER_CALL = ("lz_penalty", "lz_window", "lz_buffer", "lz_formula", *_DRY, "history", "exempt", "repetition_detection")
_OURS = (*PER_CALL, "params", "fast_grammar", "trim")
_OURS_ALONE = (*_OURS, "logit_bias")  # where llama-cpp-python has no logit_bias of its own
_TOKENS_OF: dict[str, Callable[[Any, list[str]], tuple[int, ...]]] = {  # fields that may hold strings here
    "exempt": exempt_ids,
    "dry_breakers": dry_breaker_ids,
}
_PENALTIES_OFF = {"repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}


@dataclass
class Stats:
    """What an attachment has seen: ``calls`` (texts begun), ``tokens`` accepted, ``loops`` that ended a text, the
    ``last_loop`` (positions in its text's tokens), ``refused`` picks of ``fast_grammar``, ``seed`` of the last text.
    """

    calls: int = 0
    tokens: int = 0
    loops: int = 0
    last_loop: Loop | None = None
    refused: int = 0
    seed: int | None = None


@dataclass(frozen=True)
class _Settings:
    """What a call goes by."""

    params: Params
    fast_grammar: bool
    trim: bool

    def __post_init__(self) -> None:
        if not isinstance(self.params, Params):
            raise ValueError(f"params must be a Params, got {self.params!r}")
        for field in sampling_fields(self.params):
            raise ValueError(
                f"{field} is not for Params here, got {getattr(self.params, field)!r}: llama-cpp-python samples, "
                "and its calls take temperature, top_k, top_p, min_p and seed"
            )
        for name in ("fast_grammar", "trim"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")


class Attachment:
    """The penalties of one `llama_cpp.Llama`: what `attach` returns, and `LZLlama.lz`. A context manager that detaches.

    ``params`` and the flags may be set at any time and hold from the next text on. Not for two threads at a time, as
    the model itself.
    """

    def __init__(self, llm: Any, settings: _Settings, *, restore: type | None) -> None:
        self._llm = weakref.ref(llm)
        self._settings = settings
        self._restore = restore
        self._call: _Settings | None = None  # of the call that is going on, where it has arguments of its own
        self.text: _Text | None = None  # the one whose chain is being built
        self._unseeded = llm._seed == UNSEEDED
        self.stats = Stats()

    @property
    def params(self) -> Params:
        """The penalties from the next text on."""
        return self._settings.params

    @params.setter
    def params(self, params: Params) -> None:
        self._settings = dataclasses.replace(self._settings, params=params)

    @property
    def fast_grammar(self) -> bool:
        """Whether a grammar is asked about the picked token only; see `attach`."""
        return self._settings.fast_grammar

    @fast_grammar.setter
    def fast_grammar(self, fast_grammar: bool) -> None:
        self._settings = dataclasses.replace(self._settings, fast_grammar=fast_grammar)

    @property
    def trim(self) -> bool:
        """Whether a text that ends in a loop is cut back to the loop's first copy."""
        return self._settings.trim

    @trim.setter
    def trim(self, trim: bool) -> None:
        self._settings = dataclasses.replace(self._settings, trim=trim)

    def detach(self) -> None:
        """Give the model back as it was; nothing happens the second time. ValueError on an `LZLlama`."""
        llm = self._llm()
        if self._restore is None:
            raise ValueError("an LZLlama cannot be detached: set lz.params = Params() to switch its penalties off")
        if llm is not None and llm.__dict__.get("lz") is self:
            llm.__class__ = self._restore
            del llm.lz

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    # -- for the hooks --

    def current(self) -> _Settings:
        """Return the settings of the call that is going on."""
        return self._call or self._settings

    @contextmanager
    def using(self, settings: _Settings) -> Iterator[None]:
        """Make them those of the call, for a while."""
        before, self._call = self._call, settings
        try:
            yield
        finally:
            self._call = before

    def run(self, method: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call a method of `Llama` without the keywords that are ours, which hold for that call, streamed or not."""
        ours = _taken(keywords)
        if not ours:
            return method(*arguments, **keywords)
        settings = merged(self._llm(), self.current(), ours)
        with self.using(settings):
            result = method(*arguments, **keywords)
        return self.steps(result, settings) if inspect.isgenerator(result) else result

    def steps(self, chunks: Generator[Any, Any, Any], settings: _Settings) -> Iterator[Any]:
        """Yield chunks, each made under the call's settings.

        A stream goes on long after its call returned, and some chat handlers begin only with the first chunk.
        """
        with closing(chunks):
            while True:
                with self.using(settings):
                    chunk = next(chunks, None)
                if chunk is None:
                    return
                yield chunk

    @contextmanager
    def building(self, text: "_Text") -> Iterator[None]:
        """Let the chains that are made meanwhile be those of a text."""
        before, self.text = self.text, text
        try:
            yield
        finally:
            self.text = before


def _taken(keywords: dict[str, Any], names: Sequence[str] = _OURS) -> dict[str, Any]:
    """Take those that are ours out of a call's keywords, and return them."""
    return {name: keywords.pop(name) for name in names if name in keywords}


def merged(llm: Any, settings: _Settings, ours: Mapping[str, Any]) -> _Settings:
    """Return settings with some of `_OURS_ALONE` in place of theirs; ``exempt`` and ``dry_breakers`` may hold strings.

    When DRY is switched on and no breakers are given, it gets those of llama.cpp.
    """
    flags = {name: ours[name] for name in ("fast_grammar", "trim") if name in ours}
    params = ours.get("params", settings.params)
    changes = {name: ours[name] for name in (*PER_CALL, "logit_bias") if name in ours}
    for name, tokens_of in _TOKENS_OF.items():
        given = changes.get(name, ())
        if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
            raise ValueError(f"{name} must be a sequence of token ids and strings, got {given!r}")
        if isinstance(given, list | tuple | set | frozenset) and any(isinstance(token, str) for token in given):
            strings = [token for token in given if isinstance(token, str)]
            changes[name] = (*(token for token in given if not isinstance(token, str)), *tokens_of(llm, strings))
    if isinstance(params, Params):
        bare = "dry_breakers" not in changes and not params.dry_breakers
        if changes.get("dry_multiplier") and bare and llm is not None:
            changes["dry_breakers"] = dry_breaker_ids(llm)
        params = dataclasses.replace(params, **changes) if changes else params
    return dataclasses.replace(settings, params=params, **flags)


class _Text:
    """One text: its prompt, its tokens, and the chain that samples it."""

    def __init__(self, settings: _Settings, prompt: Sequence[int]) -> None:
        self.settings = settings
        self.prompt = prompt
        self.tokens: list[int] = []
        self.loop: Loop | None = None  # set when it ends the text
        self._chain: Any = None  # LlamaSampler, or what stands for one
        self._link: Any = None
        self._handle: Any = None

    def build(self, llm: Any, make: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Return llama-cpp-python's chain for these arguments of `_init_sampler`, with our link in it."""
        grammar = arguments.get("grammar")
        fast = self.settings.fast_grammar and grammar is not None
        chain = make(**{**arguments, "grammar": None} if fast else arguments)
        source = Sampler(llm.n_vocab(), self.settings.params)
        source.prime(self.prompt)
        self._link = penalties_sampler(source)
        at = insert(chain, self._link)
        self._handle = lib.lzs_chain_sampler_inner(address(self._link))
        self._chain = chain
        if fast:
            alone = not chain.custom_samplers and all(arguments[name] == off for name, off in _PENALTIES_OFF.items())
            self._chain = PickFirst(
                llm, chain, grammar, self._link if alone else None, n_head=at + 1, n_best=_kept(arguments)
            )
        return self._chain

    def looped(self) -> bool:
        """Return whether the tokens end in a loop that ends the text."""
        if self.settings.params.repetition_detection is not None:
            self.loop = loop_found(self._handle)
        return self.loop is not None

    def check(self) -> None:
        """Raise what went wrong inside the link, if anything did."""
        if self._link is not None:
            check_chain_sampler(self._link)

    def close(self, llm: Any, stats: Stats) -> None:
        """Free the chain now: llama-cpp-python's refers to itself, so that it would wait for the garbage collector."""
        if self._chain is None:
            return
        if isinstance(self._chain, PickFirst):
            stats.refused += self._chain.refused
        if llm._sampler is self._chain:
            llm._sampler = None
        self._chain.close()
        self._chain = self._link = self._handle = None


def insert(sampler: Any, link: Any) -> int:
    """Put a link into the chain of a `LlamaSampler` before everything but Python's samplers and `penalties`.

    Returns its index. The chain is taken apart and built again; `custom_samplers` holds indices, which move.
    """
    chain = sampler.sampler
    custom = {index for index, _ in sampler.custom_samplers}
    n = llama_cpp.llama_sampler_chain_n(chain)
    at = 0
    while at < n and (at in custom or _name(chain, at) == b"penalties"):
        at += 1
    rest = [llama_cpp.llama_sampler_chain_remove(chain, at) for _ in range(n - at)]
    for one in (link, *rest):
        llama_cpp.llama_sampler_chain_add(chain, one)
    sampler.custom_samplers = [(index + (index >= at), custom) for index, custom in sampler.custom_samplers]
    return at


def _name(chain: Any, at: int) -> bytes:
    """Return the name of a link that is not Python's: those have none, and asking crashes. "?" marks a disabled one."""
    name: bytes = llama_cpp.llama_sampler_name(llama_cpp.llama_sampler_chain_get(chain, at))
    return name.lstrip(b"?")


def _kept(arguments: Mapping[str, Any]) -> int:
    """Return how many candidates the first truncation of a chain keeps: top-k, 1 if greedy, 0 if there is none."""
    if arguments["temp"] == 0.0:
        return 1
    return max(arguments["top_k"], 0) if arguments["temp"] > 0.0 and arguments["mirostat_mode"] == 0 else 0


class _LoopEnd:
    """The stopping criterion that tells `_create_completion` that the text ended, in a loop."""

    def __init__(self) -> None:
        self.text: _Text | None = None

    def __call__(self, *_: object) -> bool:
        return self.text is not None


class _Hooks:
    """Overrides of `llama_cpp.Llama`: its public methods take our keywords, its chains get our link."""

    lz: Attachment

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.lz.run(super().__call__, arguments, keywords)  # type: ignore[misc]

    def create_completion(self, *arguments: Any, **keywords: Any) -> Any:
        """`Llama.create_completion`, with the keywords of `LZLlama`."""
        return self.lz.run(super().create_completion, arguments, keywords)  # type: ignore[misc]

    def create_chat_completion(self, *arguments: Any, **keywords: Any) -> Any:
        """`Llama.create_chat_completion`, with the keywords of `LZLlama`."""
        return self.lz.run(super().create_chat_completion, arguments, keywords)  # type: ignore[misc]

    def generate(self, *arguments: Any, **keywords: Any) -> Any:
        """`Llama.generate`, with the keywords of `LZLlama`."""
        ours = _taken(keywords, _OURS_ALONE)
        with self.lz.using(merged(self, self.lz.current(), ours)):  # taken at once: what comes back can be sent tokens
            return self._generate(*arguments, **keywords)

    def sample(self, *arguments: Any, **keywords: Any) -> Any:
        """`Llama.sample`; outside of a `generate`, all tokens of the context are the text that penalties see."""
        if self._sampler is not None:  # type: ignore[attr-defined]
            return super().sample(*arguments, **keywords)  # type: ignore[misc]
        settings = self.lz.current()
        whole = dataclasses.replace(settings, params=dataclasses.replace(settings.params, history="all"))
        text = _Text(whole, self._input_ids.tolist())  # type: ignore[attr-defined]
        try:
            with self.lz.building(text):
                token = super().sample(*arguments, **keywords)  # type: ignore[misc]
            text.check()
            return token
        finally:
            text.close(self, self.lz.stats)

    def _init_sampler(self, *arguments: Any, **keywords: Any) -> Any:
        make = super()._init_sampler  # type: ignore[misc]
        bound = inspect.signature(make).bind(*arguments, **keywords)
        bound.apply_defaults()
        text = self.lz.text or _Text(self.lz.current(), ())  # not from `generate` or `sample`: the caller's own chain
        return text.build(self, make, bound.arguments)

    def _generate(self, *arguments: Any, **keywords: Any) -> Generator[int, Sequence[int] | None, None]:
        make = super().generate  # type: ignore[misc]
        bound = inspect.signature(make).bind(*arguments, **keywords)
        criteria = bound.arguments.get("stopping_criteria") or ()
        end = next((criterion for criterion in criteria if isinstance(criterion, _LoopEnd)), _LoopEnd())
        rest = [criterion for criterion in criteria if criterion is not end]
        if criteria:
            bound.arguments["stopping_criteria"] = llama_cpp.StoppingCriteriaList(rest) if rest else None
        prompt = [int(token) for token in bound.arguments["tokens"]]
        bound.arguments["tokens"] = prompt
        if not bound.arguments.get("reset", True):  # it goes on with what is in the context
            prompt = [*self._input_ids.tolist(), *prompt]  # type: ignore[attr-defined]
        return self._tokens(make(*bound.args, **bound.kwargs), _Text(self.lz.current(), prompt), end)

    def _tokens(
        self, tokens: Generator[int, Sequence[int] | None, None], text: _Text, end: _LoopEnd
    ) -> Generator[int, Sequence[int] | None, None]:
        stats = self.lz.stats
        stats.calls += 1
        stats.seed = int(self._seed)  # type: ignore[attr-defined]
        try:
            with closing(tokens):
                with self.lz.building(text):
                    token = next(tokens, None)
                while token is not None:
                    text.tokens.append(token)
                    stats.tokens += 1
                    sent = yield token
                    if sent and not self._logits_all:  # type: ignore[attr-defined]
                        raise ValueError(  # llama.cpp would end the process
                            "tokens sent to generate() are drafts for the model to check: that needs logits_all=True"
                        )
                    if text.looped():
                        stats.loops += 1
                        stats.last_loop = text.loop
                        end.text = text
                        return
                    try:
                        token = tokens.send(sent)
                    except StopIteration:
                        break
                text.check()
        finally:
            text.close(self, stats)

    def _create_completion(self, *arguments: Any, **keywords: Any) -> Any:
        settings = self.lz.current()
        if settings.trim and keywords.get("stream"):
            raise ValueError("trim=True cannot take back text that was streamed: use stream=False, or trim=False")
        if self.lz._unseeded and keywords.get("seed") is None:
            keywords["seed"] = random.SystemRandom().randrange(UNSEEDED)
        if keywords.get("logit_bias") is not None and keywords.get("logits_processor") is not None:
            bias = _bias(keywords.pop("logit_bias"))
            keywords["logits_processor"] = llama_cpp.LogitsProcessorList([*keywords["logits_processor"], bias])
        end = _LoopEnd()
        keywords["stopping_criteria"] = llama_cpp.StoppingCriteriaList(
            [*(keywords.get("stopping_criteria") or ()), end]
        )
        return self._chunks(super()._create_completion(*arguments, **keywords), settings, end)  # type: ignore[misc]

    def _chunks(self, chunks: Generator[Any, Any, Any], settings: _Settings, end: _LoopEnd) -> Iterator[Any]:
        for chunk in self.lz.steps(chunks, settings):
            choice = chunk["choices"][0]
            if end.text is not None and choice["finish_reason"] is not None:
                choice["finish_reason"] = "repetition"
                if settings.trim:
                    self._cut(choice, end.text)
            yield chunk

    def _cut(self, choice: dict[str, Any], text: _Text) -> None:
        """Cut a finished choice back to the end of the loop's first copy."""
        assert text.loop is not None
        detokenize = self.detokenize  # type: ignore[attr-defined]
        keep = text.loop.start + text.loop.period
        written = detokenize(text.tokens, prev_tokens=text.prompt).decode("utf-8", "ignore")
        kept = detokenize(text.tokens[:keep], prev_tokens=text.prompt).decode("utf-8", "ignore")
        choice["text"] = choice["text"].removesuffix(written) + kept  # before it: the prompt, with echo=True
        if choice["logprobs"] is not None:
            for values in choice["logprobs"].values():
                del values[len(values) - (len(text.tokens) - keep) :]


def _bias(logit_bias: Mapping[Any, float]) -> Callable[..., npt.NDArray[np.single]]:
    """Return a logits processor that adds biases; llama-cpp-python's own is lost where there is another processor."""
    tokens = np.array([int(token) for token in logit_bias], np.intp)
    values = np.array([float(value) for value in logit_bias.values()], np.single)

    def processor(_: npt.NDArray[np.intc], scores: npt.NDArray[np.single]) -> npt.NDArray[np.single]:
        scores = np.copy(scores)
        scores[tokens] += values
        return scores

    return processor


class LZLlama(_Hooks, llama_cpp.Llama):
    """`llama_cpp.Llama` with the LZ penalty.

    All of its arguments, and of ours: ``lz_penalty`` (0.15 unless given), ``lz_window``, ``lz_buffer``,
    ``lz_formula``, ``history``, ``exempt`` (token ids and strings), ``dry_multiplier`` and the other fields of DRY
    (``dry_breakers``: token ids and strings; those of llama.cpp unless given), ``logit_bias``,
    ``repetition_detection``, as in `Params`; ``params``, a `Params` with any of the penalties; ``fast_grammar`` and
    ``trim`` as in `attach`. `__call__`, `create_completion`, `create_chat_completion` and `generate` take the same
    keywords for one call; a ``logit_bias`` of the first three is llama-cpp-python's own and is added to this one.
    ``seed=0`` is that seed, where `Llama` draws a random one. `lz` is the `Attachment`. Raises as `Llama`, and
    ValueError as `Params`.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        ours = _taken(keywords, _OURS_ALONE)
        # Strings become ids when there is a vocabulary; everything else is checked before the weights are loaded.
        late = {name: ours.pop(name) for name in _TOKENS_OF if name in ours}
        settings = merged(None, _Settings(Params(lz_penalty=0.15), fast_grammar=False, trim=False), ours)
        super().__init__(*arguments, **keywords)
        if keywords.get("seed") == 0:
            self.set_seed(0)
        if "dry_multiplier" in ours:
            late["dry_multiplier"] = ours["dry_multiplier"]
        settings = merged(self, settings, late)
        refuse_tokens_outside(settings.params, self.n_vocab())
        self.lz = Attachment(self, settings, restore=None)

    def close(self) -> None:
        """Free the model; also when the constructor did not get to the end."""
        if "_stack" in self.__dict__:
            super().close()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        settings = self.lz._settings
        return {**state, "params": settings.params, "fast_grammar": settings.fast_grammar, "trim": settings.trim}


_attached: dict[type, type] = {}  # class of a model: the same with our hooks


def attach(llm: Any, params: Params | None = None, *, fast_grammar: bool = False, trim: bool = False) -> Attachment:
    """Put penalties into a `llama_cpp.Llama`; all of its methods keep working, with them.

    ``params``: the LZ penalty and the others of `Params`, ``history``, ``exempt``, ``logit_bias`` and
    ``repetition_detection``; None is the LZ penalty at 0.15. What llama-cpp-python does itself (temperature, top-k,
    top-p, min-p, seed) stays in its own arguments. The link comes after its `penalties` and before grammar and
    truncation.

    ``fast_grammar``: a grammar is asked about the picked token only, and masks the others only where that one is
    refused, as llama.cpp's `common_sampler` does and llama-cpp-python does not. Truncation then comes before the
    grammar: with top-k or top-p, a text may differ from that of llama-cpp-python, always within the grammar.

    With ``repetition_detection`` a text ends when it loops, with the finish reason "repetition"; ``trim`` cuts it back
    to the first copy (ValueError for a streamed call).

    Raises ValueError for what is no `Llama`, one that is attached already, and `Params` that are not for here.
    """
    if not isinstance(llm, llama_cpp.Llama):
        raise ValueError(f"llm must be a llama_cpp.Llama, got {type(llm).__name__}")
    if isinstance(llm, _Hooks):
        raise ValueError("this model has penalties already: set lz.params, or detach() first")
    settings = _Settings(Params(lz_penalty=0.15) if params is None else params, fast_grammar, trim)
    refuse_tokens_outside(settings.params, llm.n_vocab())
    plain = type(llm)
    if plain not in _attached:
        _attached[plain] = type(plain.__name__, (_Hooks, plain), {"__doc__": plain.__doc__})
    handle = Attachment(llm, settings, restore=plain)
    llm.__class__ = _attached[plain]
    vars(llm)["lz"] = handle
    return handle
