"""What tests in Debian's Chromium share; without it, or playwright, they are skipped.

A page redraws when it gets to it: tests `expect` what it shows, or wait for it with `becomes`, and
never read it at once.
"""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from waiting import PATIENCE

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
MILLISECONDS = 1000 * PATIENCE

expect = playwright.expect
expect.set_options(timeout=MILLISECONDS)


@contextmanager
def running_browser():
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, timeout=MILLISECONDS
        )
        yield running
        running.close()


def patient(context):
    """Let everything that a context or page waits for take its time."""
    context.set_default_timeout(MILLISECONDS)
    return context


def becomes(page, expression):
    """Wait until an expression is true on the page."""
    page.wait_for_function(f"() => {expression}")


def drawn(page):
    """Wait until the page as it is now is on the screen, canvas included."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def no_barriers(page):
    """No barrier to access that axe calls serious, frames within the page aside."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {iframes: false}).then((r) => r.violations)")
    serious = [
        (each["id"], [node["target"] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
