"""Damaged and hostile files for every reader: a valid result or a `CausalFormerError`, in time."""

import hashlib
import io
import json
import math
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from sklearn.base import clone

from causalformer import CausalFormer
from causalformer.data import read_series
from causalformer.errors import CausalFormerError, DataWarning
from causalformer.graph import CausalGraph, Edge
from causalformer.knowledge import read_knowledge
from causalformer.results import read_scores
from causalformer.truth import read_truth
from soak.tally import Tally

TINY = {"max_epochs": 2, "n_channels": 2}
TOKENS = (
    *(b"\0", b"\n", b"\r", b'"', b'""', b"'", b",", b";", b"\t", b" ", b"{", b"}", b"[", b"]"),
    *(b"nan", b"inf", b"-1", b"1e999", b"9" * 400, b"null", b"true", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"../../etc/passwd", b"CON", b"=cmd()", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"2024-02-30"),
    *(b"\xff" * 8, b"\x00" * 8, b"\x7f\xff\xff\xff", b"12:60", b"jan 1", b"[" * 2000, b"x" * 5000),
)
VALUES = (None, True, -1, 0, 10**30, 1e308, "", "nan", "../x", "a\0b", [], {}, [[]], {"a": 1})


class TooSlow(BaseException):
    """A reader hangs; no handler of exceptions may swallow this."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise `TooSlow` in what takes longer; only the time of this process counts."""

    def ring(*_: object) -> None:
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- Mutations ------------------------------------------------------------------------------------


@st.composite
def mutated(draw: Any, valid: Sequence[bytes]) -> bytes:
    """Draw a valid content and damage it here and there."""
    content = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 4))):
        first, second = sorted(draw(st.integers(0, len(content))) for _ in range(2))
        kind = draw(st.sampled_from(("flip", "cut", "repeat", "insert", "replace", "end")))
        if kind == "flip":
            flipped = bytes(byte ^ draw(st.integers(0, 255)) for byte in content[first:][:3])
            content = content[:first] + flipped + content[first + len(flipped) :]
        elif kind == "cut":
            content = content[:first] + content[second:]
        elif kind == "repeat":
            content = content[:second] + content[first:second] * 2 + content[second:]
        elif kind == "end":
            content = content[:first]
        else:
            token = draw(st.sampled_from(TOKENS) | st.binary(max_size=8))
            rest = content[first + (len(token) if kind == "replace" else 0) :]
            content = content[:first] + token + rest
    return content


@st.composite
def altered(draw: Any, valid: Any) -> bytes:
    """Draw JSON in which one to three values are exchanged for others, or left out."""
    content = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 3))):
        place = content
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                place = inner
                continue
            if draw(st.integers(0, 3)):
                place[key] = deepcopy(draw(st.sampled_from(VALUES)))
            else:
                del place[key]
            break
    return json.dumps(content).encode()


# --- Readers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """One reader: what to feed it, and how, given a folder of its own."""

    name: str
    contents: st.SearchStrategy[Any]
    read: Callable[[Any, Path], None]


def fuzz(reader: Reader, folder: Path, examples: int, number: int = 0) -> Tally:
    """Feed `examples` contents to a reader; stop at the first that it does not stand."""
    tally = Tally(f"fuzz, {reader.name}")
    folder.mkdir(parents=True, exist_ok=True)

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(reader.contents)
    def stands(content: Any) -> None:
        tally.add(_outcome(reader, content, folder))

    try:
        stands()
    except (Exception, TooSlow) as error:
        notes = "; ".join(getattr(error, "__notes__", []))[:2000]
        tally.failures.append(f"{tally.part}: {type(error).__name__}: {error} ({notes})")
    return tally


def _outcome(reader: Reader, content: Any, folder: Path) -> str:
    with warnings.catch_warnings(), within(20):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataWarning)
        try:
            reader.read(content, folder)
        except CausalFormerError:
            return "refused"
    return "read"


def readers(folder: Path) -> list[Reader]:
    """Give every reader of the package, with valid files made in `folder`."""
    return [
        *_series_readers(folder),
        *_graph_readers(),
        *_knowledge_readers(),
        *_model_readers(folder),
    ]


def _series_readers(folder: Path) -> list[Reader]:
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(12, 2)).round(3), columns=["sun", "rain"]
    )
    dated = frame.assign(date=pd.date_range("2024-01-01", periods=12).astype(str), text="a")
    valid: dict[str, list[bytes]] = {
        ".csv": [
            frame.to_csv(index=False).encode(),
            dated.iloc[:, [2, 0, 1]].to_csv(index=False, sep=";", decimal=",").encode(),
            dated.to_csv(index=False).encode("utf-16"),
            b'"a ""b""","c\nd"\n"1","2"\n\n3,4\n',
            b"0,1,2\n5,6,7\n8,9,10\n",
        ],
        ".tsv": [frame.to_csv(sep="\t").encode(), b"12:00\t1\n12:30\t2\n13:00\t4\n"],
        ".txt": [frame.to_string(index=False).encode(), b"Jan 2024 1 2\nFeb 2024 3 4\n"],
        ".npy": [_saved(np.save, frame.to_numpy()), _saved(np.save, frame.to_records())],
        ".npz": [
            _saved(np.savez, frame.to_numpy()),
            _saved(np.savez_compressed, sun=frame["sun"], rain=frame["rain"]),
        ],
        ".parquet": [_written(frame.to_parquet), _written(dated.set_index("date").to_parquet)],
        ".nc": [_netcdf(folder, frame)],
    }

    def reader(suffix: str) -> Reader:
        def read(content: bytes, folder: Path) -> None:
            path = folder / f"some{suffix}"
            path.write_bytes(content)
            table = read_series(path)
            assert table.values.dtype == np.float64
            assert table.values.shape == (table.n_slots, len(table.names))

        return Reader(suffix, mutated(valid[suffix]), read)

    return [reader(suffix) for suffix in valid]


