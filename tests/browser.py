"""What tests in Debian's Chromium share; without it, or playwright, they are skipped."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("chromium is not installed (apt-get install chromium)", allow_module_level=True)

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
AXE = (Path(__file__).parent / "report" / "vendor" / "axe.min.js").read_text(encoding="utf-8")
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@contextmanager
def running_browser():
    with playwright.sync_playwright() as started:
        # generous: the machine may be busy
        running = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=120_000)
        yield running
        running.close()
