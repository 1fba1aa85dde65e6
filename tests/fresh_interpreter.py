"""What an import loads can only be seen in an interpreter that has loaded nothing yet."""

import subprocess
import sys


def loaded_by(code: str) -> set[str]:
    """Return the names of all modules that a new interpreter has loaded after `code`."""
    code = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
