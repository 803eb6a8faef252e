"""The marks by which models set their thinking and their tool calls apart from the answer."""

# Opening mark: closing mark. They count at the beginning of a text only, so that an answer may talk about them.
MARKS = {
    "<think>": "</think>",  # DeepSeek R1, Qwen3 and most others
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
}
# Some models have these marks as control tokens, whose text llama.cpp leaves out unless asked for it.
CONTROL_MARKS = frozenset({*MARKS, *MARKS.values(), "<|channel|>", "<|message|>", "<|start|>", "<|end|>"})

# Opening mark of a tool call: closing mark, "" where the call reaches to the end of the text.
TOOL_MARKS = {
    "<tool_call>": "</tool_call>",  # Qwen, Hermes, Granite, GLM
    "<function=": "</function>",  # Llama 3.1
    "<function_call>": "</function_call>",
    "<|tool_call>": "<tool_call|>",
    "[TOOL_CALLS]": "",  # Mistral
    "<|python_tag|>": "",  # Llama 3.1
    "<|tool_call|>": "",  # Granite 3, Phi 4
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",  # DeepSeek
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",  # Kimi K2
    "<|START_ACTION|>": "<|END_ACTION|>",  # Command A
    "<|channel|>commentary to=": "<|call|>",  # gpt-oss
}
