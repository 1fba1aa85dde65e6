"""The page as a file: harmless whatever the names, whole, licensed, and nothing from elsewhere."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from causalformer import CausalFormer
from causalformer.datasets import make_var
from causalformer.errors import DataError, OutputError
from causalformer.graph import CausalGraph
from causalformer.report import build_page, collect_facts
from causalformer.report.page import embedded_json
from graph_examples import HOSTILE, ring
from report_examples import hostile_model, small_model

VENDOR = files("causalformer.report") / "assets" / "vendor"


class Scripts(HTMLParser):
    """Collects the scripts and all addresses of a page as a browser would see them."""

    def __init__(self):
        super().__init__()
        self.scripts, self.addresses, self.policy = [], [], ""
        self.inside = None

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.addresses += [known[name] for name in ("src", "href") if name in known]
        if known.get("http-equiv") == "Content-Security-Policy":
            self.policy = known["content"]
        if tag == "script":
            self.inside = known.get("type", "code")
            self.scripts.append([self.inside, ""])

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1][1] += data

    def handle_endtag(self, tag):
        if tag == "script":
            self.inside = None


def read(page):
    parser = Scripts()
    parser.feed(page)
    return parser


def test_hostile_names_stay_data():
    model = hostile_model()
    page = read(build_page(collect_facts(model, model._table)))
    kinds = [kind for kind, _ in page.scripts]
    assert kinds == ["application/json", "code", "code", "code"]
    facts = json.loads(page.scripts[0][1])
    assert tuple(facts["graph"]["names"]) == model.names_
    assert CausalGraph.from_json(json.dumps(facts["graph"])) == model.graph_


@pytest.mark.parametrize("text", ["</script>", "<!--", "&lt;", "\u2028", "\u2029", "]]>"])
def test_no_text_can_end_the_block_of_data(text):
    written = embedded_json({text: [text]})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {text: [text]}


def test_only_the_scripts_of_the_page_may_run():
    page = read(build_page({"title": "x"}))
    allowed = set(re.findall(r"'sha256-([^']+)'", page.policy))
    for kind, script in page.scripts:
        if kind == "code":
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert digest in allowed
    assert page.policy.startswith("default-src 'none';")
    assert "unsafe-inline" not in page.policy.partition("style-src")[0]


def test_nothing_is_loaded_from_elsewhere():
    page = read(build_page({"title": "x"}))
    assert all(address.startswith("#") for address in page.addresses)


def test_the_licences_of_the_libraries_go_with_them():
    page = build_page({"title": "x"})
    for library in ("cytoscape", "uPlot"):
        assert (VENDOR / f"{library}.LICENSE.txt").read_text(encoding="utf-8") in page
    versions = (VENDOR / "README.md").read_text(encoding="utf-8")
    (version,) = re.findall(r'\.version="([\d.]+)"', (VENDOR / "cytoscape.min.js").read_text())
    assert version in versions
    assert re.search(r"uPlot \(v([\d.]+)\)", page)[1] in versions


def test_own_scripts_never_set_html():
    own = [p for p in (files("causalformer.report") / "assets").iterdir() if p.name.endswith(".js")]
    assert len(own) > 4
    for script in own:
        text = script.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_a_model_writes_its_report(tmp_path):
    model = small_model()
    path = model.report(tmp_path / "new" / "report.html")
    first = path.read_bytes()
    assert model.report(path).read_bytes() == first


def test_a_loaded_model_needs_the_series(tmp_path):
    series = make_var(3, 120, random_state=0).series
    settings = {"max_epochs": 2, "n_channels": 2}
    model = CausalFormer(max_lag=2, settings=settings).fit(series)
    loaded = CausalFormer.load(model.save(tmp_path / "m"))
    with pytest.raises(DataError, match=r"give them as report\(path, X\)"):
        loaded.report(tmp_path / "a.html")
    page = loaded.report(tmp_path / "b.html", series).read_text(encoding="utf-8")
    assert read(page).scripts[0][1].startswith('{"title":')


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        small_model().report(tmp_path / "file" / "report.html")


def test_slots_without_enough_past_are_not_explained():
    model = small_model()
    with pytest.raises(DataError, match="slot 2 cannot be explained"):
        model.explain_many([5, 2])
    assert [told.slot for told in model.explain_many([9, 5])] == [9, 5]


def test_notebooks_show_escaped_tables():
    graph = ring(HOSTILE)
    shown = graph._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert f"{len(HOSTILE)} series, {len(HOSTILE)} edges" in shown
    assert CausalGraph(("a", "b"))._repr_html_() == "<p>2 series, 0 edges</p>"


def test_notebooks_show_what_a_model_found():
    model = small_model()
    shown = model._repr_mimebundle_()["text/html"]
    assert "CausalFormer(" in shown
    assert "rain → river" in shown
    assert "sk-" in CausalFormer()._repr_mimebundle_()["text/html"]
