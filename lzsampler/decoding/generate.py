"""`generate`: continues a prompt with a model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from ..explanation import Explanation
from ..llama.model import Model, Prompt, refuse_other_model
from .config import GenerationConfig, config_of
from .draft import common_length, refuse_draft
from .generation import Generation
from .placement import placed
from .speculative import Speculator
from .writing import Text, keep_some


def generate(
    model: Model,
    prompt: Prompt,
    config: GenerationConfig | None = None,
    *,
    max_tokens: int | None = None,
    stop: str | Sequence[str] | None = None,
    reuse_context: bool = False,
    on_text: Callable[[str], object] | None = None,
    on_explanation: Callable[[Explanation], object] | None = None,
) -> Generation:
    """Continue a prompt until the model ends the text, a stop string comes, the text loops, or there is no room left.

    ``prompt``: text, messages or tokens. Messages ({"role", "content"} each) become text through the model's chat
    template. Tokens are any sequence of integers, with every special token that the model expects. ``config``: the
    settings of the text; None is `GenerationConfig()`, with the recommended penalty for the model and up to 512 new
    tokens. ``max_tokens`` and ``stop`` replace the values in ``config``.

    ``reuse_context``: keep the tokens in the model's context that equal the beginning of the prompt, and decode only
    the rest of the prompt. If False, the context is emptied first. With reused tokens llama.cpp may round the logits
    differently, so a text may differ where two tokens have almost the same logit.

    ``on_text`` is called with each new piece of text; no piece ends inside a character. The pieces add up to ``text``,
    plus the text that actions on loops cut, because streamed text is never retracted. If ``on_text`` returns True, the
    text ends. A KeyboardInterrupt also ends the text, and the text so far is returned. ``on_explanation`` is called
    before each token, including the token that ends the text. Its argument explains the step (`Sampler.explain`), with
    the texts of the tokens. Explanations make each token take several times as long.

    Raises ValueError for a prompt that is empty or does not fit in the context, and for values out of range; TypeError
    for a model that is not a `Model` and a config that is not a `GenerationConfig`; LzsError when the model or its
    template fails, for a draft with another vocabulary, and while another thread uses the model, the grammar or the
    draft's model.
    """
    refuse_other_model("generate", model)
    given: dict[str, Any] = {"max_tokens": max_tokens, "stop": stop}
    config = replace(config_of(config), **{name: value for name, value in given.items() if value is not None})
    written = Text(model, prompt, config, on_text=on_text, on_explanation=on_explanation)
    follow = written.follow
    if config.draft is not None:
        refuse_draft(model, config.draft)
        written.speculator = speculator = Speculator(written, config.draft)
        follow = speculator.follow
    begins = False
    start = perf_counter()
    try:
        with placed(written, config):
            # The last token of the prompt is always decoded, because the logits after it are needed.
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
