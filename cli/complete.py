"""`lzs completion` prints a shell's completion script. `lzs help` prints the help of a command."""

import click

from .help import GroupedCommand

SHELLS = ("bash", "zsh", "fish")

_COMPLETION_EPILOG = """\b
To complete in every new shell, add this line to the start-up file of yours:
  bash  ~/.bashrc                   eval "$(lzs completion bash)"
  zsh   ~/.zshrc, after compinit    eval "$(lzs completion zsh)"
  fish  ~/.config/fish/config.fish  lzs completion fish | source"""


@click.command(cls=GroupedCommand, epilog=_COMPLETION_EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script for SHELL (bash, zsh or fish) that completes lzs commands, options and file names."""
    from click.shell_completion import get_completion_class

    from .main import lzs

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(lzs, {}, "lzs", "_LZS_COMPLETE").source(), nl=False)


def _names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from .main import COMMANDS

    return [name for name in COMMANDS if name.startswith(incomplete)]


@click.command("help", cls=GroupedCommand)
@click.argument("command", nargs=-1, shell_complete=_names)
@click.pass_context
def help_command(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Show the help of COMMAND, like `lzs COMMAND --help`. Without COMMAND, show the help of lzs."""
    group = ctx.find_root()
    if not command:
        click.echo(group.get_help())
        return
    assert isinstance(group.command, click.Group)
    name, found, rest = group.command.resolve_command(group, list(command))
    if found is None or rest:
        raise click.UsageError(f"there is no command {' '.join(command)!r}")
    click.echo(click.Context(found, info_name=name, parent=group).get_help())
