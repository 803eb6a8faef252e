"""The reasoning in a text: the model's marks separate it from the answer."""

import re

from ..llama.marks import MARKS

Place = tuple[int, int]  # (begin, end) of a part, in characters

_OPENING = tuple(MARKS)
_END = "</think>"
ANSWER_OF_CHANNELS = "<|end|><|start|>assistant<|channel|>final<|message|>"  # what gpt-oss writes after its analysis
_ANALYSIS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>analysis[^<]{0,80}<\|message\|>")
_FINAL = re.compile(r"(?:<\|end\|>|<\|return\|>)?(?:<\|start\|>assistant)?<\|channel\|>final[^<]{0,80}<\|message\|>")
_FINAL_END = re.compile(r"(?:<\|return\|>|<\|end\|>)\s*\Z")


def opened(prompt: str) -> str:
    """Return the opening mark of reasoning at the end of a prompt; "" without such a mark."""
    end = prompt[-200:].rstrip()
    return next((mark for mark in _OPENING if end.endswith(mark)), "")


def closing(mark: str, template: str | None, prompt: str = "") -> str:
    """Return the text that ends open reasoning: its closing mark, with the line breaks of the chat template.

    Templates write the reasoning of earlier turns as the model was trained to write it. Most templates end it with
    ``'\\n</think>\\n\\n'``. ``template``: the source of the template, None if the model has no template. ``prompt``: a
    text that may contain earlier reasoning. Its line breaks are used if the template has no line breaks at the mark.
    """
    opening = next((name for name, closing in MARKS.items() if closing == mark), "")
    around = rf"({re.escape(opening)})?((?:\\n|\n)*){re.escape(mark)}((?:\\n|\n)*)"
    # Empty blocks are skipped: a template writes them for models that are asked not to think.
    for source in (template or "", prompt):
        found = [breaks for empty, *breaks in re.findall(around, source) if not (opening and empty)]
        before, after = max(found, key=lambda breaks: len(breaks[0]) + len(breaks[1]), default=("", ""))
        if before or after:
            return before.replace("\\n", "\n") + mark + after.replace("\\n", "\n")
    return mark


def split(text: str, opened: str = "") -> tuple[str | None, str | None]:
    """Return (reasoning, answer) of a model's text, each unchanged; None for a part that is missing.

    ``opened``: the mark at the end of the prompt. A block that is never closed is reasoning to the end; most texts that
    loop never close it. If a text has `</think>` without `<think>` before it, the prompt opened the block: everything
    before `</think>` is reasoning. Only the first block is reasoning. So if a model repeats whole blocks, the loop is
    in the answer. Empty reasoning counts as None: models write an empty block if they are asked not to think.
    """
    reasoning, answer = split_places(text, opened)
    return reasoning and text[slice(*reasoning)], answer and text[slice(*answer)]


def split_places(text: str, opened: str = "") -> tuple[Place | None, Place | None]:
    """Return the places (begin, end) of the parts that `split` returns."""
    if opened:
        return _until(text, 0, MARKS[opened])
    begin = text[:200].lstrip()
    if begin.startswith(_OPENING):
        mark = next(mark for mark in _OPENING if begin.startswith(mark))
        return _until(text, text.index(mark) + len(mark), MARKS[mark])
    if begin.startswith(("<|channel|>", "<|start|>")):
        analysis = _ANALYSIS.match(text)
        final = _FINAL.search(text)
        if analysis or final:
            start = analysis.end() if analysis else 0
            end = 0 if not analysis else final.start() if final else len(text)
            mark_at_end = _FINAL_END.search(text, final.end()) if final else None
            answer_end = mark_at_end.start() if mark_at_end else len(text)
            return _parts(text, (start, end), (final.end(), answer_end) if final else None)
    if begin.startswith("analysis") and "assistantfinal" in text:  # gpt-oss: detokenization removed its marks
        return _until(text, text.index("analysis") + len("analysis"), "assistantfinal")
    at = text.find(_END)
    if at >= 0 and "<think>" not in text[:at]:
        return _until(text, 0, _END)
    return None, (0, len(text))


def _until(text: str, start: int, mark: str) -> tuple[Place | None, Place | None]:
    """Return the reasoning from ``start`` to a mark, and the answer after it; without the mark all is reasoning."""
    end = text.find(mark, start)
    if end < 0:
        return _parts(text, (start, len(text)), None)
    return _parts(text, (start, end), (end + len(mark), len(text)))


def _parts(text: str, reasoning: Place, answer: Place | None) -> tuple[Place | None, Place | None]:
    if not text[slice(*reasoning)].strip() and answer is not None:
        return None, answer
    return reasoning, answer


def split_reasoning(text: str, opened: str = "") -> tuple[str | None, str]:
    """Return (reasoning, content) as `split` finds them, both stripped of surrounding white space."""
    reasoning, answer = split(text, opened)
    return None if reasoning is None else reasoning.strip(), (answer or "").strip()
