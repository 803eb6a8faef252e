"""`GenerationConfig`: all settings of a text, checked once when it is constructed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._check import INT32_MAX, boolean, integer
from .._values import shown
from ..constraint.grammar import Grammar
from ..errors import ArgumentError, ArgumentTypeError
from ..llama.graph import Place, check_place
from ..llama.model import Model
from ..params import Params
from .draft import Draft
from .parts import Part, parts_of_grammar
from .policy import LoopPolicy

MAX_TOKENS = 512


@dataclass(frozen=True)
class GenerationConfig:
    """The settings of a text, for `generate`, `Chat`, `generate_many` and transcripts.

    - ``params``: the settings of the sampler; None is `Params.recommended` for the model.
    - ``max_tokens``: the most new tokens; -1 continues until the context is full.
    - ``stop``: a string or several strings that end the text and are not part of it (llama.cpp's reverse prompts).
    - ``ignore_eos``: forbid the tokens by which the model would end the text. A grammar excludes this option.
    - ``grammar``: allow only new text that matches the grammar; the prompt does not count. A text that ends early
      ("length", "context", ``stop``) may be incomplete.
    - ``grammar_scope``: the parts of the text (see `LoopPolicy`) that the grammar constrains. They must include
      "answer". None is all parts. If "thinking" is left out and the prompt opens the thinking, the grammar begins after
      the thinking.
    - ``on_loop``: what to do when the text loops: the name of an action, or a `LoopPolicy`. None stops the text if
      ``params`` have a loop detector.
    - ``draft``: the source of proposed tokens, which changes the speed. In mode "mrs" the draft also changes which text
      a seed gives.
    - ``fast_forward``: if the grammar allows only one next token, take this token without sampling and decode it in one
      batch with the token before it. llama.cpp may round a batch of several tokens differently, as with a draft.
    - ``sampler``: where penalties and the mask are applied: on the "cpu", in llama.cpp's "graph", or "auto". "auto" is
      the graph if the model's last layer is on a GPU, else the CPU. The choice changes no text (docs/graph.md).

    Raises ValueError for a value out of range, which the message shows, and for values that exclude each other.
    TypeError for a value of the wrong type.
    """

    params: Params | None = None
    max_tokens: int = MAX_TOKENS
    stop: str | Sequence[str] = ()
    ignore_eos: bool = False
    grammar: Grammar | None = None
    grammar_scope: Sequence[Part] | None = None
    on_loop: LoopPolicy | str | None = None
    draft: Draft | None = None
    fast_forward: bool = True
    sampler: Place = "auto"

    def __post_init__(self) -> None:
        def normal(field: str, value: object) -> None:
            object.__setattr__(self, field, value)  # the only way to set a field of a frozen dataclass

        if self.params is not None and not isinstance(self.params, Params):
            raise ArgumentTypeError(f"params must be a Params, got {shown(self.params)}")
        normal("max_tokens", integer("max_tokens", self.max_tokens, -1, INT32_MAX))
        normal("stop", _stop_strings(self.stop))
        boolean("ignore_eos", self.ignore_eos)
        boolean("fast_forward", self.fast_forward)
        check_place(self.sampler)
        if self.draft is not None and not isinstance(self.draft, Draft):
            raise ArgumentTypeError(f"draft must be a Draft, got {shown(self.draft)}: give Draft(Model(path))")
        normal("on_loop", LoopPolicy.of(self.on_loop))
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            how = "make a grammar by Grammar.regex(...), Grammar.json_schema(...) or another of its methods"
            raise ArgumentTypeError(f"grammar must be a Grammar, got {shown(self.grammar)}: {how}")
        scope = parts_of_grammar(self.grammar_scope, self.grammar is not None)
        normal("grammar_scope", None if self.grammar_scope is None else scope)
        if self.grammar is None:
            return
        if self.ignore_eos:
            raise ArgumentError(
                "ignore_eos forbids the tokens that end a text, but a grammar needs them: leave out one of the options"
            )
        # An action that needs a template writes only in the thinking.
        if "thinking" in scope or not self.loops.kind.needs_template:
            self.loops.refuse_beside_grammar()

    @property
    def loops(self) -> LoopPolicy:
        """``on_loop`` as a `LoopPolicy`."""
        assert isinstance(self.on_loop, LoopPolicy)
        return self.on_loop

    @property
    def waits(self) -> bool:
        """Whether the grammar begins only after the model's thinking."""
        return self.grammar is not None and self.grammar_scope is not None and "thinking" not in self.grammar_scope

    def params_for(self, model: Model) -> Params:
        """Return the settings of the sampler for a model: the given ``params``, or else the recommended ones."""
        return Params.recommended(model) if self.params is None else self.params

    def to_json(self) -> dict[str, Any]:
        """Return all fields except ``params`` and ``draft``, as a transcript stores them."""
        grammar = {} if self.grammar is None else {"grammar": dict(self.grammar.source)}
        scope = {} if self.grammar_scope is None else {"grammar_scope": list(self.grammar_scope)}
        limits = {"max_tokens": self.max_tokens, "stop": list(self.stop), "ignore_eos": self.ignore_eos}
        return {**limits, **grammar, **scope, **self.loops.to_json()}


def config_of(config: object) -> GenerationConfig:
    """Return the given config, or the default one for None; TypeError for anything else."""
    if config is None:
        return GenerationConfig()
    if isinstance(config, Params):
        raise ArgumentTypeError("config must be a GenerationConfig, got a Params: give GenerationConfig(params)")
    if not isinstance(config, GenerationConfig):
        raise ArgumentTypeError(
            f"config must be a GenerationConfig, got {shown(config)}: give GenerationConfig(params)"
        )
    return config


def _stop_strings(stop: object) -> tuple[str, ...]:
    strings = (stop,) if isinstance(stop, str) else stop
    if not isinstance(strings, Sequence) or not all(isinstance(string, str) and string for string in strings):
        raise ArgumentError(f"stop must be strings that are not empty, got {shown(stop)}")
    return tuple(strings)
