"""`GenerateOptions`: the options of `lzs generate`, and the request that they make."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .drafts import JudgedDraftOptions
from .fields import opt
from .grammars import TextGrammarOptions
from .options import LimitOptions, LoopOptions, ModelOptions, unescaped
from .sampling import SamplingOptions

if TYPE_CHECKING:
    from lzsampler.constraint.grammar import Grammar
    from lzsampler.decoding.config import GenerationConfig
    from lzsampler.decoding.draft import Draft
    from lzsampler.decoding.policy import LoopPolicy
    from lzsampler.params import Params

_PROMPT, _OUTPUT, _SAMPLING = "Prompt", "Output", "Sampling"


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """What to give the model."""

    prompt_text: str | None = opt(_PROMPT, "-p", "--prompt", metavar="TEXT", help="the same as PROMPT")
    file: str | None = opt(_PROMPT, "-f", "--file", metavar="FILE", help="read the prompt from a text file; - is stdin")
    chat: bool = opt(
        _PROMPT, "--chat", "-st", "--single-turn",
        help="wrap the prompt in the model's chat template and print one answer",
    )  # fmt: skip
    conversation: bool = opt(
        _PROMPT, "-cnv/-no-cnv", "--conversation/--no-conversation", default=False,
        help="chat on the terminal, one line per message; PROMPT, if given, is the first message",
    )  # fmt: skip
    system: str | None = opt(
        _PROMPT, "-sys", "--system-prompt", metavar="TEXT", help="system message; implies --chat unless -cnv is given"
    )
    escape: bool = opt(
        _PROMPT, "-e", "--escape/--no-escape", default=False,
        help=r"replace the escapes \n, \t, \r, \", \', \\ and \xHH in prompt, system message and -r",
    )  # fmt: skip
    prompts: Path | None = opt(
        _PROMPT, "--prompts", metavar="FILE",
        help='continue all prompts of a JSON Lines file together; each line has "prompt" or "messages"; needs --save '
        "or --json",
    )  # fmt: skip
    n_parallel: int = opt(_PROMPT, "-np", "--parallel", low=1, default=16, help="texts decoded together with --prompts")

    def asked_with(self, text: str) -> str | list[dict[str, str]]:
        """Return the input of the model: the text, or a conversation if --chat or a system message is given."""
        if not self.chat and self.system is None:
            return text
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, {"role": "user", "content": text}]

    def typed(self, text: str) -> str:
        """Return a prompt with its escape sequences replaced if -e was given."""
        return unescaped(text) if self.escape else text


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Where to write the text."""

    explain: bool = opt(_OUTPUT, "--explain", help="print on stderr which tokens the penalties changed, and why")
    as_json: bool = opt(_OUTPUT, "--json", help="print a JSON object (docs/transcript.md) instead of text")
    save: Path | None = opt(_OUTPUT, "--save", metavar="FILE", help="append the transcript to a JSON Lines file")


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    """The options of `lzs generate`."""

    model: ModelOptions
    prompt: PromptOptions
    limits: LimitOptions
    output: OutputOptions
    grammar: TextGrammarOptions
    sampling: SamplingOptions
    sampler: Literal["auto", "cpu", "graph"] = opt(
        _SAMPLING, "--sampler", default="auto",
        help="where penalties and grammar masks are applied. cpu: on the CPU. graph: in llama.cpp's compute graph, on "
        "the device of the logits (docs/graph.md). auto: graph if the model's last layer is on a GPU, else cpu",
    )  # fmt: skip
    loops: LoopOptions
    draft: JudgedDraftOptions

    def config(
        self, params: "Params", policy: "LoopPolicy", grammar: "Grammar | None", draft: "Draft | None"
    ) -> "GenerationConfig":
        """Return the settings of a text as a `GenerationConfig`."""
        from lzsampler.decoding.config import GenerationConfig

        return GenerationConfig(
            params,
            max_tokens=self.limits.max_tokens,
            stop=self.limits.stop,
            ignore_eos=self.limits.ignore_eos,
            grammar=grammar,
            grammar_scope=self.grammar.scope,
            on_loop=policy,
            draft=draft,
            sampler=self.sampler,
        )
