"""The two ways a user's input can be wrong. Both are one sentence: what was given, what was expected, what to do.

The command line prints that sentence on stderr and exits with `exit_code`; a Python caller catches `InklingError`.
Any other exception is a fault of ours and keeps its traceback.
"""


class InklingError(Exception):
    """The input or its content cannot be used (a file, a row, a run, a machine)."""

    exit_code = 1


class UsageError(InklingError):
    """The request itself makes no sense (an unknown option, a value out of range)."""

    exit_code = 2
