"""The result as one page for the browser that needs nothing else: no server, no network."""

from causalformer.report.facts import collect_facts
from causalformer.report.page import build_page, write_report

__all__ = ["build_page", "collect_facts", "write_report"]
