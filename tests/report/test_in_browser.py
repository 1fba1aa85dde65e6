"""The report in Debian's Chromium, opened from disk with the network off, clicked through.

`apt-get install chromium` makes these tests run; without it they are skipped.
"""

import csv
import io
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from browser import AXE, DESKTOP, PHONE, running_browser
from causalformer.each import EachRecording
from causalformer.graph import CausalGraph, Edge
from report_examples import (
    hostile_model,
    large_model,
    made_model,
    made_table,
    paper_model,
    small_model,
)

NAMES = ("rain", "river", "soil", "wind")
MODELS = {
    "small": lambda: small_model(warnings=("mind the gap",)),
    "each": small_model,
    "hostile": hostile_model,
    "large": large_model,
    "paper": paper_model,
    "empty": lambda: made_model(made_table(("a", "b")), []),
}
EACH = EachRecording(
    {
        "anna": CausalGraph(
            NAMES, (Edge("rain", "river", 2, q_value=0.01, strength=0.4), Edge("river", "rain", 1))
        ),
        "<b>ben</b>": CausalGraph(NAMES, (Edge("rain", "river", 2),)),
    },
    {"cleo": "3 rows are too few"},
)


@pytest.fixture(scope="module")
def browser():
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Models and the files of their reports, made once each."""
    folder, made = tmp_path_factory.mktemp("reports"), {}

    def report(name):
        if name not in made:
            model = MODELS[name]()
            each = EACH if name == "each" else None
            made[name] = model, model.report(folder / f"{name}.html", each=each)
        return made[name]

    return report


@pytest.fixture
def opened(browser, reports):
    """Open a report; afterwards nothing was requested and nothing went wrong, or the test fails."""
    contexts, trouble = [], []

    def open_report(name, **options):
        model, path = reports(name)
        context = browser.new_context(offline=True, **(options or DESKTOP))
        context.set_default_timeout(60_000)
        contexts.append(context)
        address = path.as_uri()
        context.route(lambda url: url != address, lambda route: route.abort())
        page = context.new_page()
        page.on("request", lambda r: r.url == address or trouble.append(f"request: {r.url}"))
        page.on("console", lambda m: m.type in ("error", "warning") and trouble.append(m.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.goto(address)
        return model, page

    yield open_report
    for context in contexts:
        context.close()
    assert trouble == []


def shown(page):
    return page.locator("#shown").inner_text()


def rows(page):
    return page.locator("#edge-table tbody tr").count()


def press(page, selector, key, times=1):
    page.locator(selector).focus()
    for _ in range(times):
        page.keyboard.press(key)


def on_canvas(page, expression):
    """Where on the page something of the drawing is."""
    x, y = page.evaluate(f"(() => {{ const p = {expression}; return [p.x, p.y]; }})()")
    box = page.locator("#canvas").bounding_box()
    return box["x"] + x, box["y"] + y


def test_the_page_tells_what_was_found(opened):
    _, page = opened("small")
    assert page.title() == "Causal graph: data.csv"
    assert page.locator("#lead").inner_text().startswith("rain drives river after 2 slots;")
    assert page.locator("#warnings").inner_text().endswith("mind the gap")
    assert shown(page) == "5 of 5 edges shown"
    assert rows(page) == 5
    assert "rain → river" in page.locator("#details").inner_text()
    assert "not proof of one" in page.locator("#caveats").inner_text()
    assert page.locator("#repeat").inner_text().startswith("from causalformer import CausalFormer")


def test_filters_hide_edges_in_drawing_and_table(opened):
    _, page = opened("small")

    def visible():
        return page.evaluate("cy.edges(':visible').length")

    press(page, "#filter-q", "ArrowLeft")  # below 0.05: loses the edge with q = 0.04
    assert (rows(page), visible(), shown(page)) == (4, 4, "4 of 5 edges shown")
    press(page, "#filter-q", "ArrowRight")
    press(page, "#filter-weight", "ArrowRight", 20)  # strength at least 0.2
    assert (rows(page), visible()) == (4, 4)
    press(page, "#filter-weight", "Home")
    press(page, "#filter-lag", "ArrowLeft", 2)
    assert (rows(page), visible()) == (3, 3)
    press(page, "#filter-lag", "End")
    page.locator("#filter-self").uncheck()
    page.locator("#filter-within").uncheck()
    assert (rows(page), visible()) == (3, 3)
    page.locator("#filter-alone").uncheck()
    assert page.evaluate("cy.nodes(':visible').length") == 3
    assert "1 series without a shown edge hidden" in shown(page)


def test_near_misses_can_be_looked_at(opened):
    model, page = opened("small")
    n_near = page.evaluate("facts.near.length")
    assert n_near > 0
    page.locator("#filter-near").check()
    assert rows(page) == len(model.graph_) + n_near
    page.locator("#edge-table tbody tr.near button").first.click()
    assert "not in the graph" in page.locator("#details").inner_text()
    page.locator("#filter-near").uncheck()
    assert rows(page) == len(model.graph_)


def test_the_table_sorts_and_opens_evidence_by_keyboard(opened):
    _, page = opened("small")
    press(page, "#edge-table th:nth-child(3) button", "Enter")
    lags = page.locator("#edge-table tbody td:nth-child(3)").all_inner_texts()
    assert lags == sorted(lags)
    assert page.locator("#edge-table th:nth-child(3)").get_attribute("aria-sort") == "ascending"
    press(page, "#edge-table tbody tr:last-child button", "Enter")
    details = page.locator("#details")
    assert "soil → river" in details.inner_text()
    assert "after 3 slots" in details.inner_text()
    for number in ("held-out gain", "p-value", "q-value", "strength", "p of the sparse test"):
        assert number in details.inner_text()
    assert details.locator("figure").count() == 3


def test_a_click_on_a_node_lists_causes_and_effects(opened):
    _, page = opened("small")
    page.mouse.click(*on_canvas(page, "cy.getElementById('n1').renderedPosition()"))
    assert "Its causes (2)" in page.locator("#details").inner_text()
    assert page.evaluate("cy.elements('.faded').length") > 0
    page.locator("#details li button").first.click()
    assert "→ river" in page.locator("#details").inner_text()
    press(page, "#canvas", "Escape")
    assert page.evaluate("cy.elements('.faded, .chosen').length") == 0
    page.locator("#pick").select_option("0")
    assert "Its effects (2)" in page.locator("#details").inner_text()


def test_hover_shows_numbers(opened):
    _, page = opened("small")
    page.mouse.move(*on_canvas(page, "cy.getElementById('e1').renderedMidpoint()"))
    tooltip = page.locator("#tooltip")
    tooltip.wait_for()
    assert tooltip.inner_text().startswith("rain → soil\nafter 1 slot\nstrength")
    page.mouse.move(*on_canvas(page, "cy.getElementById('n3').renderedPosition()"))
    page.get_by_text("0 causes, 0 effects").wait_for()


def test_drag_zoom_and_arrow_keys(opened):
    _, page = opened("small")
    before = page.evaluate("({...cy.getElementById('n0').position()})")
    x, y = on_canvas(page, "cy.getElementById('n0').renderedPosition()")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 60, steps=4)
    page.mouse.up()
    after = page.evaluate("({...cy.getElementById('n0').position()})")
    assert after["x"] > before["x"]
    assert after["y"] > before["y"]
    zoom = page.evaluate("cy.zoom()")
    page.locator("#zoom-in").click()
    assert page.evaluate("cy.zoom()") > zoom
    pan = page.evaluate("cy.pan().x")
    press(page, "#canvas", "ArrowLeft")
    assert page.evaluate("cy.pan().x") > pan
    page.locator("#zoom-fit").click()


def saved(page, button):
    with page.expect_download() as waiting:
        page.locator(button).click()
    return Path(waiting.value.path()).read_bytes()


@pytest.mark.parametrize("name", ["small", "hostile", "paper"])
def test_exports_hold_what_is_shown(opened, name):
    model, page = opened(name)
    assert saved(page, "#save-png").startswith(b"\x89PNG")
    assert CausalGraph.from_json(saved(page, "#save-json").decode()) == model.graph_
    text = saved(page, "#save-csv").decode()
    exported = list(csv.DictReader(io.StringIO(text, newline="")))
    for row, edge in zip(exported, model.graph_, strict=True):
        assert (row["cause"], row["effect"], int(row["lag"])) == (edge.cause, edge.effect, edge.lag)
        assert float(row["score"]) == edge.score
    assert text.partition("\n")[0] == model.graph_.to_csv().partition("\n")[0]
    drawn = ET.fromstring(saved(page, "#save-svg").decode())
    titles = [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(model.graph_)


def test_pictures_are_light_and_the_screen_stays_dark(opened):
    _, page = opened("small", color_scheme="dark", **DESKTOP)
    page.evaluate("chooseNode(0)")
    picture = saved(page, "#save-svg").decode()
    assert 'fill="#ffffff"' in picture
    assert page.evaluate("colour('card')") == "#191d24"
    assert page.evaluate("cy.elements('.faded').length") > 0


def test_exports_respect_the_filters(opened):
    model, page = opened("small")
    page.locator("#filter-self").uncheck()
    kept = CausalGraph.from_json(saved(page, "#save-json").decode())
    assert kept.names == model.names_
    assert [edge.kind for edge in kept].count("self") == 0
    assert len(kept) == len(model.graph_) - 1


def test_hostile_names_are_shown_as_text(opened):
    _, page = opened("hostile")
    assert page.locator("script").count() == 4
    assert page.locator("#edge-table bdi").first.inner_text() == "<script>alert('x')</script>"
    for i in range(page.evaluate("names.length")):
        page.evaluate(f"chooseNode({i})")
    for i in range(page.evaluate("edges.length")):
        page.evaluate(f"chooseEdge(edges[{i}])")
    page.evaluate("names.forEach((_, i) => lookAtSeries(i))")
    assert page.locator("script").count() == 4
    assert page.evaluate("document.images.length") == 0


def test_time_explorer(opened):
    model, page = opened("small")
    page.locator("#time-series").select_option("2")
    press(page, "#slot", "Home")
    press(page, "#slot", "ArrowRight", 5)
    slot = page.evaluate("local.slots[5]")
    assert f"(slot {slot})" in page.locator("#slot-name").inner_text()
    assert page.locator("#slot").get_attribute("aria-valuetext").startswith("2024-01-")
    told = model.explain(slot)
    expected = f"{abs(told.prediction[2]):.2f}"
    assert expected in page.locator("#explanation p").inner_text()
    shares = page.locator("#explanation .shares .n").all_inner_texts()
    total = sum(float(text.replace("−", "-")) for text in shares)
    assert total == pytest.approx(told.prediction[2], abs=0.05)
    page.locator("#series-table tbody tr:nth-child(4) button").click()
    assert page.locator("#time-series").input_value() == "3"


def test_recordings_on_their_own_are_compared_and_looked_at(opened):
    _, page = opened("each")
    assert page.locator("#to-recordings").is_visible()
    table = page.locator("#recording-table tbody tr")
    first = [cell.strip() for cell in table.first.locator("td").all_inner_texts()]
    assert first == ["rain", "river", "2", "2 of 2", "", "yes"]
    assert table.count() == 2
    assert "cleo gave no graph: 3 rows are too few" in page.locator("#refused").inner_text()
    assert "in recordings\n2 of 2" in page.locator("#details").inner_text()
    page.locator("#recording").select_option("<b>ben</b>")
    assert table.count() == 1
    page.locator("#recording").select_option("anna")
    assert table.locator("td").nth(4).inner_text() == "0.4"
    assert table.last.locator("td").last.inner_text() == "no"
    table.locator("button").first.click()
    assert "rain → river" in page.locator("#details").inner_text()


def test_nothing_is_said_of_recordings_without_their_graphs(opened):
    _, page = opened("small")
    assert not page.locator("#recordings").is_visible()
    assert not page.locator("#to-recordings").is_visible()
    assert "in recordings" not in page.locator("#details").inner_text()


def test_a_preset_of_the_paper_hides_what_it_does_not_know(opened):
    _, page = opened("paper")
    assert page.locator("#filter-q").count() == 0
    assert not page.locator("#slot-field").is_visible()
    heads = page.locator("#edge-table th").all_inner_texts()
    assert [head.strip() for head in heads] == ["cause", "effect", "lag", "kind", "score"]
    assert "no probabilities" in page.locator("#caveats").inner_text()


def test_a_graph_without_edges_opens(opened):
    _, page = opened("empty")
    assert page.locator("#lead").inner_text() == "No series was found to drive another one."
    assert shown(page) == "0 of 0 edges shown"


def test_260_series_can_be_worked_with(opened):
    _, page = opened("large")
    assert shown(page).startswith("150 of 1000 edges shown · ")
    assert page.evaluate("cy.edges(':visible').length") == 150
    press(page, "#filter-most", "End")
    assert shown(page).startswith("1000 of 1000 edges shown")
    assert rows(page) == 200
    page.locator("#all-rows").click()
    assert rows(page) == 1000
    page.locator("#search").fill("cell 17")
    assert page.locator("#series-table tbody tr:visible").count() == 10
    page.locator("#series-table tbody tr:visible button").last.click()
    assert page.locator("#time-series").input_value() == "179"
    page.locator("#pick").select_option("7")
    assert "cell 007" in page.locator("#details h3").inner_text()
    assert saved(page, "#save-png").startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["small", "hostile", "large", "paper", "each"])
def test_nothing_is_wider_than_a_phone(opened, name):
    _, page = opened(name, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not page.locator("#controls").is_visible()
    page.locator("#filters summary").tap()
    assert page.locator("#controls").is_visible()


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier_to_access(opened, device, scheme):
    _, page = opened("each", color_scheme=scheme, reduced_motion="reduce", **device)
    page.evaluate("byId('filters').open = true; chooseNode(1)")
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document).then((result) => result.violations)")
    serious = [
        (each["id"], [node["target"] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_nothing_could_leave_the_page(browser, reports):
    page = browser.new_page()
    page.goto(reports("small")[1].as_uri())
    for attempt in ("fetch('https://example.org')", "import('https://example.org/x.js')"):
        refused = page.evaluate(f"{attempt}.then(() => 'sent', () => 'refused')")
        assert refused == "refused"
    page.evaluate(
        "window.blocked = []; document.addEventListener('securitypolicyviolation',"
        " (event) => window.blocked.push(event.effectiveDirective));"
        "const image = new Image(); image.src = 'https://example.org/x.png';"
        "const code = document.createElement('script'); code.textContent = 'window.ran = 1';"
        "document.body.append(code);"
    )
    page.wait_for_function("window.blocked.length === 2")
    assert sorted(page.evaluate("window.blocked")) == ["img-src", "script-src-elem"]
    assert page.evaluate("window.ran") is None
    page.close()


def test_every_control_is_reached_by_tab(opened):
    _, page = opened("small")
    wanted = page.evaluate(
        "[...document.querySelectorAll('button, input, select, summary, [tabindex=\"0\"]')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    page.evaluate("window.seen = new Set()")
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        page.evaluate("window.seen.add(document.activeElement) && null")
    reached = set(page.evaluate("[...window.seen].map((each) => each.id)"))
    assert {"canvas", "filter-q", "filter-self", "pick", "save-csv", "slot"} <= reached
    assert page.evaluate("window.seen.size") >= wanted
