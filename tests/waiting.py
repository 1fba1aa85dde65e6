"""Waiting for what happens sooner or later, on a machine that may be busy."""

import time

PATIENCE = 240  # seconds; nothing takes nearly as long


def wait_until(condition, what="it"):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen within {PATIENCE} s")
