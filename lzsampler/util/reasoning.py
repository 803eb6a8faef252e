"""Reasoning that stands inside a text, told from the answer by the marks of its model."""

import re

# Opening mark: closing mark. A mark counts at the beginning of a text only, so that an answer may talk about it.
_MARKS = {
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
_OPENING = tuple(_MARKS)
# What `split` looks for. Some models have these as control tokens, whose text is left out of a text unless asked for.
CONTROL_MARKS = frozenset({*_MARKS, *_MARKS.values(), "<|channel|>", "<|message|>", "<|start|>", "<|end|>"})
_END = "</think>"
_ANALYSIS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>analysis[^<]{0,80}<\|message\|>")
_FINAL = re.compile(r"(?:<\|end\|>|<\|return\|>)?(?:<\|start\|>assistant)?<\|channel\|>final[^<]{0,80}<\|message\|>")
_FINAL_END = re.compile(r"(?:<\|return\|>|<\|end\|>)\s*\Z")


def opened(prompt: str) -> str:
    """Return the opening mark that a prompt ends in, so that what follows is reasoning; "" when there is none."""
    end = prompt[-200:].rstrip()
    return next((mark for mark in _OPENING if end.endswith(mark)), "")


def split(text: str, opened: str = "") -> tuple[str | None, str | None]:
    """Return (reasoning, answer) of what a model wrote, each as it stands, None for what is not there.

    ``opened``: the mark that the prompt ended in. A block that is not closed, the usual shape of a loop, is reasoning
    to its end. A text with `</think>` and no `<think>` before it was opened by a prompt that is not known: reasoning up
    to there. Only the first block is reasoning: a model that loops over whole blocks shows it in the answer. Empty
    reasoning, as a model writes it that was told not to, is none.
    """
    if opened:
        reasoning, closed, answer = text.partition(_MARKS[opened])
        return _told(reasoning, answer if closed else None)
    begin = text[:200].lstrip()
    if begin.startswith(_OPENING):
        mark = next(mark for mark in _OPENING if begin.startswith(mark))
        reasoning, closed, answer = text[text.index(mark) + len(mark) :].partition(_MARKS[mark])
        return _told(reasoning, answer if closed else None)
    if begin.startswith(("<|channel|>", "<|start|>")):
        analysis = _ANALYSIS.match(text)
        final = _FINAL.search(text)
        reasoning = text[analysis.end() : final.start() if final else None] if analysis else ""
        if analysis or final:
            return _told(reasoning, _FINAL_END.sub("", text[final.end() :]) if final else None)
    if begin.startswith("analysis") and "assistantfinal" in text:  # gpt-oss, its marks lost in detokenising
        reasoning, _, answer = text[text.index("analysis") + len("analysis") :].partition("assistantfinal")
        return _told(reasoning, answer)
    if _END in text:
        reasoning, _, answer = text.partition(_END)
        if "<think>" not in reasoning:
            return _told(reasoning, answer)
    return None, text


def _told(reasoning: str, answer: str | None) -> tuple[str | None, str | None]:
    if not reasoning.strip() and answer is not None:
        return None, answer
    return reasoning, answer
