"""`causalformer discover` in processes of their own that start quickly and may be killed."""

import multiprocessing
import os
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

METHODS = {
    "default": ["--set", "max_epochs=40", "--set", "n_channels=8"],
    "paper-fmri": [
        *("--preset", "paper-fmri", "--set", "max_epochs=20", "--set", "patience=100"),
        *("--set", "window=8", "--set", "d_model=16", "--set", "d_ffn=32"),
    ],
}
IDENTICAL = ("graph.json", "edges.csv", "graph.graphml", "graph.dot", "graph.png", "scores.csv")
RESULTS = {*IDENTICAL, "run.json", "report.html", "model"}

_context = multiprocessing.get_context("forkserver")
# everything that a run would import, so that it takes its time over its work
_context.set_forkserver_preload(
    [
        *("causalformer.cli.discover", "causalformer.estimator", "causalformer.progress"),
        *("causalformer.plot.network", "matplotlib.figure", "matplotlib.backends.backend_agg"),
        *("networkx", "pyarrow.csv", "pandas", "safetensors.torch", "torch._dynamo"),
    ]
)


@dataclass(frozen=True)
class Run:
    """A command line at work in a process of its own."""

    process: BaseProcess
    output: Connection

    def finished(self) -> tuple[int | None, str]:
        """Wait for its end; give its exit code and what it has printed."""
        self.process.join()
        return self.process.exitcode, os.read(self.output.fileno(), 1 << 16).decode()

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self.process.kill()
        self.process.join()


def start(words: list[object], *, as_nobody: bool = False) -> Run:
    """Start the command line, without the rights of root if asked for."""
    output, ours = _context.Pipe(duplex=False)
    process = _context.Process(target=_run, args=([str(word) for word in words], ours, as_nobody))
    process.start()
    ours.close()
    return Run(process, output)


def _run(words: list[str], output: Connection, as_nobody: bool) -> None:
    import torch

    from causalformer.cli import main

    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    torch.set_num_threads(1)
    if as_nobody and os.geteuid() == 0:
        os.setuid(65534)
    sys.argv = ["causalformer", *words]
    main()


def discover(data: Path, out: Path, method: str, *more: object) -> list[object]:
    """Give the words of one discovery."""
    return ["discover", data, "--out", out, "--save-model", *METHODS[method], *more]


def make_data(folder: Path) -> Path:
    """Write a file of three series."""
    from causalformer.datasets import make_structure

    return make_structure("fork", 300, random_state=0).save(folder / "data")


def contents(folder: Path) -> dict[str, bytes]:
    """Give every file of a folder, by its name in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
