"""`Text`: a text that is being written token by token. The caller decodes the tokens."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from .._check import INT32_MAX, counted, row_of
from ..detection import Loop, Stuck
from ..errors import ArgumentError, LzsError
from ..explanation import Explanation, TokenExplanation
from ..llama.graph import GraphSampler
from ..llama.model import Model, Prompt, Stepper
from ..params import Params, warn_without_grammar
from ..sampler import Sampler
from .actions import Decision, Off
from .config import GenerationConfig
from .delivery import Delivery
from .generation import FinishReason, Generation, Timings
from .parts import PARTS, PartTracker
from .proposing import Begun, Figured
from .reasoning import closing, opened, split_reasoning
from .recovery import Recovery, fresh_start, spelled, whole_character
from .steering import Steering
from .text_sampler import TextSampler, step_of
from .text_stream import TextStream


class Text(Begun):
    """A text that is being written: its prompt, its sampler, and its tokens so far. An interrupted text keeps all of
    its tokens.

    The caller decodes the tokens, passes the logits after the prompt and after each token to `take`, and sets the
    attributes that count seconds. The arguments and errors are those of `generate`. ``sampler``: a new sampler
    that replaces the sampler of ``config.params``. The text then has no grammar and no actions on loops. Only `forward`
    adds forced tokens without sampling.

    After a cut, ``behind`` is the number of tokens of prompt and text that stay in the model's context. The caller
    first removes the later tokens from the context, then decodes the tokens of ``ahead``, and then the token that
    `take` returned. Without a cut ``behind`` is None.
    """

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        config: GenerationConfig,
        *,
        on_text: Callable[[str], object] | None = None,
        on_explanation: Callable[[Explanation], object] | None = None,
        sampler: TextSampler | None = None,
    ) -> None:
        self.prompt, text = model.asked(prompt)
        if len(self.prompt) > model.n_ctx:
            raise ArgumentError(
                f"the prompt has {len(self.prompt)} tokens, but the context holds {model.n_ctx}: "
                "shorten the prompt or enlarge the context"
            )
        self.model, self.on_explanation = model, on_explanation
        self.max_tokens = config.max_tokens if config.max_tokens >= 0 else INT32_MAX
        self.grammar, self._plain, self._prompt_text = config.grammar, isinstance(prompt, str), text
        # If the grammar describes a value, a thinking mark inside a string of the value is ordinary text.
        thought = opened(text)
        self._is_value = self.grammar is not None and self.grammar.is_value and not (config.waits and thought)
        self._opened = "" if self._is_value else thought
        # Explanations need every token to be sampled, and only a grammar with masks can tell that a token is forced.
        masks = self.grammar is not None and not self.grammar.picks_first
        self.forces = config.fast_forward and masks and on_explanation is None
        self.tokens: list[int] = []
        self._fragments = model.fragments
        self._out = Delivery(config.stop, on_text)
        self._steering: Steering | None = None
        self._recovery: Recovery | None = None
        self.sampler: Sampler | TextSampler
        self._step_at: Callable[[Any], tuple[int, bool]]
        if sampler is None:
            own = self._own_sampler(config)
            self.sampler, self._step_at = own, own.step_at
        else:
            self.sampler, self._step_at = sampler, step_of(sampler, model.n_vocab)
        self.sampler.prime(self.prompt)
        self._steer()
        self.graph: GraphSampler | None = None
        self.speculator: Figured | None = None
        self._stepper: Stepper | None = None
        self.finish_reason: FinishReason = "interrupted"
        self.over = False
        self.error: ValueError | LzsError | None = None  # the error that ended this text in `generate_many`
        self.found: Loop | Stuck | None = None
        self.forced = 0
        self.behind: int | None = None
        self.ahead: tuple[int, ...] = ()
        self.prompt_s = self.decode_s = self.sampling_s = self.total_s = 0.0

    def _own_sampler(self, config: GenerationConfig) -> Sampler:
        """Return the sampler for the text's settings, and create the text's `Steering` and `Recovery`."""
        model = self.model
        loops, params = config.loops.settled(config.params_for(model))
        if self.grammar is None:
            warn_without_grammar(params, stacklevel=5)
        # Parts are tracked only if a setting depends on them.
        everywhere = loops.loop_scope == loops.penalty_scope == PARTS
        asked = loops.kind.needs_template or config.waits or not everywhere
        self._steering = Steering(
            model.n_vocab,
            without_end(model, params) if config.ignore_eos else params,
            self.grammar,
            waits=config.waits,
            parts=PartTracker(self._opened) if asked else None,
            penalty_scope=loops.penalty_scope,
        )
        if loops.kind is not Off:
            self._recovery = Recovery(
                loops,
                params,
                model.n_vocab,
                temperature=params.temperature,
                limit=min(self.max_tokens, model.n_ctx - len(self.prompt)),
                whole=self._whole,
                fresh=self._fresh,
                closing=self._closing,
                spell=lambda text: spelled(text, model.llm.tokenize, model.piece),
            )
        return self._steering.sampler

    def use_graph(self, graph: GraphSampler) -> None:
        """From now on, run the sampler in the graph, and pick from the graph's results."""
        self.graph, self._step_at = graph, graph.step_at

    def take(self, logits: Any, room: bool) -> int | None:
        """Pick the next token and return it, for the caller to decode; None when the text has ended.

        ``logits``: a ``float *`` of `lzsampler._ffi` to n_vocab numbers, read only. ``room``: whether the context has
        room for one more token.
        """
        if self.max_tokens == 0:
            self._finish("length")
            return None
        before = perf_counter()
        try:
            if self.on_explanation is not None and self._steering is not None:
                self.on_explanation(self._named(self._steering.sampler.explain(row_of(logits, self.model.n_vocab))))
                before = perf_counter()
            token, looping = self._step_at(logits)
        except ValueError as error:
            raise self.failure(error) from error
        except LzsError:
            if self._recovery is None or not self._recovery.forbidden:
                raise
            self._recovery.give_up(self.tokens)  # only forbidden tokens could be picked
            self._end_in_loop()
            return None
        self.sampling_s += perf_counter() - before
        return self._taken(token, looping, room)

    def follow(self, token: int) -> int | None:
        """Decode a token that `take` returned, and take the next token."""
        span = self.forward(token)
        if span is None:
            return None
        if len(span) > 1:
            return self.take_after(span)
        if self.behind is not None:
            self._go_back(self.behind)
        # An explanation and the check of a failed pick need the logits before the pick.
        if self.on_explanation is not None or (self._recovery is not None and self._recovery.forbidden):
            return self.take_after(span)
        return self.add(*self.step(span[0]))

    def forward(self, token: int) -> list[int] | None:
        """Add the tokens that the grammar forces after ``token``. Return all tokens to decode now, ``token`` included.

        Return None when the text has ended. After a cut, return only the last token (see ``behind``).
        """
        span, own = [token], self.own
        while self.forces and own is not None and self.behind is None:
            before = perf_counter()
            forced = own.forced()
            if forced is not None:
                own.accept(forced)
            self.sampling_s += perf_counter() - before
            if forced is None:
                break
            self.forced += self._fragments[forced] is not None
            if self.add(forced, bool(own.loop or own.stuck)) is None:
                return None
            span.append(forced)
        return span if self.behind is None else self.tokens[-1:]

    def take_after(self, tokens: Sequence[int]) -> int | None:
        """Decode tokens, and take the next token."""
        before = perf_counter()
        self.model.decode(tokens)
        logits = self.model.logits_pointer()
        self.decode_s += perf_counter() - before
        return self.take(logits, self.model.n_past < self.model.n_ctx)

    def step(self, token: int) -> tuple[int, bool]:
        """Decode a token, and return the arguments of `add` for the next token. Only for `steady` texts."""
        if self._stepper is None:
            own = self.own
            assert own is not None
            self._stepper = self.model.stepper(own, self.graph)
        try:
            return self._stepper.step(token)
        except ValueError as error:
            raise self.failure(error) from error

    def add(self, token: int, looping: bool) -> int | None:
        """Add a token that is already in the sampler's history. Return it, for the caller to decode; None when the text
        has ended.

        ``looping``: as `Sampler.step_at` returns it.
        """
        return self._taken(token, looping, len(self.prompt) + len(self.tokens) < self.model.n_ctx)

    @property
    def own(self) -> Sampler | None:
        """The sampler of the text's own settings; None if ``sampler`` replaces it."""
        return None if self._steering is None else self._steering.sampler

    @property
    def n_actions(self) -> int:
        """Number of actions on the text's loops so far. Each action may have cut the text."""
        return 0 if self._recovery is None else len(self._recovery.actions)

    @property
    def steady(self) -> bool:
        """Whether the sampler's settings stay unchanged from token to token.

        Only then can several tokens be taken at a time.
        """
        recovery, own = self._recovery, self.own
        acts = recovery is not None and (recovery.watching or recovery.forbidden)
        found = recovery is not None and own is not None and (own.loop or own.stuck)
        steered = self._steering is not None and not self._steering.steady
        return not (acts or found or steered) and self.on_explanation is None and self.behind is None

    def draft_room(self, n_past: int) -> int:
        """Return how many tokens can be drafted after ``n_past`` tokens: as many as text, context and batch allow."""
        model = self.model
        return min(self.max_tokens - len(self.tokens) - 1, model.n_ctx - n_past - 1, model.n_batch - 1)

    def failure(self, error: ValueError) -> LzsError:
        """Return the error for logits that are NaN: the model failed, and no argument is to blame."""
        return LzsError(f"the model failed after {counted(len(self.tokens), 'token')}: {error}")

    def _taken(self, token: int, looping: bool, room: bool) -> int | None:
        fragment = self._fragments[token]
        if fragment is None:
            self._finish("stop")
            return None
        self._add(token, fragment)
        recovery = self._recovery
        reason: FinishReason
        if self._out.stream.found is not None:
            reason = "stop"
        elif self._out.wants_end:
            reason = "interrupted"
        elif recovery is not None and (looping or recovery.watching) and (order := self._ordered(recovery)) is not None:
            return self._obey(order)
        elif len(self.tokens) >= self.max_tokens:
            reason = "length"
        elif room:
            return token
        else:
            reason = "context"
        self._finish(reason)
        return None

    def _add(self, token: int, fragment: str | bytes) -> None:
        self.tokens.append(token)
        self._out.add(fragment)
        steering = self._steering
        if steering is not None and steering.parts is not None and steering.add(fragment):
            self._steer()

    def _steer(self) -> None:
        if self._steering is not None:
            self._steering.steer(len(self.tokens), self._recovery)

    # -- carrying out the recovery's decisions --

    def _ordered(self, recovery: Recovery) -> Decision | None:
        assert self._steering is not None
        own = self._steering.sampler
        order = recovery.step(self.tokens, own.loop or own.stuck, self._steering.part)
        self._steer()
        return order

    def _obey(self, order: Decision) -> int | None:
        if order.keep < len(self.tokens):
            self._cut(order.keep)
        if order.end:
            self._end_in_loop()
            return None
        # The caller decodes the last remaining token, even a second time, because the logits after it are needed.
        self.behind = len(self.prompt) + order.keep - 1
        self.ahead = (self.tokens[-1], *order.write)[:-1]
        for token in order.write:
            self.sampler.accept(token)
            self._add(token, self._fragments[token] or "")
        self._steer()
        if self._out.stream.found is None and not self._out.wants_end:
            return self.tokens[-1]
        self._finish("interrupted" if self._out.stream.found is None else "stop")
        return None

    def _cut(self, keep: int) -> None:
        """Remove all tokens after the first ``keep``."""
        assert self._steering is not None
        self._steering.cut(len(self.tokens), keep)
        del self.tokens[keep:]
        self._out.cut(self._fragments[token] or "" for token in self.tokens)

    def _end_in_loop(self) -> None:
        assert self._recovery is not None
        self.found = self._recovery.actions[-1].found
        self._finish("repetition")

    def _whole(self, n: int) -> int:
        return whole_character(self.tokens, n, self.model.piece)

    def _fresh(self, n: int, reach: int) -> tuple[int, int]:
        return fresh_start(self.tokens, n, reach, self.model.piece)

    def _closing(self, n: int) -> list[int]:
        parts = None if self._steering is None else self._steering.parts
        mark = None if parts is None else parts.closing
        if mark is None:
            return []
        text = closing(mark, self.model.header.chat_template, self._prompt_text)
        if n and self.model.piece(self.tokens[n - 1]).endswith(b"\n"):
            text = text.lstrip("\n")
        tokens: list[int] = self.model.llm.tokenize(text.encode("utf-8"), add_bos=False, special=True)
        return tokens

    def _go_back(self, n_past: int) -> None:
        """Take the model's context back to the cut, and decode the tokens that an action wrote there."""
        self.behind = None
        before = perf_counter()
        known = keep_some(self.model, min(n_past, self.model.n_past))  # forced tokens may not be decoded yet
        if known < n_past:
            self.model.decode([*self.prompt, *self.tokens][known:n_past])
        for token in self.ahead:
            self.model.decode((token,))
        self.decode_s += perf_counter() - before

    def interrupt(self) -> None:
        """End the text here, with the finish reason "interrupted"."""
        self._finish("interrupted")

    def generation(self) -> Generation:
        """Return the text as a `Generation`."""
        text, stop_string = self._out.text, self._out.stream.found
        reasoning, content = (None, text.strip()) if self._is_value else split_reasoning(text, self._opened)
        decode_s, sampling_s = self.decode_s, self.sampling_s
        if self._stepper is not None:
            decode_s += self._stepper.loop.decode_seconds + self._stepper.loop.logits_seconds
            sampling_s += self._stepper.loop.sampling_seconds
        silent = self.finish_reason == "stop" and not (self.grammar or stop_string or text.strip())
        return Generation(
            text=text,
            reasoning=reasoning,
            content=content,
            tokens=tuple(self.tokens),
            finish_reason=self.finish_reason,
            stop_string=stop_string,
            loop=self.found if isinstance(self.found, Loop) else None,
            prompt_tokens=len(self.prompt),
            timings=Timings(self.prompt_s, decode_s, sampling_s, self.total_s),
            template_unused=silent and self._plain and self.model.header.chat_template is not None,
            stuck=self.found if isinstance(self.found, Stuck) else None,
            actions=() if self._recovery is None else tuple(self._recovery.actions),
            speculated=None if self.speculator is None else self.speculator.figures,
            forced=self.forced,
            constrained=None if self.grammar is None else self._constrained(text),
            sampler="cpu" if self.graph is None else "graph",
        )

    def _constrained(self, text: str) -> str:
        begin = None if self._steering is None else self._steering.grammar_from
        if begin is None:
            return ""
        before = TextStream(())
        fragments = (self._fragments[token] or "" for token in self.tokens[:begin])
        return text[sum(len(before.feed(fragment)) for fragment in fragments) :]

    def _finish(self, reason: FinishReason) -> None:
        self.finish_reason, self.over = reason, True
        self._out.end()

    def _named(self, explanation: Explanation) -> Explanation:
        def named(one: TokenExplanation) -> TokenExplanation:
            return replace(one, text=self.model.piece(one.token).decode("utf-8", "replace"))

        return replace(explanation, token=named(explanation.token), others=tuple(map(named, explanation.others)))


def without_end(model: Model, params: Params) -> Params:
    """Return settings that forbid the tokens that end a text."""
    biases: Any = params.logit_bias
    return replace(params, logit_bias={**dict(biases), **dict.fromkeys(model.eog_tokens, float("-inf"))})


def keep_some(model: Model, n: int) -> int:
    """Keep the first ``n`` tokens of the context, or none if the model cannot do so; return how many are kept."""
    try:
        model.keep(n)
    except LzsError:  # a recurrent model cannot remove only its last tokens; its context is empty now
        return 0
    return n
