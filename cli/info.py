"""`lzs info`: shows what the header of a GGUF file says. It needs neither llama.cpp nor the weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lzsampler._values import counted

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand, ModelFile

_TEMPLATE_SHOWN = 100  # largest number of characters of a chat template that are shown
_LONGEST = 2000  # largest number of characters of any value that are shown


@dataclass(frozen=True, kw_only=True)
class InfoOptions:
    """The options of `lzs info`."""

    as_json: bool = opt("Output", "--json", help="print one JSON object, with the whole chat template")


@click.command(cls=GroupedCommand)
@click.argument("model", type=ModelFile(), required=False)
@takes(InfoOptions)
@general_options(quiet="print nothing; the exit status says whether the file can be read")
def info(options: InfoOptions, model: Path | None) -> None:
    """Show architecture, size, vocabulary, special tokens and chat template of a GGUF file.

    MODEL is a file or the name smollm2 (docs/install.md). Without MODEL, lzs shows the embedded model. The file may be
    truncated, or a vocabulary without weights.
    """
    from lzsampler.llama.gguf import describe, read
    from lzsampler.models import default_model
    from lzsampler.reports.text import visible

    path = model or default_model()
    facts = describe(read(path))
    console.detail(f"read the header of {path}")
    if console.quiet:
        return
    if options.as_json:
        console.json(facts)
        return
    from rich.table import Table

    rows = {
        "file": f"{facts['file']}, {_size(facts['size'])}{_part(facts)}",
        "name": facts["name"],
        "architecture": facts["architecture"],
        "parameters": _parameters(facts),
        "context": facts["context_length"] and f"{facts['context_length']:,} tokens",
        "layers": facts["layers"] and f"{facts['layers']} of width {facts['embedding_length']}",
        "vocabulary": facts["vocabulary"] and f"{facts['vocabulary']:,} tokens ({_tokenizer(facts)})",
        "special tokens": ", ".join(f"{role} {t['id']} {t['text']}" for role, t in facts["special_tokens"].items()),
        "BOS added": {True: "yes", False: "no"}.get(facts["add_bos"], "the default of its tokenizer"),
        "chat template": _template(facts["chat_template"]),
        "license": facts["license"],
    }
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for title, value in rows.items():
        grid.add_row(title, visible(str(value), _LONGEST) if value else "not given")
    console.draw(grid)


def _parameters(facts: dict[str, Any]) -> str:
    if not facts["parameters"]:
        return "none: a vocabulary without weights"
    types = ", ".join(f"{name} x {count}" for name, count in facts["tensors"].items())
    return f"{_count(facts['parameters'])}, {facts['quantization']} (tensors: {types})"


def _part(facts: dict[str, Any]) -> str:
    if facts["missing"]:
        return f" (TRUNCATED: {counted(facts['missing'], 'byte is', 'bytes are')} missing)"
    return f" (one of {facts['parts']} parts)" if facts["parts"] > 1 else ""


def _tokenizer(facts: dict[str, Any]) -> str:
    return ", ".join(str(facts[key]) for key in ("tokenizer", "pre_tokenizer") if facts[key])


def _template(template: str | None) -> str:
    if template is None:
        return "none"
    flat = " ".join(template.split())
    shown = flat if len(flat) <= _TEMPLATE_SHOWN else flat[:_TEMPLATE_SHOWN] + "..."
    return f"{len(template):,} characters: {shown}"


def _size(n: int) -> str:
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n / 1e6:.2f} MB"


def _count(n: int) -> str:
    return f"{n / 1e9:.2f} billion" if n >= 1e9 else f"{n / 1e6:.2f} million"
