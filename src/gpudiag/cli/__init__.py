"""The command line: arguments and exit codes. Everything heavy is imported by the command that needs it.

Exit codes: 0 done; 1 a finding at or above --fail-on, or a rule with a problem; 2 a wrong argument or an input that
cannot be read; 129, 130, 143 hung up, interrupted, terminated.
"""

from gpudiag.cli import cache, check, comment, completion, diff, explain, next_steps, rules
from gpudiag.cli.recording import capture, redact
from gpudiag.cli.root import main

__all__ = ["main"]

for command in (
    capture.capture_command,
    redact.redact_command,
    check.check,
    comment.comment,
    diff.diff,
    explain.explain,
    next_steps.next_steps,
    next_steps.record,
    rules.rules,
    cache.cache,
    completion.completion,
):
    main.add_command(command)
