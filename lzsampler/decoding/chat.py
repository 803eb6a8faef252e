"""`Chat`: a conversation with a model. Each turn decodes only the new tokens."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import ArgumentError, LzsError
from ..explanation import Explanation
from ..llama.model import Model, refuse_other_model
from ..sampler import sequence_seed
from ..util.in_use import InUse, one_thread
from .config import GenerationConfig, config_of
from .draft import refuse_draft
from .generate import generate
from .generation import Generation


@dataclass(frozen=True)
class Turn:
    """The arguments of one answer of a `Chat`. With these arguments `generate` writes the same answer.

    ``messages``: the conversation up to the user's message, which comes last. ``config``: the settings, with the seed
    of this turn.
    """

    messages: tuple[dict[str, str], ...]
    config: GenerationConfig


class Chat:
    """A conversation through the model's own chat template.

    ``config``: the settings of every answer, as for `generate`. A grammar constrains each answer separately.
    ``system``: the system message, or None. The first answer equals the answer that `generate` writes to the same
    messages. Later answers use the `sequence_seed` of the seed and the number of the turn.

    The model's context keeps the earlier turns. A new turn decodes only the new message, unless the template now writes
    earlier text differently. For example, many templates leave out earlier reasoning. Between turns the model's context
    belongs to the conversation. If something else has used the context, the next turn decodes the whole conversation
    again. One thread at a time may use a `Chat` and its model; another thread gets an LzsError meanwhile.

    Raises like `generate`, and LzsError when the model has no chat template.
    """

    def __init__(self, model: Model, config: GenerationConfig | None = None, *, system: str | None = None) -> None:
        refuse_other_model("Chat", model)
        config = config_of(config)
        if config.draft is not None:
            refuse_draft(model, config.draft)
        if model.header.chat_template is None:
            raise LzsError(f"{model.path.name} has no chat template, so it cannot hold a conversation")
        self.model, self.system = model, system
        self.params = config.params_for(model)
        self.config = replace(config, params=self.params)
        self.in_use = InUse("this Chat", "give each thread a Chat with a Model of its own")
        self._messages: list[dict[str, str]] = []
        self._turns = 0
        self._turn: Turn | None = None
        self.reset()

    @property
    def messages(self) -> list[dict[str, str]]:
        """A copy of the conversation: a {"role", "content"} for each message, and perhaps "reasoning_content"."""
        return [dict(message) for message in self._messages]

    @property
    def turn(self) -> Turn | None:
        """The arguments of the last answer, even if the answer was interrupted before any text.

        None before the first answer.
        """
        return self._turn

    @one_thread
    def reset(self) -> None:
        """Forget everything except the system message."""
        self._messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        self._turns = 0
        self._turn = None

    @one_thread
    def say(
        self,
        text: str,
        on_text: Callable[[str], object] | None = None,
        *,
        on_explanation: Callable[[Explanation], object] | None = None,
    ) -> Generation:
        """Add the user's message, have the model answer, add the answer to the conversation, and return it.

        ``on_text`` and ``on_explanation``: see `generate`. If the answer is interrupted (Ctrl-C), the conversation
        keeps the part that was written; if nothing was written, the conversation stays as it was. Raises ValueError
        when ``text`` is empty, and LzsError when the conversation no longer fits in the context: `reset` it, or open
        the model with a larger context. After an error the conversation is as it was before.
        """
        if not isinstance(text, str) or not text:
            raise ArgumentError(f"a message must be a text that is not empty, got {text!r}")
        asked = [*self._messages, {"role": "user", "content": text}]
        n = len(self.model.tokenize(self.model.chat_prompt(asked)))
        if n >= self.model.n_ctx:
            raise LzsError(
                f"the conversation has {n} tokens, but the context holds {self.model.n_ctx}: "
                "begin a new conversation, or open the model with a larger context"
            )
        seed = sequence_seed(self.params.seed, self._turns) if self._turns else self.params.seed
        config = replace(self.config, params=replace(self.params, seed=seed))
        made = generate(self.model, asked, config, reuse_context=True, on_text=on_text, on_explanation=on_explanation)
        self._turn = Turn(tuple(dict(message) for message in asked), config)
        if made.finish_reason == "interrupted" and not made.text:
            return made
        answer = {"role": "assistant", "content": made.content}
        if made.reasoning is not None:
            answer["reasoning_content"] = made.reasoning
        self._messages = [*asked, answer]
        self._turns += 1
        return made