def _graph_readers() -> list[Reader]:
    graph = CausalGraph(
        ("a", "b", "c"),
        (
            Edge("a", "b", 2, 0.9, p_value=0.001),
            Edge("b", "c", 0, math.inf, oriented=False, may_be_confounded="?"),
        ),
        {"method": "none", "settings": {"window": 8}},
    )

    def read_graph(content: bytes, folder: Path) -> None:
        path = folder / "graph.json"
        path.write_bytes(content)
        loaded = CausalGraph.load(path)
        assert CausalGraph.from_json(loaded.to_json()) == loaded
        for write in (loaded.to_csv, loaded.to_graphml, loaded.to_dot, loaded.to_frame):
            write()

    def read_a_truth(content: bytes, folder: Path) -> None:
        path = folder / "truth.csv"
        path.write_bytes(content)
        read_truth(path)

    def read_the_scores(content: bytes, folder: Path) -> None:
        path = folder / "scores.csv"
        path.write_bytes(content)
        assert read_scores(path, ["a", "b"]).shape == (2, 2)

    text = graph.to_json()
    truths = [b"0,1,2\n1,1,1\n", b"cause,effect,lag\na,b,2\nb,b,1\n", graph.to_csv().encode()]
    return [
        Reader("graph.json", mutated([text.encode()]) | altered(json.loads(text)), read_graph),
        Reader("truth", mutated(truths), read_a_truth),
        Reader("scores.csv", mutated([b"cause,a,b\na,1,0.5\nb,0,2\n"]), read_the_scores),
    ]


def _knowledge_readers() -> list[Reader]:
    statements = {
        "required": ["a -> b @ 2", {"cause": "b", "effect": "c", "lag": 1}],
        "forbidden": ["* -> a"],
        "tiers": [["a"], ["b", "c"]],
    }
    valid = {
        "knowledge.json": json.dumps(statements).encode(),
        "knowledge.yaml": b"required:\n- a -> b @ 2\nforbidden: ['* -> a']\ntiers: [[a], [b, c]]\n",
    }

    def reader(name: str) -> Reader:
        def read(content: bytes, folder: Path) -> None:
            (folder / name).write_bytes(content)
            read_knowledge(folder / name).resolve(("a", "b", "c"), 3)

        return Reader(name, mutated([valid[name]]) | altered(statements), read)

    return [reader(name) for name in valid]


def _model_readers(folder: Path) -> list[Reader]:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    paper = {"window": 3, "d_model": 2, "d_ffn": 2, "n_heads": 1, "max_epochs": 2}
    found = []
    for model in (
        CausalFormer(max_lag=2, settings=TINY),
        CausalFormer("paper-fmri", settings=paper),
    ):
        preset = model.preset
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            whole = clone(model).fit(frame)
            made = whole.save(folder / f"model-{preset}")
            state = folder / f"{preset}.safetensors"
            model.set_params(checkpoint=state).fit(frame)
        found += _readers_of_one_model(made, preset)
        found.append(_checkpoint_reader(state.read_bytes(), whole, frame))
    return found


def _readers_of_one_model(made: Path, preset: str) -> list[Reader]:
    text = (made / "model.json").read_bytes()
    (weights,) = made.glob("weights-*")

    def load(facts: bytes, content: bytes, folder: Path) -> None:
        for old in folder.iterdir():
            old.unlink()
        (folder / "model.json").write_bytes(facts)
        checksum = hashlib.sha256(content).hexdigest()
        (folder / f"weights-{checksum[:16]}.safetensors").write_bytes(content)
        CausalFormer.load(folder)

    def load_facts(facts: bytes, folder: Path) -> None:
        load(facts, weights.read_bytes(), folder)

    def load_weights(content: bytes, folder: Path) -> None:
        facts = json.loads(text) | {"weights_sha256": hashlib.sha256(content).hexdigest()}
        load(json.dumps(facts).encode(), content, folder)

    return [
        Reader(f"model.json, {preset}", mutated([text]) | altered(json.loads(text)), load_facts),
        Reader(f"weights, {preset}", mutated([weights.read_bytes()]), load_weights),
    ]


def _checkpoint_reader(valid: bytes, whole: CausalFormer, frame: pd.DataFrame) -> Reader:
    def resume(content: bytes, folder: Path) -> None:
        path = folder / "checkpoint.safetensors"
        path.write_bytes(content)
        model = clone(whole).set_params(checkpoint=path)
        assert model.fit(frame).graph_ == whole.graph_

    return Reader(f"checkpoint, {whole.preset}", mutated([valid]), resume)


def _saved(save: Callable[..., None], *arrays: Any, **named: Any) -> bytes:
    stream = io.BytesIO()
    save(stream, *arrays, **named)
    return stream.getvalue()


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _netcdf(folder: Path, frame: pd.DataFrame) -> bytes:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "valid.nc"
    frame.rename_axis("time").to_xarray().to_netcdf(path, engine="h5netcdf")
    return path.read_bytes()
