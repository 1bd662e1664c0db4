"""Help that tells more than options: what a FILE may be, formats, exit codes, examples, in sections of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

Terms = Iterable[tuple[str, str]]
"""Pairs of a term and its meaning; for examples, of a command and its purpose (empty: that of the one above)."""

SENTENCE = 200
"""Most characters of what a command is for in a list of commands; it is wrapped there, so none is cut short."""

FAILED = ("2", "a wrong argument, or an input that cannot be read: one sentence on stderr, nothing on stdout")


class _Summary(click.Command):
    """A command whose help ends in sections: heading → terms and their meaning."""

    def __init__(
        self, *args: Any, sections: Mapping[str, Terms] | None = None, examples: Terms = (), **rest: Any
    ) -> None:
        super().__init__(*args, **rest)
        self.sections = sections or {}
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        for heading, terms in self.sections.items():
            write(formatter, heading, terms)
        if self.examples:
            # Never wrapped, and what it is for as a comment above: a line can be copied as it stands.
            with formatter.section("Examples"):
                for command, purpose in self.examples:
                    indent = " " * formatter.current_indent
                    formatter.write(f"{indent}# {purpose}\n" if purpose else "")
                    formatter.write(f"{indent}{command}\n")


class Command(_Summary):
    """A command with sections and examples."""


class Group(_Summary, click.Group):
    """A group that lists its commands under headings.

    `order`: heading → names of commands. Names that no command has are passed over; commands that none names come last.
    """

    command_class = Command

    def __init__(self, *args: Any, order: Mapping[str, Iterable[str]] | None = None, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.order = {heading: tuple(names) for heading, names in (order or {}).items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        named = [name for names in self.order.values() for name in names if name in self.commands]
        return named + [name for name in self.commands if name not in named]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = {name: self.commands[name] for name in self.list_commands(ctx) if not self.commands[name].hidden}
        widest = max(map(len, shown), default=0)
        named = {name for names in self.order.values() for name in names}
        left = tuple(name for name in shown if name not in named)
        for heading, names in {**self.order, "Other commands" if self.order else "Commands": left}.items():
            terms = ((name.ljust(widest), shown[name].get_short_help_str(SENTENCE)) for name in names if name in shown)
            write(formatter, heading, terms)


def write(formatter: click.HelpFormatter, heading: str, terms: Terms) -> None:
    """A section of the help, unless it is empty."""
    if rows := list(terms):
        with formatter.section(heading):
            formatter.write_dl(rows)
