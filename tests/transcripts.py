"""Transcripts of every format, written by hand after the formats' own sources (docs/formats.md), and what they hold."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lzsampler.auditing.reading.read import read
from lzsampler.auditing.reading.shard import find
from lzsampler.auditing.records import BadRecord, Record

Write = Callable[[str, bytes], Path]
Text = tuple[str, int, str, dict[str, str]]
"""(id, number, "reasoning | answer", groups) of a record."""


def told(record: Record) -> Text:
    texts = {field.name: field.text for field in record.fields}
    if "reasoning" not in texts:
        return record.id, record.number, texts["answer"], dict(record.groups)
    return record.id, record.number, f"{texts['reasoning']} | {texts.get('answer', '-')}", dict(record.groups)


def everything(paths: Any, **options: Any) -> tuple[list[Record], list[BadRecord]]:
    shards, bad = find(paths, **options)
    found = [item for shard in shards for item in read(pickle.loads(pickle.dumps(shard)))]
    records = [item for item in found if isinstance(item, Record)]
    return records, bad + [item for item in found if isinstance(item, BadRecord)]


def texts(records: list[Record]) -> list[str]:
    return [told(record)[2] for record in records]


def jsonl(*rows: Any) -> bytes:
    return b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)


BAD = b'{"messages": [{"role"\n'
USER, SYSTEM = {"role": "user", "content": "q"}, {"role": "system", "content": "s"}


def said(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


# -- formats: (name of the file, its bytes, format, records, number of bad records) --

CHAT = jsonl(
    {"id": "a", "model": "m", "messages": [SYSTEM, USER, said("Grüße 😀"), USER, said("", tool_calls=[{}]), said("z")]},
    {"messages": [said("<think>hm</think>so"), said("so", reasoning_content="hm")], "sampling_params": {"seed": 3}},
    BAD,
    {"messages": [USER]},
    {"messages": [said([{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}, {"type": "image"}])]},
    {"messages": [said("<think>never closed ")], "temperature": 1.0, "variant": "lz"},
    {"messages": [{"from": "gpt", "value": "v"}, said(None)], "finish_reason": "max_tokens"},
)
RESPONSES = jsonl(
    {
        "custom_id": "c1",
        "response": {
            "status_code": 200,
            "body": {
                "id": "x",
                "model": "m",
                "choices": [
                    {"message": said("ä"), "finish_reason": "length"},
                    {"message": said("b", reasoning="r"), "finish_reason": "stop"},
                ],
            },
        },
        "error": None,
    },
    {"custom_id": "c2", "response": None, "error": {"message": "boom"}},
    BAD,
    {"id": "bare", "choices": [{"text": "whole", "finish_reason": None}]},
    {"object": "response", "id": "r", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
     "output": [{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "message", "content": [{"type": "output_text", "text": "so"}]}]},
    {"model": "o", "message": {"role": "assistant", "content": "c", "thinking": "t"}, "done_reason": "length"},
)  # fmt: skip
SHAREGPT = [
    {"id": "s", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "Ω"}]},
    {"conversations": "odd"},
    [{"from": "human", "value": "q"}, {"from": "GPT", "value": "<think>t</think>b"}],
    {"conversations": [USER, said("c")]},
]
WEBUI = jsonl(
    {"type": "session", "harness": "llama.app", "id": "s", "name": "n", "currNode": "3"},
    {"type": "message", "message": {"id": "1", "role": "user", "content": "q", "parent": None}},
    {
        "type": "message",
        "message": {"id": "2", "role": "assistant", "content": "ô", "reasoningContent": "r", "model": "m"},
    },
    BAD,
    {"type": "message", "message": {"id": "3", "role": "assistant", "content": "again"}},
)
MARKED = (
    "<<<reasoning_content_start>>>t1<<<reasoning_content_end>>>a1\n\n<<<AGENTIC_TOOL_CALL_START>>>\n<<<TOOL_NAME:f>>>\n"
    "<<<TOOL_ARGS_START>>>{}<<<TOOL_ARGS_END>>>\nresult\n<<<AGENTIC_TOOL_CALL_END>>>\n<<<reasoning_content_start>>>t2"
)
WEBUI_OLD = {"conv": {"id": "c"}, "messages": [USER, said("é", thinking="t", model="m"), said("b"), said(MARKED)]}
SERVER = jsonl(
    {"content": "ü", "stop_type": "limit", "model": "m", "generation_settings": {"temperature": 0.8, "seed": 42}},
    BAD,
    {"content": "x</think>y", "tokens_predicted": 3, "stop_type": "eos"},
)
LM_EVAL = jsonl(
    {"doc_id": 7, "doc": {}, "resps": [["ñ", "<think>t</think>b"]], "filter": "strict",
     "arguments": {"gen_args_0": {"arg_0": "p", "arg_1": {"temperature": 0.0, "until": []}}}},
    BAD,
    {"doc_id": 8, "doc": {}, "resps": [["c"]], "filter": "strict", "arguments": [["p", {"temperature": 0.5}]]},
    {"doc_id": 7, "doc": {}, "resps": [["ñ", "<think>t</think>b"]], "filter": "flexible"},
)  # fmt: skip
BENCH = {
    "model_id": "m",
    "generated_texts": ["å", "", "<think>b"],
    "errors": ["", "timeout", ""],
    "input_lens": [1, 1, 1],
}
LM_STUDIO = {
    "name": "n",
    "messages": [
        {"versions": [{"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "q"}]}]},
        {
            "versions": [
                {"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "s"}, "steps": [
                    {"type": "contentBlock", "style": {"type": "thinking"}, "content": [{"type": "text", "text": "t"}]},
                    {"type": "debugInfoBlock", "debugInfo": "d"},
                    {"type": "contentBlock", "content": [{"type": "toolCallRequest", "name": "f", "parameters": {}},
                                                         {"type": "toolCallResult", "content": "[]"}]},
                    {"type": "contentBlock", "content": [{"type": "text", "text": "ß"}],
                     "genInfo": {"identifier": "m", "stats": {"stopReason": "maxPredictedTokensReached"},
                                 "predictionConfig": {"fields": [{"key": "llm.temperature", "value": 0.1}]}}},
                ]},
                {"type": "singleStep", "role": "assistant", "content": [{"type": "text", "text": "b"}]},
                {"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "s"}, "steps": []},
            ]
        },
    ],
}  # fmt: skip
DETAILS = (
    '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n{}\n</details>\n'
)
TOOLS = (
    '<details type="tool_calls" done="true" id="i" name="f" arguments="&quot;{}&quot;" result="&quot;r&gt;&quot;">\n'
    "<summary>Tool Executed</summary>\n</details>\n"
    '<details type="code_interpreter" done="true" duration="1" output="{}">\n<summary>Analyzed</summary>\n'
    "```python\n1\n```\n</details>\n"
)
OPEN_WEBUI = [
    {"id": "w", "chat": {"title": "t", "history": {"currentId": "2", "messages": {
        "1": {"id": "1", "role": "user", "content": "q"},
        "2": {"id": "2", "role": "assistant", "model": "m", "content": DETAILS.format("&gt; a &lt; b\n&gt; c") + "đ"},
        "3": {"id": "3", "role": "assistant", "content": DETAILS.split("</details>")[0].format("> loop")},
        "4": {"id": "4", "role": "assistant", "content": DETAILS.format("&gt; x") + "y\n" + TOOLS + "z"},
        "5": {"id": "5", "role": "assistant", "content": "so", "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t1"}]},
            {"type": "function_call", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "output": [{"type": "input_text", "text": "r"}]},
            {"type": "reasoning", "content": [{"type": "output_text", "text": "t2"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "so"}]}]},
    }}}},
    {"chat": {"history": {"messages": {"1": 5}}}},
    {"id": "old", "history": {"messages": {"1": said("x")}}},
]  # fmt: skip
CHATGPT = [
    {"id": "g", "current_node": "c", "default_model_slug": "d", "mapping": {
        "a": {"message": None},
        "b": {"message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["q"]}}},
        "c": {"message": {"author": {"role": "assistant"}, "metadata": {"model_slug": "m"},
                          "content": {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "t"}]}}},
        "d": {"message": {"author": {"role": "assistant"}, "content": {"content_type": "code", "text": "1"}}},
        "f": {"message": {"author": {"role": "assistant"}, "recipient": "canmore.create_textdoc",
                          "content": {"content_type": "text", "parts": ["{}"]}}},
        "h": {"message": {"author": {"role": "assistant"}, "recipient": "all",
                          "metadata": {"is_visually_hidden_from_conversation": True},
                          "content": {"content_type": "text", "parts": [""]}}},
        "r": {"message": {"author": {"role": "assistant"}, "recipient": "all",
                          "content": {"content_type": "reasoning_recap", "content": "Thought for 6s"}}},
        "e": {"message": {"author": {"role": "assistant"}, "recipient": "all",
                          "metadata": {"finish_details": {"type": "max_tokens"}},
                          "content": {"content_type": "text", "parts": ["ø"]}}},
    }},
    {"mapping": {"a": 3}},
]  # fmt: skip
TEXTGEN = {
    "internal": [["<|BEGIN-VISIBLE-CHAT|>", "hello"], ["q", "<think>t</think>ž"], ["q", "b"]],
    "visible": [["", "hello"], ["q", "x"], ["q", "b"]],
    "metadata": {"assistant_2": {"versions": [{"content": "b0"}, {"content": "b"}], "current_version_index": 1}},
}
SILLYTAVERN = jsonl(
    {"user_name": "u", "character_name": "c", "chat_metadata": {}},
    {"name": "c", "is_user": False, "mes": "the card's greeting"},
    {"name": "u", "is_user": True, "mes": "q"},
    {"name": "c", "is_user": False, "mes": "ł", "extra": {"reasoning": "r", "model": "m"}},
    BAD,
    {"name": "c", "is_user": False, "mes": "s1!", "swipes": ["s0", "s1"], "swipe_id": 1,
     "swipe_info": [{"extra": {"reasoning": "r0"}}, {}]},
    {"name": "n", "is_user": False, "is_system": True, "mes": "a note"},
    {"name": "c", "is_user": False, "is_system": True, "mes": "hidden", "extra": {"api": "openai", "model": "m"}},
    {"name": "n", "is_user": False, "mes": "/sys", "extra": {"api": "manual", "model": "slash command"}},
    {"name": "c", "is_user": False, "mes": "/addswipe", "swipes": ["s0", "/addswipe"], "swipe_id": 1,
     "extra": {"api": "manual"}, "swipe_info": [{"extra": {"api": "openai"}}, {"extra": {"api": "manual"}}]},
)  # fmt: skip
INSPECT_SAMPLE = {
    "id": 4, "epoch": 2, "input": "q", "messages": [USER, said("shot", source="input"), said([
        {"type": "reasoning", "reasoning": "t"}, {"type": "text", "text": "č"}])],
    "output": {"model": "m", "choices": [{"message": said("č"), "stop_reason": "max_tokens"}]},
}  # fmt: skip
INSPECT = {
    "version": 2,
    "eval": {"task": "t", "model": "m"},
    "plan": {"config": {"temperature": 0.5}},
    "samples": [INSPECT_SAMPLE, {"id": 5, "epoch": 1, "messages": [], "output": {"choices": [{"message": said("b")}]}}],
}
LZS = jsonl(
    {"version": 1, "id": "lzs-1", "lzsampler": "0.1.0", "model": {"name": "m"}, "finish_reason": "length",
     "settings": {"temperature": 0.0, "seed": 7, "top_k": 1}, "messages": [USER, said("given"), USER,
                                                                          said("", reasoning_content="ŷ ŷ")]},
    BAD,
    {"version": 1, "id": "lzs-2", "lzsampler": "0.1.0", "model": {"name": "m"}, "finish_reason": "stop",
     "settings": {}, "prompt": "p", "messages": [said("b")]},
)  # fmt: skip
ROWS = jsonl(
    {"prompt": "p", "completion": "ę", "seed": 1},
    BAD,
    {"prompt": "p", "response": ["a", "<think>t</think>b"], "id": 9},
    {"prompt": [USER], "completion": [said("c", reasoning_content="r")]},
    {"prompt": "p", "outputs": [{"text": "d", "finish_reason": "length"}]},
    {"prompt": "p"},
    {"text": "alone", "meta": {"text": "no"}},
)


def chunk(piece: str, **more: Any) -> dict[str, Any]:
    delta = {"role": "assistant", "content": piece}
    choice = {"index": 0, "delta": {**delta, **more.pop("delta", {})}, "finish_reason": more.pop("reason", None)}
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


STREAM = jsonl(
    chunk("a"),
    chunk("x", id="d"),
    chunk("", delta={"reasoning_content": "hm"}),
    BAD,
    chunk("b", reason="length"),
    {**chunk(""), "choices": [], "usage": {}},
    {"id": "t", "choices": [{"index": 0, "delta": {"tool_calls": [{}]}, "finish_reason": "tool_calls"}]},
    chunk("again", reason="stop"),
    {"model": "o", "response": "ö", "done": False},
    {"model": "o", "response": "l", "thinking": None, "done": True, "done_reason": "stop"},
    {"type": "message_start", "message": {"id": "an", "model": "s", "content": []}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "t"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "y"}},
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
    {"type": "message_stop"},
    {"type": "response.created", "response": {"id": "r1", "output": []}},
    {"type": "response.output_text.delta", "sequence_number": 1, "delta": "cut "},
    {"type": "response.output_text.delta", "sequence_number": 2, "delta": "off"},
)
EVENTS = b"event: x\n" + b"".join(
    b"data: " + json.dumps(row).encode() + b"\n\n" for row in (chunk("l"), chunk("o", reason="stop"))
) + b"data: [DONE]\n\n"  # fmt: skip
AGENT = jsonl(
    {"type": "summary", "summary": "s", "leafUuid": "l"},
    {"type": "user", "sessionId": "s", "message": USER},
    {"type": "assistant", "sessionId": "s", "message": {
        "role": "assistant", "model": "m", "content": [{"type": "thinking", "thinking": "t"}]}},
    BAD,
    {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [{"type": "tool_use"}]}},
    {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "model": "<synthetic>", "content": "no"}},
    {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [{"type": "text", "text": "ü"}],
                                                        "stop_reason": "end_turn"}},
    {"type": "result", "session_id": "s", "result": "ü"},
)  # fmt: skip
ROLLOUT = jsonl(
    {"timestamp": "t", "type": "session_meta", "payload": {"id": "x"}},
    {"timestamp": "t", "type": "turn_context", "payload": {"model": "m"}},
    {"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "q"}]}},
    {"timestamp": "t", "type": "response_item", "payload": {"type": "reasoning", "summary": [
        {"type": "summary_text", "text": "t"}], "encrypted_content": "e"}},
    BAD,
    {"timestamp": "t", "type": "event_msg", "payload": {"type": "agent_message", "message": "ę"}},
    {"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "ę"}]}},
    {"timestamp": "t", "type": "response_item", "payload": {"type": "reasoning", "content": [
        {"type": "reasoning_text", "text": "then"}]}},
    {"timestamp": "t", "type": "response_item", "payload": {"type": "function_call", "name": "f", "arguments": "{}"}},
)  # fmt: skip
GEMINI_CLI = jsonl(
    {"sessionId": "g", "projectHash": "h", "kind": "main"},
    {"id": "1", "type": "user", "content": [{"text": "q"}]},
    {"id": "2", "type": "gemini", "content": "", "model": "m"},
    BAD,
    {"$set": {"lastUpdated": "t"}},
    {"id": "2", "type": "gemini", "content": "å", "thoughts": [{"subject": "s", "description": "t"}], "model": "m"},
)
GEMINI = jsonl(
    {"candidates": [{"content": {"parts": [{"text": "t", "thought": True}, {"text": "č"}]}, "finishReason": "STOP"}],
     "modelVersion": "m", "responseId": "x"},
    BAD,
    {"candidates": [{"content": {"parts": [{"text": "in "}]}}], "responseId": "y"},
    {"candidates": [{"content": {"parts": [{"text": "two"}]}, "finish_reason": "MAX_TOKENS"}], "response_id": "y"},
    {"promptFeedback": {"blockReason": "SAFETY"}},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}, "finishReason": "STOP"}]},
)  # fmt: skip
OUTPUT = [{"role": "assistant", "parts": [{"type": "reasoning", "content": "t"}, {"type": "text", "content": "đ"}]}]
SPANS = jsonl(
    {"name": "chat", "context": {"span_id": "1"}, "attributes": {"gen_ai.request.model": "m", "gen_ai.output.messages":
        json.dumps(OUTPUT), "gen_ai.input.messages": "[]", "gen_ai.response.finish_reasons": ["length"]}},
    BAD,
    {"name": "GET", "context": {"span_id": "2"}, "attributes": {"http.method": "GET"}},
    {"name": "around", "context": {"span_id": "3"}, "attributes": {"gen_ai.operation.name": "invoke_agent",
        "gen_ai.output.messages": json.dumps(OUTPUT)}},
    {"name": "chat", "context": {"span_id": "4"}, "attributes": {"gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "b", "gen_ai.prompt.0.content": "q"}},
    {"name": "LLM", "context": {"span_id": "5"}, "attributes": {"openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": "c"}},
)  # fmt: skip
OTLP = {"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "6", "attributes": [
    {"key": "gen_ai.output.messages", "value": {"stringValue": json.dumps(OUTPUT)}}]}]}]}]}  # fmt: skip
PROMPTFOO = 'x,[p one] Say {{x}},Status,Score\na,"é\n""b""",PASS,1\nb,c,FAIL,0\n'.encode()
KOBOLD = {"gamestarted": True, "prompt": "", "actions": ["\n{{[INPUT]}}\nq\n{{[OUTPUT]}}\n", "ķ", "more"]}
PAIRS = jsonl(
    {"prompt": "q", "chosen": "ś", "rejected": [USER, said("b")], "model": "m"},
    BAD,
    {"chosen": "\n\nHuman: q\n\nAssistant: c\n\nHuman: q\n\nAssistant: d", "rejected": "e"},
    {"conversation_a": [USER, said("f")], "conversation_b": [USER, said("g")], "model_a": "x", "model_b": "y"},
)
LOGS = """# 2026-01-02T03:04:05    conversation: 01a id: 01b

Model: **m**

## Prompt

q

## Response

ž

## A heading of the answer

# 2026-01-02T03:04:06    conversation: 01a id: 01c

## Response

b
"""
COPIED = "# A chat\n\n**You:** q q q\n\n**Assistant:** ħ\n\n**You:**\nand?\n\n**Assistant:**\nb\n"
AIDER_LOG = (
    "\n# aider chat started at 2026-01-02\n\n> Model: m  \n\n#### q  \n\nĳ\n\n> Tokens: 1  \n\n#### more  \n\nb\n"
)

