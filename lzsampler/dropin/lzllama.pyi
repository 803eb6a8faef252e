# The signatures of LZLlama for editors and type checkers: those of llama-cpp-python 0.3.36, with lzsampler's keywords.
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from llama_cpp import Llama, llama_chat_format
from llama_cpp.llama import LogitsProcessorList, StoppingCriteriaList
from llama_cpp.llama_grammar import LlamaGrammar
from llama_cpp.llama_speculative import LlamaDraftModel
from llama_cpp.llama_tokenizer import BaseLlamaTokenizer
from llama_cpp.llama_types import (
    ChatCompletionFunction,
    ChatCompletionRequestFunctionCall,
    ChatCompletionRequestMessage,
    ChatCompletionRequestResponseFormat,
    ChatCompletionTool,
    ChatCompletionToolChoiceOption,
    CreateChatCompletionResponse,
    CreateChatCompletionStreamResponse,
    CreateCompletionResponse,
    CreateCompletionStreamResponse,
)
from typing_extensions import Unpack

from ..constraint.grammar import Grammar
from ..decoding.draft import Draft
from ..decoding.policy import LoopPolicy
from ..llama.attention import FlashAttention
from ..llama.graph import Place
from ..params import CallSettings, Params
from .attachment import Attachment, AttachSettings
from .settings import LoopFinishReason

class _LlamaSettings(AttachSettings, total=False):
    params: Params
    grammar: Grammar | None
    fast_grammar: bool
    on_loop: LoopPolicy | str | None
    loop_finish_reason: LoopFinishReason
    draft: Draft | str | Path | None
    sampler: Place

class _CallSettings(CallSettings, total=False):
    exempt: Iterable[int | str]
    dry_breakers: Iterable[int | str]
    params: Params
    fast_grammar: bool
    on_loop: LoopPolicy | str | None
    loop_finish_reason: LoopFinishReason
    draft: Draft | None
    sampler: Place

class _GenerateSettings(_CallSettings, total=False):
    logit_bias: Mapping[int, float] | Iterable[tuple[int, float]]

