"""`gpudiag completion`, and what it offers where names alone do not tell: captures, codes of rules."""

from __future__ import annotations

import os
import re

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from gpudiag.cli.sections import FAILED, Command

HOW_TO = {
    "bash": """Add to ~/.bashrc:  eval "$(gpudiag completion bash)\"""",
    "zsh": """Add to ~/.zshrc, below compinit:  eval "$(gpudiag completion zsh)\"""",
    "fish": "Add to ~/.config/fish/config.fish:  gpudiag completion fish | source",
}
CAPTURES = (".nsys-rep", ".qdrep", ".ncu-rep", ".sqlite", ".csv", ".pstats", ".json", ".gz", ".xz", ".zst")


@click.command(cls=Command, sections={"To set it up": HOW_TO.items(), "Exit codes": (("0", "done"), FAILED)})
@click.argument("shell", type=click.Choice(list(HOW_TO)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that makes your shell complete what you type.

    Commands, options, captures and the codes of rules are completed.
    """
    program = "gpudiag"  # also where it was started as `python -m gpudiag`: the script completes the command
    writer = get_completion_class(shell)
    assert writer is not None
    # Bash's own `source` starts a shell to ask for its version, and warns where there is none; 4.4 is of 2016.
    script = ShellComplete.source(writer(ctx.find_root().command, {}, program, f"_{program.upper()}_COMPLETE"))
    lines = script.strip().splitlines()
    lines.insert(lines[0].startswith("#compdef"), f"# {HOW_TO[shell]}")  # zsh wants its `#compdef` first
    from gpudiag.cli.arguments import deliver, ended

    deliver(ended("\n".join(lines)))


def captures(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The captures that the word may become; all files, by the shell's own means, where it may lead into a folder."""
    by_shell: list[CompletionItem[str]] = [CompletionItem(incomplete, type="file")]
    folder, start = os.path.split(incomplete)
    try:
        with os.scandir(folder or ".") as entries:
            near = [e for e in entries if e.name.startswith(start) and (start or not e.name.startswith("."))]
            folders = any(entry.is_dir() for entry in near)
    except OSError:
        return by_shell
    found = [os.path.join(folder, entry.name) for entry in near if entry.name.lower().endswith(CAPTURES)]
    # What a shell would have to quote it completes best by itself.
    plain = all(re.fullmatch(r"[\w./+@%=-]+", name, re.ASCII) for name in found)
    return [CompletionItem(name) for name in sorted(found)] if found and plain and not folders else by_shell


def rule_codes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Codes of rules, or their names once the word is in lower case."""
    from gpudiag.errors import GpudiagError
    from gpudiag.library import load as library

    try:
        known = library.load(ctx.params.get("rule_dirs") or ()).rules
    except GpudiagError:
        return []  # the command itself will say it
    named = {(rule.id if incomplete.islower() else rule.code): rule.title for rule in known}
    return [CompletionItem(name, help=named[name]) for name in sorted(named) if name.startswith(incomplete)]