CASES: list[tuple[str, str, bytes, list[Text], int]] = [
    ("openai-chat", "c.jsonl", CHAT, [
        ("a", 0, "Grüße 😀", {"model": "m"}), ("a/2", 0, "z", {"model": "m"}),
        ("1", 1, "hm | so", {"seed": "3"}), ("1/2", 1, "hm | so", {"seed": "3"}), ("4", 4, "t | a", {}),
        ("5", 5, "never closed  | -", {"temperature": "1"}), ("6", 6, "v", {"finish_reason": "length"}),
        ("6/2", 6, "", {"finish_reason": "length"})], 2),
    ("openai-chat", "one.json", json.dumps(said("<think>a", model="m")).encode(), [
        ("0", 0, "a | -", {"model": "m"})], 0),
    ("openai-response", "r.jsonl", RESPONSES, [
        ("c1", 0, "ä", {"model": "m", "finish_reason": "length"}),
        ("c1/2", 0, "r | b", {"model": "m", "finish_reason": "stop"}),
        ("bare", 3, "whole", {}), ("r", 4, "hm | so", {"finish_reason": "length"}),
        ("5", 5, "t | c", {"model": "o", "finish_reason": "length"})], 2),
    ("sharegpt", "s.json", json.dumps(SHAREGPT, indent=1).encode(), [
        ("s", 0, "Ω", {}), ("2", 2, "t | b", {}), ("3", 3, "c", {})], 1),
    ("sharegpt", "s.jsonl", jsonl(SHAREGPT[0], BAD, *SHAREGPT[2:]), [
        ("s", 0, "Ω", {}), ("2", 2, "t | b", {}), ("3", 3, "c", {})], 1),
    ("llama-webui", "w.jsonl", WEBUI, [("2", 2, "r | ô", {"model": "m"}), ("3", 4, "again", {})], 1),
    ("llama-webui", "w.json", json.dumps([WEBUI_OLD, {"conv": 0}, WEBUI_OLD]).encode(), [
        ("c", 0, "t | é", {"model": "m"}), ("c/2", 0, "b", {}), ("c/3", 0, "t1t2 | a1\n\n\n", {}),
        ("c", 2, "t | é", {"model": "m"}), ("c/2", 2, "b", {}), ("c/3", 2, "t1t2 | a1\n\n\n", {})], 1),
    ("llama-server", "l.jsonl", SERVER, [
        ("0", 0, "ü", {"model": "m", "temperature": "0.8", "seed": "42", "finish_reason": "length"}),
        ("2", 2, "x | y", {"finish_reason": "stop"})], 1),
    ("lm-eval", "out/org__m/samples_gsm8k_2026-01-02T03-04-05.6.jsonl", LM_EVAL, [
        ("7", 0, "ñ", {"task": "gsm8k", "model": "org/m", "temperature": "0"}),
        ("7/2", 0, "t | b", {"task": "gsm8k", "model": "org/m", "temperature": "0"}),
        ("8", 2, "c", {"task": "gsm8k", "model": "org/m", "temperature": "0.5"})], 1),
    ("bench", "v.json", json.dumps(BENCH).encode(), [
        ("0", 0, "å", {"model": "m"}), ("2", 2, "b | -", {"model": "m"})], 1),
    ("bench", "g.jsonl", jsonl({"generated_texts": ["a", "b"], "server_info": {"model_path": "m"}}, BAD, BENCH), [
        ("0", 0, "a", {"model": "m"}), ("0/2", 0, "b", {"model": "m"}), ("2", 2, "å", {"model": "m"}),
        ("2/2", 2, "b | -", {"model": "m"})], 2),
    ("lm-studio", "1.conversation.json", json.dumps(LM_STUDIO, indent=2).encode(), [
        ("0", 0, "t | ß", {"model": "m", "finish_reason": "length", "temperature": "0.1"}), ("0/2", 0, "b", {}),
        ("0/3", 0, "", {"model": "s"})], 0),
    ("open-webui", "o.json", json.dumps(OPEN_WEBUI).encode(), [
        ("w", 0, "a < b\nc | đ", {"model": "m"}), ("w/2", 0, "loop\n | -", {}),
        ("w/3", 0, "x | y\nz", {}), ("w/4", 0, "t1\nt2 | so", {}), ("old", 2, "x", {})], 1),
    ("chatgpt", "conversations.json", json.dumps(CHATGPT).encode(), [
        ("g", 0, "t | -", {"model": "m"}), ("g/2", 0, "ø", {"finish_reason": "length"})], 1),
    ("textgen-webui", "t.json", json.dumps(TEXTGEN, indent=4).encode(), [
        ("1", 1, "t | ž", {}), ("2", 2, "b0", {}), ("2/2", 2, "b", {})], 0),
    ("sillytavern", "st.jsonl", SILLYTAVERN, [
        ("3", 3, "r | ł", {"model": "m"}), ("5", 5, "r0 | s0", {}), ("5/2", 5, "s1!", {}),
        ("7", 7, "hidden", {"model": "m"}), ("9", 9, "s0", {})], 1),
    ("inspect", "i.json", json.dumps(INSPECT).encode(), [
        ("4, epoch 2", 0, "t | č", {"model": "m", "task": "t", "temperature": "0.5", "finish_reason": "length"}),
        ("5", 1, "b", {"model": "m", "task": "t", "temperature": "0.5"})], 0),
    ("lzs", "z.jsonl", LZS, [
        ("lzs-1", 0, "ŷ ŷ | -", {"model": "m", "finish_reason": "length", "temperature": "0", "seed": "7"}),
        ("lzs-2", 2, "b", {"model": "m", "finish_reason": "stop"})], 1),
    ("completion", "p.jsonl", ROWS, [
        ("0", 0, "ę", {"seed": "1"}), ("9", 2, "a", {}), ("9/2", 2, "t | b", {}), ("3", 3, "r | c", {}),
        ("4", 4, "d", {"finish_reason": "length"}), ("6", 6, "alone", {})], 2),
    ("completion", "e.jsonl", jsonl(
        {"question": "q", "prediction": "ď", "answer": "gold"}, BAD, {"input": "q", "llm_output": "b", "thought": "t"},
        {"prompt": "q", "response": {"output": "c"}}, {"output": [], "history": [["q", "d"]], "response": "e"},
        {"choices": [{"index": 0, "turns": ["f", "g"]}], "model_id": "m"}, {"expected_output": "x", "answer": "h"}), [
        ("0", 0, "ď", {}), ("2", 2, "t | b", {}), ("3", 3, "c", {}), ("4", 4, "d", {}), ("4/2", 4, "e", {}),
        ("5", 5, "f", {"model": "m"}), ("5/2", 5, "g", {"model": "m"}), ("6", 6, "h", {})], 1),
    ("openai-chat", "m.jsonl", jsonl(
        {"messages": [SYSTEM, USER], "response": "ř"}, BAD, [USER, said("b")], {"history": [{"message": said("c")}]},
        {"type": "ai", "content": "d", "id": "x"}, {"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "e"}},
        {"info": {"role": "assistant", "id": "y"}, "parts": [{"type": "reasoning", "text": "r"},
                                                             {"type": "text", "text": "f"}]},
        {"contents": [{"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": [{"text": "g"}]}]}), [
        ("0", 0, "ř", {}), ("2", 2, "b", {}), ("3", 3, "c", {}), ("x", 4, "d", {}), ("5", 5, "e", {}),
        ("6", 6, "r | f", {}), ("7", 7, "g", {})], 1),
    ("stream", "s.jsonl", STREAM, [
        ("c", 0, "hm | ab", {"model": "m", "finish_reason": "length"}),
        ("c/2", 7, "again", {"model": "m", "finish_reason": "stop"}),
        ("8", 8, "öl", {"model": "o", "finish_reason": "stop"}),
        ("an", 10, "t | y", {"model": "s", "finish_reason": "length"}),
        ("d", 1, "x", {"model": "m"}), ("r1", 15, "cut off", {})], 1),
    ("stream", "s.sse", EVENTS, [("c", 1, "lo", {"model": "m", "finish_reason": "stop"})], 0),
    ("stream", "s.txt", EVENTS, [("c", 1, "lo", {"model": "m", "finish_reason": "stop"})], 0),
    ("claude-code", "a.jsonl", AGENT, [
        ("s", 2, "t | -", {"model": "m"}), ("s/2", 6, "ü", {"finish_reason": "stop"})], 1),
    ("codex", "rollout-1.jsonl", ROLLOUT, [
        ("x", 6, "t | ę", {"model": "m"}), ("x/2", 8, "then | -", {"model": "m"})], 1),
    ("gemini-cli", "session-1.jsonl", GEMINI_CLI, [("g", 2, "t | å", {"model": "m"})], 1),
    ("gemini", "g.jsonl", GEMINI, [
        ("0", 0, "t | č", {"model": "m", "finish_reason": "stop"}),
        ("2", 2, "in two", {"finish_reason": "length"})], 2),
    ("otel", "o.jsonl", SPANS, [
        ("1", 0, "t | đ", {"model": "m", "finish_reason": "length"}), ("4", 4, "b", {}), ("5", 5, "c", {})], 1),
    ("otel", "o.json", json.dumps(OTLP).encode(), [("6", 0, "t | đ", {})], 0),
    ("promptfoo", "p.csv", PROMPTFOO, [
        ("0", 0, 'é\n"b"', {"model": "p one"}), ("1", 1, "c", {"model": "p one"})], 0),
    ("kobold", "k.json", json.dumps(KOBOLD).encode(), [("1", 1, "ķ", {}), ("2", 2, "more", {})], 0),
    ("preference", "d.jsonl", PAIRS, [
        ("0", 0, "ś", {"model": "m", "side": "chosen"}), ("0/2", 0, "b", {"model": "m", "side": "rejected"}),
        ("2", 2, "c", {"side": "chosen"}), ("2/2", 2, "d", {"side": "chosen"}), ("2/3", 2, "e", {"side": "rejected"}),
        ("3", 3, "f", {"model": "x", "side": "conversation_a"}),
        ("3/2", 3, "g", {"model": "y", "side": "conversation_b"})], 1),
    ("strings", "x.json", json.dumps(["ů", "b"]).encode(), [("0", 0, "ů", {}), ("1", 1, "b", {})], 0),
    ("strings", "y.json", json.dumps({"a": "ů" * 90, "b": "z" * 90}).encode(), [
        ("a", 0, "ů" * 90, {}), ("b", 1, "z" * 90, {})], 0),
    ("transcript", "logs.md", LOGS.encode(), [
        ("01b", 0, "ž\n\n## A heading of the answer", {"model": "m"}), ("01c", 1, "b", {})], 0),
    ("transcript", "copied.md", COPIED.encode(), [("0", 0, "ħ", {}), ("1", 1, "b", {})], 0),
    ("transcript", ".aider.chat.history.md", AIDER_LOG.encode(), [("0", 0, "ĳ", {}), ("1", 1, "b", {})], 0),
    ("text", "answer.md", "\ufeff# Ä\r\nb".encode(), [("0", 0, "# Ä\r\nb", {})], 0),
    ("text", "answer.txt", "ä</think>b".encode("utf-16"), [("0", 0, "ä | b", {})], 0),
]  # fmt: skip
