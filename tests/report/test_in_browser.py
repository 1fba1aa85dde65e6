"""The report in Debian's Chromium, opened from disk with the network off, clicked through.

`apt-get install chromium` makes these tests run; without it they are skipped.
"""

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from browser import (
    DESKTOP,
    PHONE,
    becomes,
    drawn,
    expect,
    no_barriers,
    patient,
    running_browser,
)
from causalformer.each import EachRecording
from causalformer.graph import CausalGraph, Edge
from graph_examples import DOUBT
from report_examples import (
    doubtful_model,
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
    "doubtful": doubtful_model,
    "large": large_model,
    "paper": paper_model,
    "empty": lambda: made_model(made_table(("a", "b")), []),
}
EACH = EachRecording(
    {
        "anna": CausalGraph(
            NAMES,
            (
                Edge("rain", "river", 2, q_value=0.01, strength=0.4, may_be_confounded=DOUBT),
                Edge("river", "rain", 1),
            ),
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
        context = patient(browser.new_context(offline=True, **(options or DESKTOP)))
        contexts.append(context)
        address = path.as_uri()
        context.route(lambda url: url != address, lambda route: route.abort())
        page = context.new_page()
        page.on("request", lambda r: r.url == address or trouble.append(f"request: {r.url}"))
        page.on("console", lambda m: m.type in ("error", "warning") and trouble.append(m.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.goto(address)
        drawn(page)
        return model, page

    yield open_report
    for context in contexts:
        context.close()
    assert trouble == []


def shown(page):
    return page.locator("#shown")


def rows(page):
    return page.locator("#edge-table tbody tr")


def details(page):
    return page.locator("#details")


def expect_edges(page, n_edges):
    """So many edges in the table, and in the drawing."""
    expect(rows(page)).to_have_count(n_edges)
    becomes(page, f"cy.edges(':visible').length === {n_edges}")


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
    expect(page).to_have_title("Causal graph: data.csv")
    expect(page.locator("#lead")).to_have_text(re.compile(r"^rain drives river after 2 slots;"))
    expect(page.locator("#warnings")).to_have_text(re.compile(r"mind the gap\s*$"))
    expect(shown(page)).to_have_text("5 of 5 edges shown")
    expect_edges(page, 5)
    expect(details(page)).to_contain_text("rain → river")
    expect(page.locator("#caveats")).to_contain_text("not proof of one")
    expect(page.locator("#repeat")).to_have_text(
        re.compile("^from causalformer import CausalFormer")
    )


def test_filters_hide_edges_in_drawing_and_table(opened):
    _, page = opened("small")
    expect_edges(page, 5)
    press(page, "#filter-q", "ArrowLeft")  # below 0.05: loses the edge with q = 0.04
    expect_edges(page, 4)
    expect(shown(page)).to_have_text("4 of 5 edges shown")
    press(page, "#filter-q", "ArrowRight")
    expect_edges(page, 5)
    press(page, "#filter-weight", "ArrowRight", 20)  # strength at least 0.2
    expect_edges(page, 4)
    press(page, "#filter-weight", "Home")
    expect_edges(page, 5)
    press(page, "#filter-lag", "ArrowLeft", 2)
    expect_edges(page, 3)
    press(page, "#filter-lag", "End")
    expect_edges(page, 5)
    page.locator("#filter-self").uncheck()
    expect_edges(page, 4)
    page.locator("#filter-contemporaneous").uncheck()
    expect_edges(page, 3)
    becomes(page, "cy.nodes(':visible').length === 4")
    page.locator("#filter-alone").uncheck()
    becomes(page, "cy.nodes(':visible').length === 3")
    expect(shown(page)).to_contain_text("1 series without a shown edge hidden")


def test_edges_that_may_be_confounded_are_marked_told_and_filtered(opened):
    model, page = opened("doubtful")
    expect_edges(page, 3)
    expect(page.locator("#more")).to_contain_text("may be behind rain → soil, river — soil.")
    expect(page.locator("#legend")).to_contain_text("* may come from a hidden common driver")
    becomes(page, "cy.getElementById('e1').style('label') === '1*'")
    becomes(page, "cy.getElementById('e1').style('line-style') === 'dashed'")
    becomes(page, "cy.getElementById('e0').style('line-style') === 'solid'")
    expect(page.locator("#edge-table tbody tr td:last-child")).to_have_text(
        ["", DOUBT, "<b>both</b> rise"]
    )
    rows(page).nth(1).locator("button").click()
    expect(details(page).locator(".notice")).to_have_text(
        f"This edge may come from a hidden common driver: {DOUBT}"
    )
    rows(page).nth(0).locator("button").click()
    expect(details(page)).to_contain_text("rain → river")
    expect(details(page).locator(".notice")).to_have_count(0)
    exported = saved(page, "#save-csv").decode()
    told = [row["may_be_confounded"] for row in csv.DictReader(io.StringIO(exported, newline=""))]
    assert told == [edge.may_be_confounded for edge in model.graph_]
    page.locator("#filter-confounded").uncheck()
    expect_edges(page, 1)
    assert len(CausalGraph.from_json(saved(page, "#save-json").decode())) == 1


def test_a_link_without_direction_is_neither_cause_nor_effect(opened):
    _, page = opened("doubtful")
    page.locator("#pick").select_option("2")
    expect(details(page)).to_contain_text("Its causes (1)")
    expect(details(page)).to_contain_text("Its effects (0)")
    expect(details(page)).to_contain_text("Contemporaneous links, direction unknown (1)")
    expect(details(page).locator("li").last).to_contain_text("river")
    expect(details(page).locator("li").last).to_contain_text("lag 0*")
    becomes(page, "cy.getElementById('e2').style('target-arrow-shape') === 'none'")


def test_what_was_accounted_for_stands_in_the_section_on_the_data(opened):
    _, page = opened("doubtful")
    expect(page.locator("#data-hint")).to_contain_text(
        "Accounted for: a season of 24 slots in rain, soil."
    )


def test_nothing_is_said_of_doubts_where_there_are_none(opened):
    _, page = opened("small")
    expect(page.locator("#filter-confounded")).to_have_count(0)
    expect(page.locator("#legend")).not_to_contain_text("hidden")
    expect(page.locator("#edge-table thead")).not_to_contain_text("confounded")
    expect(page.locator("#data-hint")).not_to_contain_text("Accounted for")


def test_what_is_hidden_is_out_of_the_picture_before_the_next_frame(opened):
    _, page = opened("small")
    expect_edges(page, 5)
    picture, n_nodes, n_edges = page.evaluate(
        "change({ self: false, instantaneous: false, alone: false }),"
        " [graphAsSvg(), cy.nodes(':visible').length, cy.edges(':visible').length]"
    )
    assert (picture.count("<title>"), n_nodes, n_edges) == (3, 3, 3)


def test_near_misses_can_be_looked_at(opened):
    model, page = opened("small")
    n_near = page.evaluate("facts.near.length")
    assert n_near > 0
    page.locator("#filter-near").check()
    expect_edges(page, len(model.graph_) + n_near)
    page.locator("#edge-table tbody tr.near button").first.click()
    expect(details(page)).to_contain_text("not in the graph")
    page.locator("#filter-near").uncheck()
    expect_edges(page, len(model.graph_))


def test_the_table_sorts_and_opens_evidence_by_keyboard(opened):
    _, page = opened("small")
    lags = page.locator("#edge-table tbody td:nth-child(3)")
    ascending = sorted(lags.all_inner_texts())
    press(page, "#edge-table th:nth-child(3) button", "Enter")
    expect(lags).to_have_text(ascending)
    lag = page.locator("#edge-table th:nth-child(3)")
    expect(lag).to_have_attribute("aria-sort", "ascending")
    press(page, "#edge-table tbody tr:last-child button", "Enter")
    expect(details(page)).to_contain_text("soil → river")
    expect(details(page)).to_contain_text("after 3 slots")
    for number in ("relative gain", "p-value", "q-value", "strength", "p of the terms test"):
        expect(details(page)).to_contain_text(number)
    expect(details(page).locator("figure")).to_have_count(3)


def test_a_click_on_a_node_lists_causes_and_effects(opened):
    _, page = opened("small")
    page.mouse.click(*on_canvas(page, "cy.getElementById('n1').renderedPosition()"))
    expect(details(page)).to_contain_text("Its causes (2)")
    becomes(page, "cy.elements('.faded').length > 0")
    page.locator("#details li button").first.click()
    expect(details(page)).to_contain_text("→ river")
    press(page, "#canvas", "Escape")
    becomes(page, "cy.elements('.faded, .chosen').length === 0")
    page.locator("#pick").select_option("0")
    expect(details(page)).to_contain_text("Its effects (2)")


def test_hover_shows_numbers(opened):
    _, page = opened("small")
    page.mouse.move(*on_canvas(page, "cy.getElementById('e1').renderedMidpoint()"))
    tooltip = page.locator("#tooltip")
    expect(tooltip).to_be_visible()
    expect(tooltip).to_have_text(re.compile(r"^rain → soil\nafter 1 slot\nstrength"))
    page.mouse.move(*on_canvas(page, "cy.getElementById('n3').renderedPosition()"))
    expect(page.get_by_text("0 causes, 0 effects")).to_be_visible()


def test_drag_zoom_and_arrow_keys(opened):
    _, page = opened("small")
    before = page.evaluate("({...cy.getElementById('n0').position()})")
    x, y = on_canvas(page, "cy.getElementById('n0').renderedPosition()")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 60, steps=4)
    page.mouse.up()
    becomes(page, f"cy.getElementById('n0').position().x > {before['x']}")
    becomes(page, f"cy.getElementById('n0').position().y > {before['y']}")
    zoom = page.evaluate("cy.zoom()")
    page.locator("#zoom-in").click()
    becomes(page, f"cy.zoom() > {zoom}")
    pan = page.evaluate("cy.pan().x")
    press(page, "#canvas", "ArrowLeft")
    becomes(page, f"cy.pan().x > {pan}")
    page.locator("#zoom-fit").click()


def saved(page, button):
    with page.expect_download() as waiting:
        page.locator(button).click()
    return Path(waiting.value.path()).read_bytes()


@pytest.mark.parametrize("name", ["small", "doubtful", "hostile", "paper"])
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
    becomes(page, "colour('card') === '#191d24'")
    becomes(page, "cy.elements('.faded').length > 0")


def test_exports_respect_the_filters(opened):
    model, page = opened("small")
    page.locator("#filter-self").uncheck()
    expect_edges(page, len(model.graph_) - 1)
    kept = CausalGraph.from_json(saved(page, "#save-json").decode())
    assert kept.names == model.names_
    assert [edge.kind for edge in kept].count("self") == 0
    assert len(kept) == len(model.graph_) - 1


def test_hostile_names_are_shown_as_text(opened):
    _, page = opened("hostile")
    expect(page.locator("script")).to_have_count(4)
    expect(page.locator("#edge-table bdi").first).to_have_text("<script>alert('x')</script>")
    for i in range(page.evaluate("names.length")):
        page.evaluate(f"chooseNode({i})")
    for i in range(page.evaluate("edges.length")):
        page.evaluate(f"chooseEdge(edges[{i}])")
    page.evaluate("names.forEach((_, i) => lookAtSeries(i))")
    drawn(page)
    expect(page.locator("script")).to_have_count(4)
    assert page.evaluate("document.images.length") == 0


def test_time_explorer(opened):
    model, page = opened("small")
    page.locator("#time-series").select_option("2")
    press(page, "#slot", "Home")
    press(page, "#slot", "ArrowRight", 5)
    slot = page.evaluate("local.slots[5]")
    expect(page.locator("#slot-name")).to_contain_text(f"(slot {slot})")
    expect(page.locator("#slot")).to_have_attribute("aria-valuetext", re.compile("^2024-01-"))
    told = model.explain(slot)
    expected = f"{abs(told.prediction[2]):.2f}"
    expect(page.locator("#explanation p")).to_contain_text(expected)
    shares = page.locator("#explanation .shares .n").all_inner_texts()
    total = sum(float(text.replace("−", "-")) for text in shares)
    assert total == pytest.approx(told.prediction[2], abs=0.05)
    page.locator("#series-table tbody tr:nth-child(4) button").click()
    expect(page.locator("#time-series")).to_have_value("3")


def test_recordings_on_their_own_are_compared_and_looked_at(opened):
    _, page = opened("each")
    expect(page.locator("#to-recordings")).to_be_visible()
    table = page.locator("#recording-table tbody tr")
    expect(table.first.locator("td")).to_have_text(["rain", "river", "2", "2 of 2", "", "yes"])
    expect(table).to_have_count(2)
    refused = page.locator("#refused")
    expect(refused).to_contain_text("cleo gave no graph: 3 rows are too few")
    expect(details(page)).to_contain_text("in recordings\n2 of 2", use_inner_text=True)
    page.locator("#recording").select_option("<b>ben</b>")
    expect(table).to_have_count(1)
    page.locator("#recording").select_option("anna")
    expect(table.locator("td").nth(3)).to_have_text(
        f"lagged, may come from a hidden common driver: {DOUBT}"
    )
    expect(table.locator("td").nth(4)).to_have_text("0.4")
    expect(table.last.locator("td").last).to_have_text("no")
    page.locator("#pick").select_option("0")
    expect(details(page)).not_to_contain_text("rain → river")
    table.locator("button").first.click()
    expect(details(page)).to_contain_text("rain → river")


def test_nothing_is_said_of_recordings_without_their_graphs(opened):
    _, page = opened("small")
    expect(details(page)).to_contain_text("rain → river")
    expect(page.locator("#recordings")).to_be_hidden()
    expect(page.locator("#to-recordings")).to_be_hidden()
    expect(details(page)).not_to_contain_text("in recordings")


def test_a_preset_of_the_paper_hides_what_it_does_not_know(opened):
    _, page = opened("paper")
    heads = page.locator("#edge-table th")
    expect(heads).to_have_text(["cause", "effect", "lag", "kind", "score"])
    expect(page.locator("#filter-q")).to_have_count(0)
    expect(page.locator("#slot-field")).to_be_hidden()
    expect(page.locator("#caveats")).to_contain_text("no probabilities")


def test_a_graph_without_edges_opens(opened):
    _, page = opened("empty")
    expect(page.locator("#lead")).to_have_text("No series was found to drive another one.")
    expect(shown(page)).to_have_text("0 of 0 edges shown")


def test_260_series_can_be_worked_with(opened):
    _, page = opened("large")
    expect(shown(page)).to_have_text(re.compile("^150 of 1000 edges shown · "))
    becomes(page, "cy.edges(':visible').length === 150")
    press(page, "#filter-most", "End")
    expect(shown(page)).to_have_text(re.compile("^1000 of 1000 edges shown"))
    expect(rows(page)).to_have_count(200)
    page.locator("#all-rows").click()
    expect_edges(page, 1000)
    page.locator("#search").fill("cell 17")
    found = page.locator("#series-table tbody tr:visible")
    expect(found).to_have_count(10)
    found.locator("button").last.click()
    expect(page.locator("#time-series")).to_have_value("179")
    page.locator("#pick").select_option("7")
    expect(page.locator("#details h3")).to_contain_text("cell 007")
    assert saved(page, "#save-png").startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["small", "doubtful", "hostile", "large", "paper", "each"])
def test_nothing_is_wider_than_a_phone(opened, name):
    _, page = opened(name, **PHONE)
    becomes(page, "document.documentElement.scrollWidth <= 390")
    expect(page.locator("#controls")).to_be_hidden()
    page.locator("#filters summary").tap()
    expect(page.locator("#controls")).to_be_visible()


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier_to_access(opened, device, scheme):
    _, page = opened("each", color_scheme=scheme, reduced_motion="reduce", **device)
    page.evaluate("byId('filters').open = true; chooseNode(1)")
    expect(details(page)).to_contain_text("Its causes")
    drawn(page)
    no_barriers(page)


def test_nothing_could_leave_the_page(browser, reports):
    page = patient(browser.new_page())
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


def test_no_barrier_where_edges_may_be_confounded(opened):
    _, page = opened("doubtful", reduced_motion="reduce", **DESKTOP)
    page.evaluate("chooseEdge(edges[1])")
    expect(details(page).locator(".notice")).to_be_visible()
    drawn(page)
    no_barriers(page)


def test_every_control_is_reached_by_tab(opened):
    _, page = opened("small")
    wanted = page.evaluate(
        "[...document.querySelectorAll('button, input, select, summary, [tabindex=\"0\"]')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    page.evaluate(
        "window.seen = new Set();"
        "document.addEventListener('focusin', (event) => window.seen.add(event.target))"
    )
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
    becomes(page, f"window.seen.size >= {wanted}")
    reached = set(page.evaluate("[...window.seen].map((each) => each.id)"))
    assert {"canvas", "filter-q", "filter-self", "pick", "save-csv", "slot"} <= reached
