"""What the tests of the app share: small files, quick and endless settings, the app at work."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager

from causalformer.datasets import make_structure

QUICK = {"set": {"max_epochs": "2", "n_channels": "4"}, "max_lag": 2}
ENDLESS = {"set": {"max_epochs": "100000", "n_channels": "4"}, "max_lag": 2}


def small_csv():
    """Three series of 80 slots with dates, as a file's content."""
    series = make_structure("fork", 80, random_state=0).series
    lines = [",".join(["day", *series.names])]
    for i, row in enumerate(series.values):
        lines.append(",".join([f"2024-{1 + i // 28:02}-{1 + i % 28:02}", *map(repr, row.tolist())]))
    return "\n".join(lines).encode()


@contextmanager
def running_app(workspace):
    """Start the app as a user does; give the process and the address that it prints."""
    command = [sys.executable, "-m", "causalformer", "app", "--no-browser"]
    process = subprocess.Popen(
        [*command, "--workspace", str(workspace), "--max-upload", "1"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        yield process, address
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
