"""The command line: reads options, calls the library, prints; no logic of its own.

Exit codes: 0 success, 1 a fault of the program, 2 something that the user can mend, 130 stopped by
Ctrl-C. Results go to the standard output; progress, notes, warnings and errors do not.

torch, pandas and whatever needs them are imported inside the commands: help must come at once.
"""

from causalformer.cli.program import app, main

__all__ = ["app", "main"]
