"""The marks with which models set their reasoning and their tool calls apart from the answer."""

# Opening mark -> closing mark. Only marks at the beginning of a text count, so that an answer may mention them.
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
# In some models these marks are control tokens. llama.cpp omits the text of control tokens unless asked for it.
CONTROL_MARKS = frozenset({*MARKS, *MARKS.values(), "<|channel|>", "<|message|>", "<|start|>", "<|end|>"})

# Opening mark of a tool call -> closing mark, or "" if the call extends to the end of the text.
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
