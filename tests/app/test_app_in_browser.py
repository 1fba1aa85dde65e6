"""The app in Debian's Chromium, clicked through as a user would.

`apt-get install chromium` makes these tests run; without it they are skipped.
"""

import re
import zipfile

import pytest

pytest.importorskip("fastapi", reason="the extra `app` is not installed")

from app_examples import running_app, small_csv
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
from causalformer.graph import CausalGraph

QUICK = "max_epochs = 2\nn_channels = 4"
ENDLESS = "max_epochs = 100000\nn_channels = 4"
HOSTILE_FILE = "<img src=x onerror=alert(1)>.csv"
HOSTILE = ("<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "“a” & 'b'")


@pytest.fixture(scope="module")
def browser():
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with running_app(tmp_path_factory.mktemp("runs")) as (_, address):
        yield address


@pytest.fixture
def opened(browser, address):
    """Open the app; afterwards nothing came from elsewhere or went wrong, or the test fails."""
    contexts, trouble = [], []
    home = address.partition("?")[0]

    def open_app(**options):
        context = patient(browser.new_context(**(options or DESKTOP)))
        contexts.append(context)
        page = context.new_page()
        own = (home, "blob:null/", "data:")
        page.on("request", lambda r: r.url.startswith(own) or trouble.append(f"request: {r.url}"))
        page.on("console", lambda m: m.type in ("error", "warning") and trouble.append(m.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.goto(address)
        page.locator(".drop").wait_for()
        return page

    yield open_app
    for context in contexts:
        context.close()
    assert trouble == []


def upload(page, content=None, name="data.csv"):
    file = {"name": name, "mimeType": "text/csv", "buffer": content or small_csv()}
    page.locator("#file").set_input_files(file)
    page.locator("#first-rows").wait_for()


def start(page, settings=QUICK, lags="2"):
    page.locator("#set-max_lag").fill(lags)
    if not page.locator("#set-set").is_visible():
        page.locator("#advanced summary").click()
    page.locator("#set-set").fill(settings)
    page.locator("#start").click()


def report(page):
    """The report of the run on the screen, once it is done."""
    page.locator("#report").wait_for()
    frame = page.frame_locator("#report")
    frame.locator("#edge-table tbody tr").first.wait_for()
    return frame


def training(page):
    page.locator("#stage", has_text=re.compile(r"Training, epoch \d+")).wait_for()


def to_runs(page, latest):
    """Go to the list of runs, and wait until it tells the state of the latest one."""
    page.locator("#to-runs").click()
    expect(page.locator("#runs li").first.locator(".state")).to_have_text(latest)


@pytest.fixture(scope="module")
def finished(browser, address):
    """Where a run that is done is shown."""
    page = patient(browser.new_page())
    page.goto(address)
    upload(page)
    start(page)
    report(page)
    place = page.url
    page.close()
    return place


def test_from_the_file_to_the_graph_and_its_exports(opened, tmp_path):
    page = opened()
    expect(page).not_to_have_url(re.compile("token"))
    upload(page)
    expect(page.locator("#facts-list")).to_have_text(
        re.compile(r"^3\s+series\s+80\s+time slots\s+day\s+time, 2024-01-01"), use_inner_text=True
    )
    expect(page.locator("#first-rows th.time")).to_have_text(re.compile("^day"))
    start(page)
    shown = report(page)
    edges = shown.locator("#edge-table tbody tr")
    every, selves = edges.count(), edges.filter(has_text=re.compile("self")).count()
    assert selves > 0
    expect(shown.locator("#shown")).to_have_text(f"{every} of {every} edges shown")
    shown.locator("#filter-self").uncheck()
    left = every - selves
    expect(edges).to_have_count(left)
    with page.expect_download() as waiting:
        shown.locator("#save-json").click()
    assert len(CausalGraph.load(saved(waiting, tmp_path, "filtered.json"))) == left
    page.locator("#downloads summary").click()
    with page.expect_download() as waiting:
        page.locator("#downloads a", has_text="graph.json").click()
    assert len(CausalGraph.load(saved(waiting, tmp_path, "graph.json"))) == every
    with page.expect_download() as waiting:
        page.locator("#all").click()
    names = zipfile.ZipFile(saved(waiting, tmp_path, "all.zip")).namelist()
    assert {"data.csv", "report.html", "edges.csv"} <= set(names)


def saved(waiting, folder, name):
    waiting.value.save_as(folder / name)
    return folder / name


def test_other_settings_and_two_runs_side_by_side(opened):
    page = opened()
    upload(page)
    start(page)
    report(page)
    page.locator("#again").click()
    page.locator("#first-rows").wait_for()
    expect(page.locator("#set-max_lag")).to_have_value("2")
    page.locator("#set-forbid").fill("x0 -> x1")
    start(page, lags="1")
    report(page)
    to_runs(page, "done")
    boxes = page.locator("#runs input:enabled")
    boxes.nth(0).check()
    expect(page.locator("#compare")).to_be_disabled()
    boxes.nth(1).check()
    page.route("**/api/compare*", without_doubts)
    page.locator("#compare").click()
    expect(page.locator("#counts")).to_have_text(
        re.compile(r"^In both: \d+ · Only in A: \d+ · Only in B: \d+")
    )
    expect(page.locator("#compared tbody")).to_contain_text("Only in A")
    expect(page.locator("#marks")).to_have_count(0)
    page.route("**/api/compare*", with_doubts)
    page.reload()
    expect(page.locator("#marks")).to_have_text(
        re.compile(r"^\? direction unknown · \* may come from a hidden common driver")
    )
    expect(page.locator("#compared tbody tr").first.locator("td").nth(4)).to_have_text("0?*")
    no_barriers(page)


def without_doubts(route):
    """Pass on a comparison, all of its edges beyond question."""
    content = route.fetch().json()
    for side in (edge[graph] for edge in content["edges"] for graph in "ab" if edge[graph]):
        side.update({"oriented": True, "may_be_confounded": ""})
    route.fulfill(json=content)


def with_doubts(route):
    """Pass on a comparison, its first edge changed into a doubtful one."""
    content = route.fetch().json()
    unsure = {"lag": 0, "oriented": False, "may_be_confounded": "wind precedes both"}
    content["edges"][0]["a"].update(unsure)
    route.fulfill(json=content)


def test_a_reload_during_a_run_loses_nothing_and_it_can_be_cancelled(opened):
    page = opened()
    upload(page)
    start(page, ENDLESS)
    training(page)
    before = epoch(page)
    page.reload()
    training(page)
    assert epoch(page) >= before
    expect(page.locator("#curve polyline")).to_be_visible()
    no_barriers(page)
    to_runs(page, "running")
    page.locator("#runs li a").first.click()
    page.locator("#cancel").click()
    page.get_by_text("Cancelled. What was trained is kept").wait_for()
    page.locator("#resume").click()
    training(page)
    page.locator("#cancel").click()
    page.locator("#resume").wait_for()
    to_runs(page, "cancelled")
    n_runs = page.locator("#runs li").count()
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("#runs li button").first.click()
    expect(page.locator("#runs li")).to_have_count(n_runs - 1)


def epoch(page):
    return int(re.search(r"epoch (\d+)", page.locator("#stage").inner_text())[1])


def test_progress_leaves_the_rest_of_the_list_in_place(opened):
    """Else a click would be lost if the run went on between its press and its release."""
    page = opened()
    upload(page)
    start(page, ENDLESS)
    training(page)
    to_runs(page, "running")
    page.evaluate("window.linkThen = document.querySelector('#runs li a'); linkThen.focus()")
    for _ in range(2):
        page.evaluate("window.barThen = document.querySelector('#runs li progress')")
        becomes(page, "!window.barThen.isConnected")
    expect(page.locator("#runs li progress")).to_have_count(1)
    assert page.evaluate("document.activeElement === window.linkThen")
    page.keyboard.press("Enter")
    page.locator("#cancel").click()
    page.locator("#resume").wait_for()


def test_many_tabs_of_one_browser_all_follow_a_run(opened):
    page = opened()
    upload(page)
    start(page, ENDLESS)
    training(page)
    tabs = [page.context.new_page() for _ in range(8)]  # a browser has six connections to a server
    for tab in tabs:
        tab.goto(page.url)
        training(tab)
    page.locator("#cancel").click()
    for tab in tabs:
        tab.get_by_text("Cancelled. What was trained is kept").wait_for()


def test_a_page_whose_server_is_gone_says_so(browser, tmp_path):
    with running_app(tmp_path / "runs") as (server, address):
        page = patient(browser.new_page())
        page.goto(address)
        page.locator(".drop").wait_for()
        expect(page.locator("#connection")).to_have_text("")
        server.kill()
        page.get_by_text("No connection. If the app was restarted").wait_for()
        page.close()


def test_hostile_names_are_shown_as_text(opened):
    page = opened()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message()))
    names = ",".join(f'"{name}"' for name in HOSTILE).encode()
    content = small_csv().partition(b"\n")[2]
    upload(page, b"day," + names + b"\n" + content, HOSTILE_FILE)
    expect(page.locator("h1")).to_have_text(HOSTILE_FILE)
    expect(page.locator("#first-rows th:not(.time)")).to_have_text(list(HOSTILE))
    start(page)
    shown = report(page)
    expect(shown.locator("#title")).to_have_text(HOSTILE_FILE)
    assert shown.locator("#edge-table bdi").first.inner_text() in HOSTILE
    to_runs(page, "done")
    expect(page.locator("#runs li a").first).to_have_text(HOSTILE_FILE)
    expect(page.locator("main img, main script")).to_have_count(0)


def test_bad_files_and_bad_settings_are_explained(opened):
    page = opened()
    page.locator("#file").set_input_files(
        {"name": "big.csv", "mimeType": "text/csv", "buffer": b"1" * 1_000_001}
    )
    page.get_by_text("“big.csv” is larger than 1 MB").wait_for()
    rows = "".join(f"{who},{i * 7 % 11},{i * 5 % 13}\n" for who in "ab" for i in range(40))
    upload(page, f"who,x,y\n{rows}".encode())
    page.locator("#preview .error", has_text="column 'who' holds text").wait_for()
    page.get_by_role("button", name="Use who").click()
    page.locator("#facts-list", has_text="recordings").wait_for()
    page.locator("#advanced summary").click()
    page.locator("#set-forbid").fill("nobody -> x")
    start(page)
    page.locator("#failure", has_text="nobody").wait_for()
    expect(page.locator("#set-group")).to_have_value("who")
    no_barriers(page)


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier_and_nothing_wider_than_the_screen(opened, finished, device, scheme):
    page = opened(color_scheme=scheme, reduced_motion="reduce", **device)

    def expect_room():
        becomes(page, f"document.documentElement.scrollWidth <= {device['viewport']['width']}")
        drawn(page)
        no_barriers(page)

    expect_room()
    upload(page)
    page.locator("#advanced summary").click()
    expect(page.locator("#set-set")).to_be_visible()
    expect_room()
    page.goto(finished)
    report(page)
    expect_room()


def test_the_app_works_by_keyboard(opened):
    page = opened()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.locator("#example").focus()
    page.keyboard.press("Enter")
    page.locator("#first-rows").wait_for()
    expect(page.locator("h1")).to_be_focused()
    page.evaluate(
        "window.reached = new Set();"
        "document.addEventListener('focusin', (event) => window.reached.add(event.target.id))"
    )
    for _ in range(14):
        page.keyboard.press("Tab")
    for name in ("set-max_lag", "set-alpha", "set-group", "start"):
        becomes(page, f"window.reached.has('{name}')")
