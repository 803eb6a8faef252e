"""`generate`: a prompt, a model and a sampler make a text."""

from collections.abc import Callable, Sequence
from time import perf_counter

from ..constraint.grammar import Grammar
from ..explanation import Explanation
from ..llama.graph import Place
from ..llama.model import Model, Prompt, refuse_other_model
from ..params import Params
from .draft import Draft, common_length, refuse_draft
from .generation import Generation
from .parts import Part
from .placement import placed
from .recovery import (
    LoopPolicy,
    LoopRule,
    OnLoop,
)
from .speculative import Speculator
from .writing import Text, keep_some


def generate(
    model: Model,
    prompt: Prompt,
    params: Params,
    *,
    n_predict: int = -1,
    stop: Sequence[str] = (),
    ignore_eos: bool = False,
    grammar: Grammar | None = None,
    grammar_scope: Sequence[Part] | None = None,
    fast_forward: bool = True,
    on_loop: OnLoop | None = None,
    loop_rule: LoopRule | None = None,
    max_rescues: int = 3,
    loop_scope: Sequence[Part] | None = None,
    penalty_scope: Sequence[Part] | None = None,
    reuse_context: bool = False,
    on_text: Callable[[str], object] | None = None,
    on_explanation: Callable[[Explanation], object] | None = None,
    draft: Draft | None = None,
    sampler: Place = "auto",
) -> Generation:
    """Continue a prompt until the model ends it, a stop string comes, it loops, or there is no room left.

    ``prompt``: text; or messages ({"role", "content"} each), which the model's chat template makes a text of; or
    tokens, int32[n], with everything that the model expects around them. ``n_predict``: the most new tokens; -1
    goes on until the context is full. ``stop``: strings that end the text and are not part of it (llama.cpp's
    reverse prompts). ``ignore_eos``: forbid the tokens by which the model would end the text. ``grammar``: allow
    only texts that it allows; the new text alone, without the prompt, and unfinished where it ends early ("length",
    "context", ``stop``). Neither ``ignore_eos`` nor "close-think" can be used with it. ``grammar_scope``: the parts of
    the text that it is about, the answer among them; without "thinking" it begins behind the thinking that the prompt
    opens, and "close-think" can be used. None is all of them. ``fast_forward``: take a token that alone is allowed
    without sampling, and decode it together with the one before it; llama.cpp may round differently then, as with a
    draft. ``on_loop``: what to do when the text loops, "off", "stop", "trim", "rewind", "close-think" or "kick"; None
    stops it if ``params`` have a detector. `LoopPolicy` describes this and ``loop_rule``
    ("period", "stuck" or "both"), ``max_rescues``, ``loop_scope`` and ``penalty_scope`` ("thinking", "answer", "tool").
    A text is cut after a whole character.
    ``reuse_context``: decode only what comes after the beginning that the prompt has in common with the tokens in
    the model's context; otherwise the context is emptied first. llama.cpp may round the logits of reused tokens
    differently, so that a text may differ at a token that was almost a tie.

    ``on_text`` is called with each piece of text as it comes, which never ends inside a character. The pieces add
    up to ``text``; where a loop is cut they add up to everything that was written, since what was handed out is not
    taken back. If it returns True the text ends there. A KeyboardInterrupt ends it too, and what was written is
    returned. ``on_explanation`` is called before each token, that which ends the text included, with what the
    sampler does (`Sampler.explain`) and the texts of the tokens; it makes a token take several times as long.
    ``draft``: what proposes tokens, which changes the speed and, but in mode "mrs", no text of a seed. ``sampler``:
    where the penalties and the mask are applied, which changes no text (docs/graph.md): on the "cpu", in llama.cpp's
    "graph", or, "auto", in the graph where the model's last layer is on a GPU.

    Raises ValueError for an empty prompt, one that does not fit in the context, and arguments out of range;
    TypeError for a model that is not a `Model`; LzsError when the model or its template fails, for a draft with another
    vocabulary, and while another thread uses the model, the grammar or the draft's model.
    """
    refuse_other_model("generate", model)
    written = Text(
        model,
        prompt,
        params,
        n_predict=n_predict,
        stop=stop,
        ignore_eos=ignore_eos,
        grammar=grammar,
        grammar_scope=grammar_scope,
        fast_forward=fast_forward,
        loops=LoopPolicy(on_loop, loop_rule, max_rescues, loop_scope, penalty_scope),
        on_text=on_text,
        on_explanation=on_explanation,
    )
    follow = written.follow
    if draft is not None:
        refuse_draft(model, draft)
        written.speculator = speculator = Speculator(written, draft)
        follow = speculator.follow
    begins = False
    start = perf_counter()
    try:
        with placed(written, sampler, on_loop=on_loop, draft=draft):
            # Not the last token of the prompt, whose logits are needed.
            known = common_length(model.past, written.prompt[:-1]) if reuse_context else 0
            model.decode(written.prompt[keep_some(model, known) :])
            logits = model.logits_pointer()
            begins, written.prompt_s = True, perf_counter() - start
            token = written.take(logits, model.n_past < model.n_ctx)
            while token is not None:
                token = follow(token)
    except KeyboardInterrupt:
        written.interrupt()
    finally:
        written.total_s = perf_counter() - start
        if not begins:
            written.prompt_s = written.total_s
    return written.generation()
