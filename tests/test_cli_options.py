"""Options of the command line as fields of dataclasses, and the short help of commands that have many."""

import re
from dataclasses import FrozenInstanceError, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import click
import pytest
from click.testing import CliRunner

from cli.fields import opt, takes

MAIN = import_module("lzsampler.cli.main")


def helped(command: str, flag: str) -> str:
    done = CliRunner().invoke(MAIN.lzs, [command, flag], prog_name="lzs")
    assert done.exit_code == 0
    return done.output


def n_options(text: str) -> int:
    return len(re.findall(r"^  -", text, re.MULTILINE))


def test_h_shows_the_common_options_and_three_examples() -> None:
    short, long = (helped("generate", flag) for flag in ("-h", "--help"))
    assert n_options(short) == 25
    assert len(re.findall(r"^    lzs generate ", short, re.MULTILINE)) == 3
    assert "lzs generate --help lists all options." in short
    assert "--dry-multiplier" in long
    assert "--dry-multiplier" not in short
    assert "--help" in long


@pytest.mark.parametrize("command", MAIN.COMMANDS)
def test_h_is_help_if_there_are_few_options(command: str) -> None:
    short, long = (helped(command, flag) for flag in ("-h", "--help"))
    assert short.startswith(f"Usage: lzs {command} ")
    assert (short == long) == (n_options(long) < 30)
    common = MAIN.lzs.get_command(click.Context(MAIN.lzs), command).common
    assert n_options(short) == len(common) or not common  # each of them is an option


@dataclass(frozen=True, kw_only=True)
class Inner:
    many: tuple[int, ...] = opt("Numbers", "--many", low=2, help="numbers")


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner
    word: Literal["a", "b"] = opt("Words", "-w", "--word", default="a", help="a word")
    file: Path | None = opt("Words", "--file", help="a file")
    is_on: bool = opt("Words", "--on", help="a flag")


seen: list[Any] = []


@click.command()
@click.argument("name")
@takes(Outer)
def command(options: Outer, name: str) -> None:
    seen.append((options, name))


def test_a_command_gets_its_options_as_a_frozen_dataclass() -> None:
    seen.clear()
    for words in (["x"], ["x", "--many", "2", "--many", "3", "-w", "b", "--file", "f", "--on"]):
        assert CliRunner().invoke(command, words, catch_exceptions=False).exit_code == 0
    assert seen == [
        (Outer(inner=Inner(many=()), word="a", file=None, is_on=False), "x"),
        (Outer(inner=Inner(many=(2, 3)), word="b", file=Path("f"), is_on=True), "x"),
    ]
    with pytest.raises(FrozenInstanceError):
        seen[0][0].word = "b"


def test_the_type_of_a_field_is_that_of_its_option() -> None:
    for words, said in (
        (["x", "--many", "1"], "--many must be at least 2, got 1"),
        (["x", "--many", "a"], "--many must be a whole number, got 'a'"),
        (["x", "-w", "c"], "'c' is not one of 'a', 'b'"),
    ):
        done = CliRunner().invoke(command, words)
        assert (done.exit_code, said in done.output) == (2, True), done.output


def test_every_option_is_a_field() -> None:
    """But for those that `console` takes, -h, and hidden ones, which only refuse or do nothing."""
    for name in MAIN.COMMANDS:
        made = MAIN.lzs.get_command(click.Context(MAIN.lzs), name)
        free = {option.name for option in made.params if isinstance(option, click.Option) and not option.expose_value}
        hidden = {option.name for option in made.params if getattr(option, "hidden", False)}
        assert free - hidden <= {"quiet", "verbose", "color", "h"}, name