class LZLlama(Llama):
    lz: Attachment

    def __init__(
        self,
        model_path: str,
        *,
        n_gpu_layers: int = 0,
        split_mode: int = ...,
        main_gpu: int = 0,
        tensor_split: list[float] | None = None,
        vocab_only: bool = False,
        use_mmap: bool = True,
        use_mlock: bool = False,
        kv_overrides: dict[str, bool | int | float | str] | None = None,
        seed: int = ...,
        n_ctx: int = 512,
        n_batch: int = 512,
        n_ubatch: int = 512,
        n_threads: int | None = None,
        n_threads_batch: int | None = None,
        rope_scaling_type: int | None = ...,
        pooling_type: int = ...,
        attention_type: int = ...,
        rope_freq_base: float = 0.0,
        rope_freq_scale: float = 0.0,
        yarn_ext_factor: float = -1.0,
        yarn_attn_factor: float = 1.0,
        yarn_beta_fast: float = 32.0,
        yarn_beta_slow: float = 1.0,
        yarn_orig_ctx: int = 0,
        logits_all: bool = False,
        embedding: bool = False,
        offload_kqv: bool = True,
        flash_attn: FlashAttention = "auto",
        op_offload: bool | None = None,
        swa_full: bool | None = None,
        no_perf: bool = False,
        last_n_tokens_size: int = 64,
        lora_base: str | None = None,
        lora_scale: float = 1.0,
        lora_path: str | None = None,
        numa: bool | int = False,
        chat_format: str | None = None,
        chat_handler: llama_chat_format.LlamaChatCompletionHandler | None = None,
        draft_model: LlamaDraftModel | None = None,
        tokenizer: BaseLlamaTokenizer | None = None,
        type_k: int | None = None,
        type_v: int | None = None,
        spm_infill: bool = False,
        verbose: bool = True,
        **penalties: Unpack[_LlamaSettings],
    ) -> None: ...
    def __call__(
        self,
        prompt: str,
        suffix: str | None = None,
        max_tokens: int | None = 16,
        temperature: float = 0.8,
        top_p: float = 0.95,
        min_p: float = 0.05,
        typical_p: float = 1.0,
        logprobs: int | None = None,
        echo: bool = False,
        stop: str | list[str] | None = ...,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        repeat_penalty: float = 1.0,
        top_k: int = 40,
        stream: bool = False,
        seed: int | None = None,
        tfs_z: float = 1.0,
        mirostat_mode: int = 0,
        mirostat_tau: float = 5.0,
        mirostat_eta: float = 0.1,
        model: str | None = None,
        stopping_criteria: StoppingCriteriaList | None = None,
        logits_processor: LogitsProcessorList | None = None,
        grammar: Grammar | LlamaGrammar | None = None,
        logit_bias: dict[int, float] | None = None,
        **penalties: Unpack[_CallSettings],
    ) -> CreateCompletionResponse | Iterator[CreateCompletionStreamResponse]: ...
    def create_completion(
        self,
        prompt: str | list[int],
        suffix: str | None = None,
        max_tokens: int | None = 16,
        temperature: float = 0.8,
        top_p: float = 0.95,
        min_p: float = 0.05,
        typical_p: float = 1.0,
        logprobs: int | None = None,
        echo: bool = False,
        stop: str | list[str] | None = ...,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        repeat_penalty: float = 1.0,
        top_k: int = 40,
        stream: bool = False,
        seed: int | None = None,
        tfs_z: float = 1.0,
        mirostat_mode: int = 0,
        mirostat_tau: float = 5.0,
        mirostat_eta: float = 0.1,
        model: str | None = None,
        stopping_criteria: StoppingCriteriaList | None = None,
        logits_processor: LogitsProcessorList | None = None,
        grammar: Grammar | LlamaGrammar | None = None,
        logit_bias: dict[int, float] | None = None,
        **penalties: Unpack[_CallSettings],
    ) -> CreateCompletionResponse | Iterator[CreateCompletionStreamResponse]: ...
    def create_chat_completion(
        self,
        messages: list[ChatCompletionRequestMessage],
        functions: list[ChatCompletionFunction] | None = None,
        function_call: ChatCompletionRequestFunctionCall | None = None,
        tools: list[ChatCompletionTool] | None = None,
        tool_choice: ChatCompletionToolChoiceOption | None = None,
        temperature: float = 0.2,
        top_p: float = 0.95,
        top_k: int = 40,
        min_p: float = 0.05,
        typical_p: float = 1.0,
        stream: bool = False,
        stop: str | list[str] | None = ...,
        seed: int | None = None,
        response_format: ChatCompletionRequestResponseFormat | Mapping[str, object] | None = None,
        max_tokens: int | None = None,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        repeat_penalty: float = 1.0,
        tfs_z: float = 1.0,
        mirostat_mode: int = 0,
        mirostat_tau: float = 5.0,
        mirostat_eta: float = 0.1,
        model: str | None = None,
        logits_processor: LogitsProcessorList | None = None,
        grammar: Grammar | LlamaGrammar | None = None,
        logit_bias: dict[int, float] | None = None,
        logprobs: bool | None = None,
        top_logprobs: int | None = None,
        **penalties: Unpack[_CallSettings],
    ) -> CreateChatCompletionResponse | Iterator[CreateChatCompletionStreamResponse]: ...
    def generate(
        self,
        tokens: Sequence[int],
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        typical_p: float = 1.0,
        temp: float = 0.8,
        repeat_penalty: float = 1.0,
        reset: bool = True,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        tfs_z: float = 1.0,
        mirostat_mode: int = 0,
        mirostat_tau: float = 5.0,
        mirostat_eta: float = 0.1,
        penalize_nl: bool = True,
        logits_processor: LogitsProcessorList | None = None,
        stopping_criteria: StoppingCriteriaList | None = None,
        grammar: Grammar | LlamaGrammar | None = None,
        **penalties: Unpack[_GenerateSettings],
    ) -> Generator[int, Sequence[int] | None]: ...
