"""The site in Chromium, on a desktop and a phone. SITE_SCREENSHOTS names a folder for pictures."""

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Request, Response, sync_playwright
from playwright.sync_api import Page as Tab

from site_pages import Page, sidebar

pytestmark = pytest.mark.site

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
SIZES = {"desktop": (1280, 800), "phone": (360, 740)}
SEEN = {  # pages with pictures
    "front": "index.html",
    "api": "api/keras/LSTM.html",
    "guide": "guide/keras.html",
    "equations": "reference/block_cell.html",
    "features": "reference/features.html",
    "search": "search.html?q=peephole",
}
PLOTS = {
    "index.html": ["speed"],
    "reference/benchmarks.html": ["speed"],
    "design/threads.html": ["threads"],
    "guide/keras.html": ["loss_curves"],
    "guide/serve_one_step.html": ["latency"],
}
WIDE = (
    "reference/features.html",
    "project/benchmarks/table.html",
    "project/benchmarks/latency.html",
    "project/benchmarks/stacks.html",
)
# On a phone furo lets .content scroll sideways, so that the document itself is never too wide.
OVERFLOW = """
Math.max(
  ...[...document.querySelectorAll("html, .content")].map(e => e.scrollWidth - e.clientWidth)
)
"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *args: Any) -> None:
        """Called for each request."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serves the site."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium that the system has; playwright installs none."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert path, f"none of {', '.join(CHROMIUM)} is installed"
    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


class Visit:
    """A tab of the browser that notes what goes wrong.

    Attributes:
      tab: the tab.
      problems: errors on the console, requests that failed or left the site.
    """

    def __init__(self, browser: Browser, size: str, address: str, theme: str = "light") -> None:
        width, height = SIZES[size]
        self.address = address
        self.problems: list[str] = []
        self.tab: Tab = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=theme
        )
        self.tab.on("console", self.on_console)
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("request", self.on_request)
        self.tab.on("requestfailed", self.on_failure)
        self.tab.on("response", self.on_response)

    def on_console(self, message: ConsoleMessage) -> None:
        """Called for each message on the console."""
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def on_request(self, request: Request) -> None:
        """Called for each request."""
        if not request.url.startswith((self.address, "data:")):
            self.problems.append(f"other server: {request.url}")

    def on_failure(self, request: Request) -> None:
        """Called for each request without an answer."""
        if request.failure != "net::ERR_ABORTED":  # the tab has gone on to another page
            self.problems.append(f"failed: {request.url}")

    def on_response(self, response: Response) -> None:
        """Called for each response."""
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")

    def go(self, path: str) -> None:
        """Opens a page and waits until all is loaded."""
        self.tab.goto(self.address + path, wait_until="networkidle")

    def overflow(self) -> int:
        """By how many pixels the document is wider than the window, or the text than its part."""
        return self.tab.evaluate(OVERFLOW)


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """The folder for pictures."""
    folder = Path(os.environ.get("SITE_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SEEN)
def test_page_has_no_errors(
    name: str, size: str, theme: str, browser: Browser, address: str, screenshots: Path
) -> None:
    visit = Visit(browser, size, address, theme)
    visit.go(SEEN[name])
    visit.tab.screenshot(path=screenshots / f"{name}-{size}-{theme}.png")
    visit.tab.close()
    assert visit.problems == []


@pytest.mark.parametrize("size", SIZES)
def test_no_page_is_wider_than_the_window(
    size: str, browser: Browser, address: str, pages: dict[str, Page]
) -> None:
    visit = Visit(browser, size, address)
    wide = {}
    for path in pages:
        visit.tab.goto(address + path)
        if overflow := visit.overflow():
            wide[path] = overflow
    visit.tab.close()
    assert wide == {}
    assert visit.problems == []


@pytest.mark.parametrize("size", SIZES)
def test_no_code_is_cut_off(
    size: str, browser: Browser, address: str, pages: dict[str, Page]
) -> None:
    """Lines that are longer than a block go on below."""
    visit = Visit(browser, size, address)
    hidden = "es => es.map(e => e.scrollWidth - e.clientWidth).filter(width => width > 0)"
    cut, blocks = {}, 0
    for path in pages:
        visit.tab.goto(address + path)
        found = visit.tab.locator(".highlight pre")
        blocks += found.count()
        if widths := found.evaluate_all(hidden):
            cut[path] = widths
    visit.tab.close()
    assert blocks > 100
    assert cut == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PLOTS)
def test_plots_are_those_of_the_theme(
    page: str, theme: str, browser: Browser, address: str, screenshots: Path
) -> None:
    for size in SIZES:
        visit = Visit(browser, size, address, theme)
        visit.go(page)
        plots = visit.tab.locator("article img").all()
        shown = [Path(plot.get_attribute("src")).stem for plot in plots if plot.is_visible()]
        assert shown == [f"{plot}-{theme}" for plot in PLOTS[page]]
        visit.tab.screenshot(path=screenshots / f"plots-{size}-{theme}.png", full_page=True)
        visit.tab.close()


def test_code_is_copied(browser: Browser, address: str) -> None:
    visit = Visit(browser, "desktop", address)
    visit.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.go("guide/tutorial.html")
    block = visit.tab.locator("div.highlight-python").first
    block.hover()
    block.locator("button.copybtn").click()
    copied = visit.tab.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == block.locator("pre").inner_text().strip()
    assert visit.problems == []
    visit.tab.close()


@pytest.mark.parametrize(
    ("shown", "copied"),
    [
        (">>> for i in range(2):\n...     print(i)\n0\n1", "for i in range(2):\n    print(i)"),
        ("$ tf-lstm-ops info\nversion 0.1.0", "tf-lstm-ops info"),
        ("pip install .\npytest", "pip install .\npytest"),
    ],
)
def test_prompts_and_output_are_not_copied(
    shown: str, copied: str, browser: Browser, address: str
) -> None:
    """Some page may have no prompt, so the text of a block is replaced."""
    visit = Visit(browser, "desktop", address)
    visit.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.go("guide/tutorial.html")
    block = visit.tab.locator("div.highlight-python").first
    block.locator("pre").evaluate("(pre, text) => { pre.textContent = text }", shown)
    block.hover()
    block.locator("button.copybtn").click()
    assert visit.tab.evaluate("navigator.clipboard.readText()").strip() == copied
    visit.tab.close()


def results(browser: Browser, address: str, query: str) -> list[str]:
    """The pages that the search finds, in order."""
    visit = Visit(browser, "phone", address)
    visit.go(f"search.html?q={query}")
    visit.tab.get_by_text("Search finished").first.wait_for()
    found = visit.tab.locator("#search-results li a").all()
    paths = [str(a.get_attribute("href")).partition("?")[0].partition("#")[0] for a in found]
    visit.tab.close()
    return paths


def test_search_finds(browser: Browser, address: str) -> None:
    assert "reference/keras.html" in results(browser, address, "peephole")


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("mask", "guide/keras.html"),
        ("stateful", "guide/keras.html"),
        ("attention", "guide/keras.html"),
        ("checkpoint", "guide/weights.html"),
        ("checkpoint", "guide/export.html"),
        ("batch_first", "guide/other_frameworks.html"),
        ("C API", "api/c.html"),
        ("windows", "index.html"),
        ("tf_lstm_ops_stream_run", "api/c.html"),
    ],
)
def test_search_has_the_right_page_in_two_hits(
    query: str, page: str, browser: Browser, address: str
) -> None:
    assert page in results(browser, address, query)[:2]


