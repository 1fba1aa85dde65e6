"""What a figure was measured with: versions and processor, but nothing that names a machine."""

import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from causalformer._version import __version__
from causalformer.files import write_text

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "joblib")


def describe_environment(command: Sequence[str] | None = None, **facts: object) -> dict[str, Any]:
    """Collect what somebody else needs to know to repeat a measurement.

    Parameters
    ----------
    command : sequence of str, optional
        The command line; by default that of this process.
    **facts
        Anything else that JSON can hold, such as the seeds.

    Returns
    -------
    dict
        Command, date (UTC), versions, processor and number of cores, and the given facts.

    Examples
    --------
    >>> described = describe_environment(["causalformer", "bench", "fork"], seeds=[0])
    >>> described["command"], described["seeds"]
    ('causalformer bench fork', [0])
    """
    words = ["causalformer", *sys.argv[1:]] if command is None else list(command)
    return {
        "command": " ".join(words),
        **facts,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "causalformer": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "packages": _package_versions(),
    }


def write_environment(
    path: str | Path, command: Sequence[str] | None = None, **facts: object
) -> Path:
    """Write `describe_environment` as a JSON file."""
    text = json.dumps(describe_environment(command, **facts), indent=2, ensure_ascii=False)
    return write_text(path, text + "\n")


def processor_name() -> str:
    """Return the model of the processor as far as the system tells it."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        facts = ""
    found = re.search(r"^model name\s*:\s*(.+)$", facts, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or "unknown"


def _package_versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # pragma: no cover - all are dependencies
            versions[name] = "unknown"
    return versions
