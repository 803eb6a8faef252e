"""Lists all formats in the order in which lzsampler tries them on a file, the most distinctive first."""

from ..reading import slot
from ..reading.format import Format
from . import (
    agents,
    bench_serving,
    chat_text,
    chatgpt,
    codex,
    completion,
    gemini,
    gemini_cli,
    inspect_ai,
    kobold,
    lighteval,
    llama_server,
    llama_webui,
    lm_eval,
    lm_studio,
    lzs,
    open_webui,
    openai_chat,
    openai_response,
    otel,
    plain_text,
    preference,
    promptfoo,
    sharegpt,
    sillytavern,
    stream,
    strings,
    textgen_webui,
)

ROW_FORMATS: tuple[Format, ...] = (
    lzs.FORMAT,
    stream.FORMAT,
    agents.FORMAT,
    codex.FORMAT,
    gemini_cli.FORMAT,
    gemini.FORMAT,
    otel.FORMAT,
    promptfoo.FORMAT,
    kobold.FORMAT,
    llama_webui.FORMAT,
    lm_eval.FORMAT,
    lighteval.FORMAT,
    bench_serving.FORMAT,
    llama_server.FORMAT,
    inspect_ai.FORMAT,
    lm_studio.FORMAT,
    open_webui.FORMAT,
    chatgpt.FORMAT,
    textgen_webui.FORMAT,
    sillytavern.FORMAT,
    openai_response.FORMAT,
    preference.FORMAT,
    sharegpt.FORMAT,
    openai_chat.FORMAT,
    completion.FORMAT,
    strings.FORMAT,
)
TEXT, SLOT, TRANSCRIPT = plain_text.NAME, slot.NAME, chat_text.NAME

FORMATS: dict[str, str] = {
    TEXT: plain_text.HELP,
    TRANSCRIPT: chat_text.HELP,
    **{format.name: format.help for format in ROW_FORMATS},
    SLOT: slot.HELP,
}


def by_name(name: str) -> Format:
    """Return the format with this name. The name must be of `ROW_FORMATS`."""
    return next(format for format in ROW_FORMATS if format.name == name)