def test_search_leaves_out_decisions_and_logs(browser: Browser, address: str) -> None:
    found = results(browser, address, "threads")
    assert "reference/settings.html" in found
    hidden = [path for path in found if path.startswith(("decisions/", "project/benchmarks/NOTES"))]
    assert hidden == []


@pytest.mark.parametrize("query", ["mask", "bidirectional", "dropout", "gradient", "export"])
def test_search_has_guides_first_and_contributors_pages_last(
    query: str, browser: Browser, address: str, pages: dict[str, Page]
) -> None:
    last = {path for _, path in sidebar(pages["index.html"])["Contributors"]}
    last |= {
        f"project/benchmarks/{name}.html"
        for name in ("table", "scaling", "bfloat16", "keras_on_torch")
    }  # many numbers
    found = results(browser, address, query)
    assert found[0].startswith(("guide/", "api/")), found[:5]
    is_last = [path in last for path in found]
    assert True in is_last and is_last == sorted(is_last), found


@pytest.mark.parametrize("page", WIDE)
def test_first_column_of_wide_tables_stays_in_sight(
    page: str, browser: Browser, address: str
) -> None:
    visit = Visit(browser, "phone", address)
    visit.go(page)
    wrapper = visit.tab.locator(".wide-tables .table-wrapper").first
    assert wrapper.evaluate("e => e.scrollWidth - e.clientWidth") > 100
    cells = wrapper.locator("tbody tr").first.locator("td")
    before = cells.first.bounding_box()
    wrapper.evaluate("e => { e.scrollLeft = e.scrollWidth }")
    first, last, width = cells.first.bounding_box(), cells.last.bounding_box(), SIZES["phone"][0]
    assert 0 <= first["x"] <= before["x"]
    assert first["width"] < width / 2
    assert first["x"] + first["width"] <= last["x"] <= width - last["width"]
    visit.tab.close()


@pytest.mark.parametrize("page", WIDE)
def test_wide_tables_are_whole_on_a_desktop(
    page: str, browser: Browser, address: str, screenshots: Path
) -> None:
    visit = Visit(browser, "desktop", address)
    visit.go(page)
    cut = "es => es.map(e => e.scrollWidth - e.clientWidth)"
    assert max(visit.tab.locator(".table-wrapper").evaluate_all(cut)) == 0
    visit.tab.locator("table").first.scroll_into_view_if_needed()
    visit.tab.screenshot(path=screenshots / f"wide-{Path(page).stem}.png")
    visit.tab.close()
