"""Data whose causal graph is known: generators, benchmark folders and a bundled example."""

from causalformer.datasets.folders import BenchmarkFile, load_folder
from causalformer.datasets.generated import Generated
from causalformer.datasets.generators import GENERATORS, make_dataset
from causalformer.datasets.greenhouse import load_example, make_greenhouse
from causalformer.datasets.lorenz96 import make_lorenz96
from causalformer.datasets.random_system import make_random_system
from causalformer.datasets.structures import make_structure
from causalformer.datasets.var import make_var
from causalformer.datasets.violations import VIOLATIONS, make_slot_system, make_violation

__all__ = [
    "GENERATORS",
    "VIOLATIONS",
    "BenchmarkFile",
    "Generated",
    "load_example",
    "load_folder",
    "make_dataset",
    "make_greenhouse",
    "make_lorenz96",
    "make_random_system",
    "make_slot_system",
    "make_structure",
    "make_var",
    "make_violation",
]
