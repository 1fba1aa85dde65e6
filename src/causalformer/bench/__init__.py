"""Comparing methods on folders of data whose graph is known."""

from causalformer.bench.methods import Method, method_for, method_names
from causalformer.bench.runner import BenchPlan, run_bench
from causalformer.bench.tables import bench_markdown, bench_table, summarise

__all__ = [
    "BenchPlan",
    "Method",
    "bench_markdown",
    "bench_table",
    "method_for",
    "method_names",
    "run_bench",
    "summarise",
]
