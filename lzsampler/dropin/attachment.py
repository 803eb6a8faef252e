"""The penalties inside an application of llama-cpp-python: `attach` puts them into a `llama_cpp.Llama`.

`LZLlama` (lzllama.py) has the same hooks from the start. The hooks put lzsampler's chain sampler into every sampler
chain that `Llama` builds, before truncation. With the hooks, unlike in llama-cpp-python (0.3.17 to 0.3.36, `llama.py`):

- the prompt reaches the penalties when ``history="all"``;
- a chain is freed when its text ends, not when the garbage collector runs;
- a low-level `sample` never uses the chain of a text that has ended;
- tokens given to `generate().send()`, which llama-cpp-python treats as drafts, cannot end the process;
- `logit_bias` and `logits_processor` work together.
"""

import dataclasses
import inspect
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._values import brief, counted
from ..constraint.grammar import Grammar
from ..constraint.tokens import TokenBytes
from ..decoding.actions import names
from ..decoding.draft import Draft
from ..decoding.policy import LoopPolicy
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..llama.alone import OneThread, refuse_closed
from ..llama.binding import llama_cpp
from ..llama.graph import Place
from ..llama.model import Model
from ..llama.vocabulary import token_bytes
from ..params import PENALTY_FIELDS, Params, PenaltySettings, penalties_from
from ..sampler import refuse_tokens_outside, sequence_seed
from ..util.in_use import InUse, any_thread, one_thread, using
from ..util.signature import keyword, settings, with_keywords
from .drafted import Drafter, open_draft
from .keywords import merged, ours_beside, refuse_unknown, taken, taken_grammar, with_token_ids
from .outcome import Outcomes, outcome
from .response import Schemas, refuse_other_vocabulary
from .sampled import LoopEnd, NothingAllowed, SampledText, TextCut
from .settings import FLAGS, LoopFinishReason, Settings, Stats

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AttachSettings(PenaltySettings, total=False):
    """The keywords of `attach` that are fields of `Params`, for type checkers."""

    exempt: Iterable[int | str]
    dry_breakers: Iterable[int | str]


