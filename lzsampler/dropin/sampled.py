"""One text of a `llama_cpp.Llama`, with lzsampler's sampler in its sampler chain, and with a loop policy.

llama-cpp-python's `generate` yields each token at once, and `_create_completion` collects the tokens. If an action
changes the next draw or forbids a token at one place, another chain is needed. So `generate` is called again after the
existing tokens, which are still in the cache. To take tokens back, `_create_completion` is called again too, and first
receives the remaining tokens.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._ffi import lib
from ..decoding.actions import Off
from ..decoding.parts import PartTracker
from ..decoding.reasoning import closing, opened
from ..decoding.recovery import Recovery, fresh_start, spelled, whole_character
from ..detection import Loop
from ..errors import ArgumentError, LzsError
from ..llama.binding import llama_cpp
from ..llama.chain import address, check_chain_sampler, penalties_sampler
from ..llama.graph import (
    SEVERAL_OUTPUTS,
    UNSUPPORTED,
    Block,
    for_chain,
    missing,
    on_device,
    refuse_old_llama,
    reserve_outputs,
    set_chain,
    unset_chain,
)
from ..llama.pick_first import PickFirst, allows_other
from ..params import PENALTIES, Params
from ..sampler import Sampler, loop_found, stuck_found
from .settings import Settings, Stats

_PENALTIES_OFF = dict(penalty.llama_cpp for penalty in PENALTIES if penalty.llama_cpp)


def _piece(llm: Any, token: int) -> bytes:
    piece: bytes = llm.detokenize([token], special=True)
    return piece


class LoopEnd:
    """The stopping criterion that tells `_create_completion` that the text ended in a loop.

    ``script``: the tokens with which the text begins anew after a cut. ``recovery``: the text's `Recovery` so far; None
    if the call does not look for loops. ``most``: the most tokens of the text; None if the call sets no limit.
    """

    def __init__(self, max_tokens: int | None = None) -> None:
        self.most = max_tokens if max_tokens is not None and max_tokens > 0 else None
        self.text: SampledText | None = None
        self.script: list[int] = []
        self.recovery: Recovery | None = None

    def __call__(self, *_: object) -> bool:
        """Return whether the text has ended in a loop."""
        return self.text is not None


class TextCut(Exception):  # noqa: N818 (no error: it goes from `generate` to `_create_completion`)
    """Raised if a text that was yielded token by token must be cut. ``tokens``: the whole text after the cut."""

    def __init__(self, tokens: list[int]) -> None:
        super().__init__("a text was cut outside of a completion")
        self.tokens = tokens


class NothingAllowed(Exception):  # noqa: N818 (no error: it ends a text)
    """Raised if a grammar allows only tokens that a rewind forbids."""


class SampledText:
    """One text: its prompt, its tokens, the chain that samples it, and its `Recovery`.

    ``temperature``: the temperature of the call.
    """

    def __init__(self, settings: Settings, prompt: Sequence[int], *, temperature: float = 1.0) -> None:
        self.policy, self.params = settings.settled()
        self.grammar = settings.grammar
        self.fast_grammar = settings.fast_grammar
        self.prompt = prompt
        self.temperature = temperature
        self.tokens: list[int] = []
        self.place = settings.sampler
        self.n_draft = 0 if settings.draft is None else settings.draft.most
        self.in_graph = False
        self._block: Block | None = None
        self.keep = 0  # number of remaining tokens after a loop has ended the text
        self.recovery: Recovery | None = None
        self._chain: Any = None  # a LlamaSampler, or a PickFirst
        self._ours: Any = None
        self._handle: Any = None

    def build(self, llm: Any, make: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Return llama-cpp-python's chain for these arguments of `_init_sampler`, with lzsampler's sampler in it.

        Raises `NothingAllowed` after a rewind to a place where the grammar allows no other token. Otherwise llama.cpp
        would pick a token that the grammar refuses, and end the process.
        """
        grammar = arguments.get("grammar")
        if grammar is not None:  # the call's grammar replaces that of the settings
            self.grammar = None
        forbidden = self.recovery.forbidden if self.recovery is not None else ()
        if grammar is not None and forbidden and not allows_other(llm, grammar, self.tokens, forbidden):
            raise NothingAllowed
        fast = self.fast_grammar and grammar is not None
        chain = make(**{**arguments, "grammar": None} if fast else arguments)
        source = Sampler(llm.n_vocab(), self._params_now())
        source.prime(self.prompt)
        source.set_grammar(self.grammar)
        if self.grammar is not None and forbidden and not _allows_other(source, self.tokens, forbidden):
            chain.close()
            raise NothingAllowed
        in_graph = self._goes_into_graph(llm, chain, fast)
        self._ours = for_chain(source, llm.n_ctx()) if in_graph else penalties_sampler(source)
        chain.grammar_of_lzsampler = self.grammar  # C uses the grammar as long as the chain exists
        at = insert(chain, self._ours)
        if in_graph:
            self._set(llm, chain)
        self._handle = lib.lzs_chain_sampler_inner(address(self._ours))
        self._chain = chain
        if fast:
            alone = not chain.custom_samplers and all(arguments[name] == off for name, off in _PENALTIES_OFF.items())
            self._chain = PickFirst(
                llm, chain, grammar, self._ours if alone else None, n_head=at + 1, n_best=_kept(arguments)
            )
        for token in self.tokens:  # the first chain of a text gets no tokens
            self._chain.accept(token)
        return self._chain

    def _goes_into_graph(self, llm: Any, chain: Any, fast: bool) -> bool:
        """Return whether the chain runs in the graph; raise if that was requested and is impossible."""
        if self.place == "cpu":
            return False
        asked = self.place == "graph"
        if not asked and not (on_device(llm, llama_cpp.llama_model_n_layer(llm.model)) and missing() is None):
            return False
        refuse_old_llama()
        reasons = {
            "logits_all=True, which is for the logits of every token": llm._logits_all,
            "a draft and a LoRA adapter": self.n_draft and llm.lora_path,
            "a logits_processor, or a logit_bias of the call": chain.custom_samplers,
            "fast_grammar": fast,
        }
        hindrance = next((name for name, is_there in reasons.items() if is_there), None)
        if asked and hindrance is not None:
            chain.close()
            raise ArgumentError(f"sampler='graph' cannot be used with {hindrance}: leave one of them out")
        if hindrance is None and self.n_draft and reserve_outputs(llm, self.n_draft + 1):
            llm.reset()
        return hindrance is None

    def _set(self, llm: Any, chain: Any) -> None:
        """Set the chain in the context. The next decode, which must follow, is the first that runs the chain."""
        self.in_graph = set_chain(llm.ctx, chain.sampler, self._ours)
        if not self.in_graph and self.place == "graph":
            chain.close()
            raise LzsError(SEVERAL_OUTPUTS if llm.context_params.n_outputs_max_per_seq > 1 else UNSUPPORTED)
        llm._requires_eval = True

    @contextmanager
    def block(self, llm: Any, tokens: list[int]) -> Iterator[list[int]]:
        """Within a ``with`` block, prepare a decode of a token and drafted tokens.

        Yield the drafted tokens to decode.
        """
        if not self.in_graph:
            yield tokens
            return
        if self._block is None:
            self._block = Block(self._ours, llm.n_vocab())
        with self._block.of(tokens) as possible:
            yield possible

    def copied(self) -> Any:
        """Return a copy of the current chain, without the grammar and without Python's samplers.

        The copy is a `llama_sampler *`, which the caller frees. llama.cpp ends the process if one of Python's samplers
        is copied, or if a grammar gets a token that it refuses.
        """
        chain = self._chain.chain if isinstance(self._chain, PickFirst) else self._chain
        left_out = {index for index, _ in chain.custom_samplers}
        copy = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        for at in range(llama_cpp.llama_sampler_chain_n(chain.sampler)):
            if at not in left_out and _name(chain.sampler, at) != b"grammar":
                one = llama_cpp.llama_sampler_chain_get(chain.sampler, at)
                llama_cpp.llama_sampler_chain_add(copy, llama_cpp.llama_sampler_clone(one))
        return copy

    # -- loops --

    def resume(self, llm: Any, end: LoopEnd) -> None:
        """Take over the `Recovery` from before the text was cut, or create one."""
        if self.policy.kind is Off:
            return
        self.recovery = end.recovery = end.recovery or Recovery(
            self.policy,
            self.params,
            llm.n_vocab(),
            temperature=self.temperature,
            limit=llm.n_ctx() - len(self.prompt),
        )
        self.recovery.whole = lambda n: whole_character(self.tokens, n, lambda token: _piece(llm, token))
        self.recovery.fresh = lambda n, reach: fresh_start(self.tokens, n, reach, lambda token: _piece(llm, token))
        self.recovery.closing = lambda n: self._closing(llm, n)
        self.recovery.spell = lambda text: spelled(text, llm.tokenize, lambda token: _piece(llm, token))

    def changes(self) -> dict[str, Any]:
        """Return the arguments of `Llama.generate` that the action's draw changes."""
        if self.recovery is None or self.recovery.draws is None:
            return {}
        # In this chain truncation comes before the temperature, and would leave only the token that continues the loop.
        off = {"top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "mirostat_mode": 0}
        draws = self.recovery.draws
        return {"temp": draws.temperature, "top_k": draws.top_k, **off}

    def step(self, llm: Any, stats: Stats) -> tuple[bool, bool]:
        """Look for a loop after a token; return (whether a loop ends the text, whether the next token needs a new
        chain).

        Raises `TextCut` when tokens are to be taken back.
        """
        recovery = self.recovery
        if recovery is None:
            return False, False
        found = loop_found(self._handle) or stuck_found(self._handle)
        if found is None and not recovery.watching:
            return False, False
        before = recovery.forbidden, recovery.draws
        n_actions, n_recoveries = len(recovery.actions), recovery.n_recoveries
        order = recovery.step(self.tokens, found)
        if len(recovery.actions) > n_actions:
            stats.actions = tuple(recovery.actions)
            stats.recoveries += recovery.n_recoveries - n_recoveries
        if order is None:
            return False, before != (recovery.forbidden, recovery.draws)
        if not order.end:
            raise TextCut([*self.tokens[: order.keep], *order.write])
        self._end(order.keep, recovery, stats)
        return True, False

    def give_up(self, stats: Stats) -> None:
        """End the text here, in its loop, because only forbidden tokens can be picked."""
        assert self.recovery is not None
        self.recovery.give_up(self.tokens)
        stats.actions = tuple(self.recovery.actions)
        self._end(len(self.tokens), self.recovery, stats)

    def _end(self, keep: int, recovery: Recovery, stats: Stats) -> None:
        self.keep = keep
        stats.loops += 1
        last = recovery.actions[-1].found
        stats.last_loop = last if isinstance(last, Loop) else None

    def _params_now(self) -> Params:
        """Return the settings for the next token, with the forbidden tokens biased to -inf."""
        if self.recovery is None or not self.recovery.forbidden:
            return self.params
        biases: Any = self.params.logit_bias
        return dataclasses.replace(
            self.params, logit_bias={**dict(biases), **dict.fromkeys(self.recovery.forbidden, float("-inf"))}
        )

    def _closing(self, llm: Any, n: int) -> list[int]:
        prompt = llm.detokenize(list(self.prompt), special=True).decode("utf-8", "replace")
        parts = PartTracker(opened(prompt))
        for token in self.tokens:
            parts.add(_piece(llm, token))
        if parts.closing is None:
            return []
        mark = closing(parts.closing, llm.metadata.get("tokenizer.chat_template"), prompt)
        if n and _piece(llm, self.tokens[n - 1]).endswith(b"\n"):
            mark = mark.lstrip("\n")
        tokens: list[int] = llm.tokenize(mark.encode("utf-8"), add_bos=False, special=True)
        return tokens

    def check(self) -> None:
        """Raise the error that occurred inside lzsampler's sampler, if any."""
        if self._ours is None:
            return
        try:
            check_chain_sampler(self._ours)
        except LzsError as error:
            if self.grammar is not None and self.grammar.problem:
                raise LzsError(self.grammar.problem) from error
            raise

    def close(self, llm: Any, stats: Stats) -> None:
        """Free the chain now.

        llama-cpp-python's chain refers to itself, so only the garbage collector would free it.
        """
        if self._chain is None:
            return
        if isinstance(self._chain, PickFirst):
            stats.refused += self._chain.refused
        stats.sampler = "graph" if self.in_graph else "cpu"
        if self.in_graph:
            if llm._ctx.ctx is not None:  # the model is still open
                unset_chain(llm._ctx.ctx)
            llm._requires_eval = True  # the last decode left no row of logits
            self.in_graph, self._block = False, None
        if llm._sampler is self._chain:
            llm._sampler = None
        self._chain.close()
        self._chain = self._ours = self._handle = None


def _allows_other(source: Sampler, tokens: Sequence[int], forbidden: Sequence[int]) -> bool:
    """Return whether the grammar of a new sampler allows, after ``tokens``, a token that is not forbidden."""
    there = source.clone()
    for token in tokens:
        there.accept(token)
    words = there.allowed()
    if words is None:
        return True
    for token in forbidden:
        words[token // 32] &= np.uint32(~(1 << token % 32) & 0xFFFFFFFF)
    return bool(words.any())


def insert(sampler: Any, ours: Any) -> int:
    """Put a chain sampler into the chain of a `LlamaSampler`, after leading Python samplers and `penalties`.

    Returns its index. The chain is taken apart and rebuilt, so the indices in `custom_samplers` are adjusted.
    """
    chain = sampler.sampler
    custom = {index for index, _ in sampler.custom_samplers}
    n = llama_cpp.llama_sampler_chain_n(chain)
    at = 0
    while at < n and (at in custom or _name(chain, at) == b"penalties"):
        at += 1
    rest = [llama_cpp.llama_sampler_chain_remove(chain, at) for _ in range(n - at)]
    for one in (ours, *rest):
        llama_cpp.llama_sampler_chain_add(chain, one)
    sampler.custom_samplers = [(index + (index >= at), custom) for index, custom in sampler.custom_samplers]
    return at


def _name(chain: Any, at: int) -> bytes:
    """Return the name of a sampler, without the "?" by which llama.cpp marks a disabled sampler.

    Not for a sampler written in Python: llama.cpp would crash.
    """
    name: bytes = llama_cpp.llama_sampler_name(llama_cpp.llama_sampler_chain_get(chain, at))
    return name.lstrip(b"?")


def _kept(arguments: Mapping[str, Any]) -> int:
    """Return how many candidates the first truncation of a chain keeps: top-k, 1 if greedy, 0 without a truncation."""
    if arguments["temp"] == 0.0:
        return 1
    return max(arguments["top_k"], 0) if arguments["temp"] > 0.0 and arguments["mirostat_mode"] == 0 else 0
