"""Write docs/lzs.1, the manual page of the command line, from the help of its commands.

click-man would write a page for each command, and list its options without their groups.

python docs/make_man.py            # writes docs/lzs.1
python docs/make_man.py --print    # prints it instead, for the test that it is current
"""

import sys
from importlib import import_module
from pathlib import Path

import click

PAGE = Path(__file__).with_name("lzs.1")


def escaped(text: str) -> str:
    """Return text as roff takes it: no escapes, no macro at the beginning of a line."""
    text = text.replace("\xa0", " ").replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text; those after a line with \\b keep their lines."""
    lines = []
    for paragraph in text.strip().split("\n\n"):
        for part in ("\n" + paragraph.strip()).split("\n\b"):
            body = part.strip("\n")
            if not body:
                continue
            kept = "\b" in paragraph
            lines += [".PP", *([".nf", escaped(body), ".fi"] if kept else [escaped(" ".join(body.split()))])]
    return lines


def section(title: str, command: click.Command, ctx: click.Context) -> list[str]:
    """Return the part of the page about a command."""
    usage = " ".join(command.collect_usage_pieces(ctx))
    lines = [f".SH {title.upper()}", f".B {escaped(ctx.command_path)}", escaped(usage)]
    lines += paragraphs(command.help or "")
    for heading, rows in getattr(command, "option_groups", lambda _: {})(ctx).items():
        lines.append(f".SS {escaped(heading)}")
        for names, text in rows:
            lines += [".TP", f".B {escaped(names)}", escaped(text)]
    command.format_epilog(ctx, click.HelpFormatter())  # lzs audit makes its epilog then
    return lines + paragraphs(command.epilog or "")


def page() -> str:
    """Return the manual page."""
    main = import_module("lzsampler.cli.main")
    group: click.Group = main.lzs
    root = click.Context(group, info_name="lzs")
    lines = [
        f'.TH LZS 1 "" "lzsampler {main.__version__}" "User Commands"',
        ".SH NAME",
        "lzs \\- run local GGUF models without repetition loops, and find loops in what models wrote",
        ".SH SYNOPSIS",
        ".B lzs",
        "[OPTIONS] COMMAND [ARGS]...",
        ".SH DESCRIPTION",
        *paragraphs(group.help or "")[1:],
        ".SH COMMANDS",
    ]
    for name, (_, _, line) in main.COMMANDS.items():
        lines += [".TP", f".B {name}", escaped(line)]
    lines += paragraphs(group.epilog or "")
    for name in main.COMMANDS:
        command = group.get_command(root, name)
        assert command is not None
        lines += section(f"lzs {name}", command, click.Context(command, info_name=name, parent=root))
    lines += [
        ".SH ENVIRONMENT",
        ".TP",
        ".B NO_COLOR, FORCE_COLOR",
        "If set and not empty, write no colours, or write them even where output is not a terminal.",
        ".TP",
        ".B TMPDIR",
        "Folder for temporary files.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), encoding="utf-8")