class Attachment:
    """The penalties of one `llama_cpp.Llama`: `attach` returns it, and `LZLlama.lz` holds it.

    As a context manager, an `Attachment` detaches at the end of the ``with`` block. `params` and the flags may be set
    at any time, and apply from the next text on. `stats` counts since the attachment was made. One thread at a time may
    use the attachment and the model; other threads get an LzsError meanwhile. A stream uses both while it makes a
    chunk, but not between two chunks.
    """

    def __init__(self, llm: Any, settings: Settings, *, restore: type | None) -> None:
        self._llm = weakref.ref(llm)
        self._settings = settings
        self._restore = restore
        self._call: Settings | None = None  # settings of the current call; None if the call has no settings of its own
        self.text: SampledText | None = None  # the text whose chain is being built
        self.latest: SampledText | None = None  # the text that began last
        self._drafter: Drafter | None = None
        self._draft_model: Model | None = None  # the draft model that this object opened
        self._schemas = Schemas()
        self.outcomes = Outcomes()
        self.stats = Stats()
        kind = type(llm).__name__
        self.in_use = InUse(f"this {kind} ({Path(llm.model_path).name})", f"give each thread a {kind} of its own")

    @property
    def params(self) -> Params:
        """The penalties from the next text on."""
        return self._settings.params

    @params.setter
    def params(self, params: Params) -> None:
        if params is not None:  # None would mean the default penalties here; `Settings` refuses None
            penalties_from("attach", params, {}, ())  # warns if the params have no effect
        self._settings = dataclasses.replace(self._settings, params=params)

    @property
    def grammar(self) -> Grammar | None:
        """The grammar of calls without a grammar of their own; see `attach`."""
        return self._settings.grammar

    @grammar.setter
    def grammar(self, grammar: Grammar | None) -> None:
        refuse_other_vocabulary(self._llm(), grammar)
        self._settings = dataclasses.replace(self._settings, grammar=grammar)

    @cached_property
    @any_thread
    def token_bytes(self) -> TokenBytes:
        """The bytes of the model's tokens, read once, so that a `Grammar` can be made for this object."""
        return token_bytes(self._llm())

    @property
    def fast_grammar(self) -> bool:
        """Whether a grammar checks only the picked token; see `attach`."""
        return self._settings.fast_grammar

    @fast_grammar.setter
    def fast_grammar(self, fast_grammar: bool) -> None:
        self._settings = dataclasses.replace(self._settings, fast_grammar=fast_grammar)

    @property
    def on_loop(self) -> LoopPolicy:
        """What to do about a loop, as a `LoopPolicy`; the name of an action may be assigned too. See `attach`."""
        return self._settings.loops

    @on_loop.setter
    def on_loop(self, on_loop: LoopPolicy | str | None) -> None:
        self._settings = dataclasses.replace(self._settings, on_loop=on_loop)

    @property
    def loop_finish_reason(self) -> LoopFinishReason:
        """The finish reason of a text that ends in a loop; see `attach`."""
        return self._settings.loop_finish_reason

    @loop_finish_reason.setter
    def loop_finish_reason(self, reason: LoopFinishReason) -> None:
        self._settings = dataclasses.replace(self._settings, loop_finish_reason=reason)

    @property
    def draft(self) -> Draft | None:
        """The draft, which proposes tokens; see `attach`."""
        return self._settings.draft

    @draft.setter
    def draft(self, draft: Draft | None) -> None:
        self._settings = dataclasses.replace(self._settings, draft=draft)

    @property
    def sampler(self) -> Place:
        """Where penalties are applied; see `attach`."""
        return self._settings.sampler

    @sampler.setter
    def sampler(self, sampler: Place) -> None:
        self._settings = dataclasses.replace(self._settings, sampler=sampler)

    def __repr__(self) -> str:
        made = {**vars(self.params), **{name: getattr(self, name) for name in FLAGS}}
        usual = {**vars(Params()), **vars(Settings(self.params))}
        given = [f"{name}={brief(value)}" for name, value in made.items() if value != usual[name]]
        stats = self.stats
        counts = ((stats.calls, "text"), (stats.tokens, "token"), (stats.loops, "loop"))
        done = ", ".join(counted(n, what) for n, what in counts)
        return f"<Attachment to {self._llm()!r}: {', '.join(given) or 'all penalties off'}; {done}>"

    def detach(self) -> None:
        """Restore the model's original class; a second call does nothing. ValueError for an `LZLlama`."""
        if self._restore is None:
            raise ArgumentError("an LZLlama cannot be detached: set lz.params = Params() to switch its penalties off")
        with self.in_use:
            llm = self._llm()
            if llm is not None and llm.__dict__.get("lz") is self:
                llm.__class__ = self._restore
                del llm.lz
            self.close_draft()

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(self, *_: object) -> None:
        if self._restore is not None:  # an LZLlama keeps its penalties
            self.detach()

    # -- for the hooks --

    def use_draft(self, llm: Any, draft: Draft | str | Path | None) -> None:
        """Use a draft, or open the file of a draft model; on an error no file stays open."""
        refuse_closed(llm)
        if draft == "lookup":
            raise ArgumentError("draft='lookup' is for the command line: give Draft(lookup=3)")
        if isinstance(draft, str | Path):
            draft = open_draft(llm, draft)
            self._draft_model = draft.model
        try:
            self.draft = draft
            self.drafter(llm)
        except BaseException:
            self.close_draft()
            raise

    def close_draft(self) -> None:
        """Close the draft model that this object opened, if any."""
        if self._draft_model is not None:
            self._draft_model.close()
            self._draft_model = None

    def drafter(self, llm: Any) -> Drafter | None:
        """Return the drafter of the current call; raise like `attach` for a draft that cannot be used."""
        draft = self.current().draft
        if draft is not None and (self._drafter is None or self._drafter.draft is not draft):
            self._drafter = Drafter(llm, draft)
        return None if draft is None else self._drafter

    def current(self) -> Settings:
        """Return the settings of the current call."""
        return self._call or self._settings

    @contextmanager
    def using(self, settings: Settings) -> Iterator[None]:
        """Within a ``with`` block, apply settings to the current call, and reserve the model for this thread."""
        with using(self, settings.grammar, None if settings.draft is None else settings.draft.model):
            refuse_closed(self._llm())
            before, self._call = self._call, settings
            try:
                yield
            finally:
                self._call = before

    @one_thread
    def run(self, name: str, method: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call a method of `Llama`, and apply lzsampler's keywords to this call, streamed or not.

        TypeError for a keyword that neither lzsampler nor `Llama` has.
        """
        refuse_closed(self._llm())
        ours = taken(keywords, ours_beside(name))
        refuse_unknown(name, method, keywords)
        if name == "create_chat_completion":
            ours |= self._schemas.taken(self, keywords)
        ours |= taken_grammar(keywords)
        if not ours:
            return method(*arguments, **keywords)
        settings = merged(self._llm(), self.current(), ours)
        with self.using(settings):
            result = method(*arguments, **keywords)
        return self.steps(result, settings) if inspect.isgenerator(result) else result

    def steps(self, chunks: Generator[Any, Any, Any], settings: Settings) -> Generator[Any, Any, None]:
        """Yield chunks or tokens, each made under the call's settings.

        A stream continues long after its call returned, and some chat handlers begin only with the first chunk. Between
        two chunks other code may use the model, and any thread may close an abandoned stream.
        """
        sent = None
        try:
            while True:
                with self.using(settings):
                    try:
                        chunk = chunks.send(sent)
                    except StopIteration:
                        return
                sent = yield chunk
        finally:
            self.in_use.finish(chunks.close)

    @contextmanager
    def building(self, text: SampledText) -> Iterator[None]:
        """Within a ``with`` block, use ``text`` for all chains that are built."""
        before, self.text = self.text, text
        try:
            yield
        finally:
            self.text = before


def _shows(method: Callable[..., Any]) -> Callable[..., Any]:
    """Give a hook the docstring and signature of the `Llama` method that it overrides, with lzsampler's keywords."""
    theirs = getattr(llama_cpp.Llama, method.__name__)
    beside = ours_beside(method.__name__)
    added = settings([name for name in PENALTY_FIELDS if name in beside], given=False)
    added.append(keyword("params", Params | None))
    added += [keyword(name, kind) for name, kind in FLAGS.items()]
    method.__signature__ = with_keywords(theirs, added)  # type: ignore[attr-defined]
    method.__doc__ = f"{method.__doc__}\n\n{inspect.getdoc(theirs) or ''}"
    return method


class Hooks(OneThread):
    """Overrides of `llama_cpp.Llama`: its public methods take lzsampler's keywords, and its chains get a sampler."""

    lz: Attachment

    @_shows
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Do the same as `Llama.__call__`, with the keywords of `attach` for this call only."""
        return self.lz.run("__call__", super().__call__, arguments, keywords)  # type: ignore[misc]

    @_shows
    def create_completion(self, *arguments: Any, **keywords: Any) -> Any:
        """Do the same as `Llama.create_completion`, with the keywords of `attach` for this call only."""
        return self.lz.run("create_completion", super().create_completion, arguments, keywords)  # type: ignore[misc]

    @_shows
    def create_chat_completion(self, *arguments: Any, **keywords: Any) -> Any:
        """Do the same as `Llama.create_chat_completion`, with the keywords of `attach` for this call only."""
        method = super().create_chat_completion  # type: ignore[misc]
        made = self.lz.run("create_chat_completion", method, arguments, keywords)
        return self.lz.outcomes.of_chat(made)

    @_shows
    def generate(self, *arguments: Any, **keywords: Any) -> Any:
        """Do the same as `Llama.generate`, with the keywords of `attach` for this text only."""
        lz, ours = self.lz, taken(keywords, ours_beside("generate"))
        refuse_unknown("generate", super().generate, keywords)  # type: ignore[misc]
        ours |= taken_grammar(keywords)
        with lz.in_use:
            settings = merged(self, lz.current(), ours)
            with lz.using(settings):  # the keywords apply now, before the returned generator runs
                return lz.steps(self._generate(*arguments, **keywords), settings)

    @one_thread
    def sample(self, *arguments: Any, **keywords: Any) -> Any:
        """Sample like `Llama.sample`; outside of `generate`, penalties take all tokens of the context as the text."""
        if self._sampler is not None:  # type: ignore[attr-defined]
            return super().sample(*arguments, **keywords)  # type: ignore[misc]
        settings = self.lz.current()
        if settings.grammar is not None:
            raise ArgumentError("sample() does not know where the text of the grammar begins: use generate()")
        params = dataclasses.replace(settings.params, history="all")
        whole = dataclasses.replace(settings, params=params, sampler="cpu")  # the logits are already computed
        text = SampledText(whole, self._input_ids.tolist())  # type: ignore[attr-defined]
        try:
            with self.lz.building(text):
                token = super().sample(*arguments, **keywords)  # type: ignore[misc]
            text.check()
            return token
        finally:
            text.close(self, self.lz.stats)

    sample.__signature__ = inspect.signature(llama_cpp.Llama.sample)  # type: ignore[attr-defined]

    def _init_sampler(self, *arguments: Any, **keywords: Any) -> Any:
        make = super()._init_sampler  # type: ignore[misc]
        bound = inspect.signature(make).bind(*arguments, **keywords)
        bound.apply_defaults()
        own = dataclasses.replace(self.lz.current(), sampler="cpu")  # only `generate` uses the graph
        text = self.lz.text or SampledText(own, ())
        return text.build(self, make, bound.arguments)

    def _generate(self, *arguments: Any, **keywords: Any) -> Generator[int, Sequence[int] | None, None]:
        make = super().generate  # type: ignore[misc]
        bound = inspect.signature(make).bind(*arguments, **keywords)
        bound.apply_defaults()
        criteria = bound.arguments.get("stopping_criteria") or ()
        of_completion = next((criterion for criterion in criteria if isinstance(criterion, LoopEnd)), None)
        end = of_completion or LoopEnd()
        rest = [criterion for criterion in criteria if criterion is not end]
        if criteria:
            bound.arguments["stopping_criteria"] = llama_cpp.StoppingCriteriaList(rest) if rest else None
        prompt = [int(token) for token in bound.arguments["tokens"]]
        bound.arguments["tokens"] = prompt
        if not bound.arguments.get("reset", True):  # the tokens in the context are part of the prompt
            prompt = [*self._input_ids.tolist(), *prompt]  # type: ignore[attr-defined]
        settings = self.lz.current()
        drafter = self.lz.drafter(self)
        loops = settings.settled()[0]
        if of_completion is None and loops.kind.cuts and loops.kind.goes_on:
            raise ArgumentError(
                f"on_loop={loops.action!r} cannot take back tokens that generate() has given: use create_completion, "
                f"or an action that cuts nothing, {names('cuts', False)}"
            )
        if bound.arguments["grammar"] is not None:
            loops.refuse_beside_grammar()

        def begin(text: SampledText) -> Generator[int, Sequence[int] | None, None]:
            """Let llama-cpp-python continue after the present tokens of a text."""
            whole = {"tokens": [*prompt, *text.tokens], "reset": True} if text.tokens else {}
            plain = make(**{**bound.arguments, **whole, **text.changes()})
            if drafter is None:
                return plain  # type: ignore[no-any-return]
            return drafter.tokens(self, plain, text, bound.arguments.get("stopping_criteria"), end.most)

        text = SampledText(settings, prompt, temperature=max(bound.arguments["temp"], 0.0))
        return self._tokens(begin, text, end, drafter)

    def _tokens(
        self,
        begin: Callable[[SampledText], Generator[int, Sequence[int] | None, None]],
        text: SampledText,
        end: LoopEnd,
        drafter: Drafter | None,
    ) -> Generator[int, Sequence[int] | None, None]:
        lz, stats = self.lz, self.lz.stats
        stats.calls += not end.script
        stats.seed = int(self._seed)
        text.resume(self, end)
        lz.latest = text
        tokens = None
        try:
            for kept in end.script:  # after a cut, the caller gets the remaining tokens once more
                text.tokens.append(kept)
                yield kept
            tokens, token = self._begun(begin, text)
            while token is not None:
                text.check()  # after an error the grammar may forbid the token, so the caller must not get it
                text.tokens.append(token)
                stats.tokens += 1
                at = self.n_tokens  # type: ignore[attr-defined]
                sent = yield token
                if lz.latest is not text or self.n_tokens != at:  # type: ignore[attr-defined]
                    raise LzsError(  # otherwise llama.cpp would end the process
                        "another call used this model between two tokens of a stream, so the stream cannot continue: "
                        "read a stream to its end first, or use another model"
                    )
                if sent and drafter is None and not self._logits_all:  # type: ignore[attr-defined]
                    raise ArgumentError(  # otherwise llama.cpp would end the process
                        "tokens sent to generate() are drafts, which a model can check only with logits_all=True"
                    )
                ended, changed = text.step(self, stats)
                if ended:
                    end.text = text
                    return
                if changed:
                    tokens.close()
                    tokens, token = self._begun(begin, text)
                    continue
                try:
                    token = tokens.send(sent)
                except StopIteration:
                    break
            text.check()
        except NothingAllowed:
            text.give_up(stats)
            end.text = text
        finally:
            if tokens is not None:
                tokens.close()
            text.close(self, stats)
            if drafter is not None:
                stats.speculated = drafter.figures

    def _begun(
        self, begin: Callable[[SampledText], Generator[int, Sequence[int] | None, None]], text: SampledText
    ) -> tuple[Generator[int, Sequence[int] | None, None], int | None]:
        """Begin to generate after the present tokens of a text, with the seed for this place."""
        text.check()
        text.close(self, self.lz.stats)
        before, tokens = self._seed, begin(text)  # type: ignore[has-type]
        try:
            if text.tokens:
                self._seed = sequence_seed(before % 2**32, len(text.tokens)) % 2**32
            with self.lz.building(text):
                return tokens, next(tokens, None)
        finally:
            self._seed = before

    def _create_completion(self, *arguments: Any, **keywords: Any) -> Any:
        settings = self.lz.current()
        loops = settings.settled()[0]
        if loops.kind.cuts and keywords.get("stream"):
            raise ArgumentError(
                f"on_loop={loops.action!r} cannot take back text of a stream: use stream=False, "
                f"or an action that cuts nothing, {names('cuts', False)}"
            )
        if keywords.get("logit_bias") is not None and keywords.get("logits_processor") is not None:
            bias = _bias(keywords.pop("logit_bias"))
            keywords["logits_processor"] = llama_cpp.LogitsProcessorList([*keywords["logits_processor"], bias])
        end = LoopEnd(keywords.get("max_tokens"))
        keywords["stopping_criteria"] = llama_cpp.StoppingCriteriaList(
            [*(keywords.get("stopping_criteria") or ()), end]
        )
        complete = super()._create_completion  # type: ignore[misc]
        return self._chunks(lambda: complete(*arguments, **keywords), keywords, settings, end)

    def _chunks(
        self,
        complete: Callable[[], Generator[Any, Any, Any]],
        keywords: dict[str, Any],
        settings: Settings,
        end: LoopEnd,
    ) -> Iterator[Any]:
        while True:
            try:
                for chunk in self.lz.steps(complete(), settings):
                    choice = chunk["choices"][0]
                    if choice["finish_reason"] is not None:
                        if end.text is not None:
                            choice["finish_reason"] = settings.loop_finish_reason
                            if end.text.keep < len(end.text.tokens):
                                self._cut(choice, end.text)
                        if end.recovery is not None:
                            made = outcome(end.recovery, choice["finish_reason"], ended=end.text is not None)
                            self.lz.outcomes.put(chunk, made)
                    yield chunk
                return
            except TextCut as cut:  # `_create_completion` starts anew with the remaining tokens
                end.script = cut.tokens
                keywords["seed"] = self._seed

    def _cut(self, choice: dict[str, Any], text: SampledText) -> None:
        """Cut a finished choice back to the remaining tokens."""
        detokenize, keep = self.detokenize, text.keep  # type: ignore[attr-defined]
        written = detokenize(text.tokens, prev_tokens=text.prompt).decode("utf-8", "ignore")
        kept = detokenize(text.tokens[:keep], prev_tokens=text.prompt).decode("utf-8", "ignore")
        choice["text"] = choice["text"].removesuffix(written) + kept  # with echo=True the prompt is before the text
        if choice["logprobs"] is not None:
            for values in choice["logprobs"].values():
                del values[len(values) - (len(text.tokens) - keep) :]


def _bias(logit_bias: Mapping[Any, float]) -> Callable[..., npt.NDArray[np.single]]:
    """Return a logits processor that adds biases.

    Without this processor llama-cpp-python drops the biases if there is another logits processor.
    """
    tokens = np.array([int(token) for token in logit_bias], np.intp)
    values = np.array([float(value) for value in logit_bias.values()], np.single)

    def processor(_: npt.NDArray[np.intc], scores: npt.NDArray[np.single]) -> npt.NDArray[np.single]:
        scores = np.copy(scores)
        scores[tokens] += values
        return scores

    return processor


def attach(
    llm: Any,
    params: Params | None = None,
    *,
    grammar: Grammar | None = None,
    fast_grammar: bool = False,
    on_loop: LoopPolicy | str | None = None,
    loop_finish_reason: LoopFinishReason = "stop",
    draft: Draft | str | Path | None = None,
    sampler: Place = "auto",
    **penalties: "Unpack[AttachSettings]",
) -> Attachment:
    """Put penalties into a `llama_cpp.Llama`; all of its methods keep working, and apply the penalties.

    ``params``: the LZ penalty and the other penalties of `Params`, ``history``, ``exempt``, ``logit_bias`` and
    ``repetition_detection``. ``penalties``: the same fields as keywords, which replace the fields of ``params``.
    Without ``params`` these keywords replace fields of the default penalty (``PRESETS["default"]``).
    ``**PRESETS["paper"]`` gives the paper's penalty. As keywords, ``exempt`` and ``dry_breakers`` may hold strings as
    well as token ids. By default LZ uses the separators of the model's vocabulary, and DRY uses llama.cpp's sequence
    breakers. The settings that llama-cpp-python handles (temperature, top-k, top-p, min-p, seed) stay arguments of its
    calls. lzsampler's chain sampler comes after llama-cpp-python's `penalties` and before grammar and truncation.

    The calls of the model (`__call__`, `create_completion`, `create_chat_completion`, `generate`) also take the
    keywords of this function for one call, except names that these methods already have.

    With the paper's rule the first ``lz_buffer`` (32) new tokens of a text have no LZ penalty, unless
    ``history="all"`` counts the prompt.

    ``grammar``: a grammar that texts must match from their first new token on. The ``grammar`` of a call (a `Grammar`
    or a `LlamaGrammar`) replaces this grammar. lzsampler computes the masks of a `Grammar`, in microseconds. Make the
    `Grammar` for ``token_bytes(llm)``, or for the `Attachment`. A JSON schema in the ``response_format`` of a chat
    completion also becomes such a grammar; an unsupported schema raises ValueError with the keyword and its JSON
    pointer.

    ``fast_grammar``: a `LlamaGrammar` first checks only the picked token. The `LlamaGrammar` masks the other tokens
    only if it refuses the picked token. llama.cpp's `common_sampler` works in the same way; llama-cpp-python does not.
    Truncation then comes before the grammar. So with top-k or top-p a text may differ from llama-cpp-python's text, but
    it always matches the grammar.

    ``on_loop``: what to do about a loop: the name of an action, or a `LoopPolicy` without scopes. If you only set
    ``repetition_detection`` or ``stuck_detection``, a text ends when it loops. The ``finish_reason`` of a text that
    ends in a loop is ``loop_finish_reason``: "stop" or "length", which strict clients of OpenAI's interface accept, or
    "repetition". A call that looks for loops adds ``choice["lzsampler"]`` to its response, or to the last chunk of its
    stream: ``finish_reason``, ``loop``, ``stuck`` and ``actions`` as in a transcript. "trim", "rewind" and
    "close-think" take text back: they raise ValueError for a stream. "rewind" and "close-think" raise ValueError for
    `generate` as well. "close-think" cannot be used with a grammar.

    ``draft``: a `Draft` (mode "gumbel"), or the file of a draft model, which `attach` opens and `detach` closes. The
    draft proposes tokens, which changes the speed but no text of a seed (docs/speculative.md). `attach` warns with a
    `RoundingWarning` if llama.cpp rounds differently for several tokens than for one, as without ``flash_attn=True``.
    `attach` also warns of a draft model that is at least as large as the model.

    ``sampler``: where lzsampler's penalties and masks are applied: on the "cpu", or in llama.cpp's "graph", with as
    many of the chain's later samplers as possible (docs/graph.md). "auto" is the graph if the model's last layer is on
    a GPU, unless ``logits_all``, ``fast_grammar`` or a logits processor needs the logits on the CPU. In the graph, the
    first text with a draft makes a new context.

    Raises TypeError for an object that is not a `Llama`, for an unknown keyword and for a value of the wrong type;
    ValueError for a model that is already attached and for `Params` that cannot be used here; and like `generate` for a
    draft. Warns if ``params`` set fields of penalties but switch no penalty on.
    """
    if not isinstance(llm, llama_cpp.Llama):
        raise ArgumentTypeError(f"llm must be a llama_cpp.Llama, got {type(llm).__name__}")
    if isinstance(llm, Hooks):
        raise ArgumentError("this model has penalties already: set lz.params, or detach() first")
    refuse_closed(llm)
    fields = with_token_ids(llm, penalties, params if isinstance(params, Params) else None)
    made = penalties_from("attach", params, fields, ("params", *FLAGS))
    refuse_tokens_outside(made, llm.n_vocab())
    refuse_other_vocabulary(llm, grammar)
    chosen = Settings(made, grammar, fast_grammar, on_loop, loop_finish_reason, sampler=sampler)
    return _attached(llm, chosen, draft)


attach.__signature__ = with_keywords(attach, settings(PENALTY_FIELDS, given=True))  # type: ignore[attr-defined]

_classes: dict[type, type] = {}  # class of a model -> the same class with `Hooks`


def _attached(llm: Any, settings: Settings, draft: Draft | str | Path | None) -> Attachment:
    plain = type(llm)
    if plain not in _classes:
        named = {name: getattr(plain, name) for name in ("__doc__", "__module__", "__qualname__")}
        _classes[plain] = type(plain.__name__, (Hooks, plain), {**named, "__reduce_ex__": _reduced})
    handle = Attachment(llm, settings, restore=plain)
    handle.use_draft(llm, draft)
    llm.__class__ = _classes[plain]
    vars(llm)["lz"] = handle
    return handle


def _reduced(llm: Any, protocol: object) -> tuple[Any, ...]:
    """Return the data for pickle and copy: the original class of the model, by its name, and the model's state."""
    handle: Attachment = llm.lz
    return _attached_again, (handle._restore, llm.__getstate__(), handle._settings)


def _attached_again(plain: Any, state: Mapping[str, Any], settings: Settings) -> Any:
    llm = plain.__new__(plain)
    llm.__setstate__(state)
    _attached(llm, settings, settings.draft)
    return llm
