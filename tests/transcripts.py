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
    ("text", "answer.md", "\ufeff# Ä\r\nb".encode(), [("0", 0, "# Ä\r\nb", {})], 0),
    ("text", "answer.txt", "ä</think>b".encode("utf-16"), [("0", 0, "ä | b", {})], 0),
]  # fmt: skip
