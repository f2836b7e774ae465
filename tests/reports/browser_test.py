"""The page in a real browser with the network off: no error, every section there, every figure drawn, tooltips and legends alive."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from devtools import Page, find_browser

PROGRAM = os.environ.get("SAMPLE_REPORT", os.path.join(os.path.dirname(__file__), "../../build/release/sample_report"))
MOST_BYTES = 2_500_000
# The page is made in 2 s on an idle machine; ten times that fails only where its cost grows with the square of its cells.
MOST_SECONDS = 20
FEWEST_SHAPES = 10  # of a figure: axes alone have as many

# Targets of the navigation that are missing or have nothing after them, up to the next heading.
EMPTY_SECTIONS = """[...document.querySelectorAll('nav a[href^="#"]')].map((link) => link.getAttribute('href').slice(1)).filter((id) => {
  const target = document.getElementById(id);
  if (!target) return true;
  if (!/^H[1-6]$/.test(target.tagName)) return target.textContent.trim().length === 0;
  let text = '';
  for (let next = target.nextElementSibling; next && next.tagName !== target.tagName; next = next.nextElementSibling) text += next.textContent;
  return text.trim().length === 0;
})"""
# Figures whose drawing is missing, has no size, or holds no more than FEWEST_SHAPES shapes and texts.
EMPTY_FIGURES = """[...document.querySelectorAll('[data-figure]')].filter((place) => {
  const drawing = place.querySelector('svg');
  if (!drawing) return true;
  const box = drawing.getBoundingClientRect();
  return box.width < 50 || box.height < 50 || drawing.querySelectorAll('path, rect, line, text, circle, use').length <= %d;
}).map((place) => place.dataset.figure)""" % FEWEST_SHAPES
# The middle of the first element that a selector finds in a figure, in the window, after scrolling there.
MIDDLE = """(() => {
  const element = document.querySelector(%s);
  if (!element) return null;
  element.scrollIntoView({ block: 'center' });
  const box = element.getBoundingClientRect();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
})()"""
# What a figure looks like apart from its text: all opacities and strokes of its marks.
LOOK = """[...document.querySelectorAll(%s)].map((mark) => [mark.getAttribute('opacity'), mark.style.opacity, mark.getAttribute('stroke-opacity'),
  mark.getAttribute('fill-opacity'), mark.getAttribute('d')].join(' ')).join(';')"""


def required(reason):
    """A visible skip here, a failure in CI: tools/bootstrap installs what is missing."""
    if os.environ.get("CI") == "true":
        raise AssertionError(f"CI must run this: {reason}")
    print(f"SKIPPED: {reason}")
    raise unittest.SkipTest(reason)


class Report:
    """A report of sample_report with the figures of how it was made."""

    def __init__(self, kind):
        self.folder = Path(tempfile.mkdtemp(prefix="decodelab-page-"))
        done = subprocess.run([PROGRAM, kind, self.folder], capture_output=True, text=True, check=True)
        self.made = json.loads(done.stdout)
        self.page = self.folder / "report" / "report.html"

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class ThePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not find_browser():
            required("no Chromium; run tools/bootstrap")
        cls.report = Report("large")
        cls.addClassCleanup(cls.report.remove)
        if cls.report.made["warned"]:
            required("this build has no vl-convert-python to draw figures with; run tools/bootstrap")

    def open(self, **options):
        page = Page(self.report.page, **options)
        self.addCleanup(page.__exit__)
        if options.get("javascript", True):
            page.wait_for("document.body.dataset.ready === 'true'")
        return page

    def test_of_three_hundred_cells_is_small_and_quickly_made(self):
        size = self.report.page.stat().st_size
        made = self.report.made
        print(f"300 cells: {size:,} bytes; the page took {made['seconds_of_page']} s, with all files {made['seconds']} s, "
              f"without figures {made['seconds_without_figures']} s")
        self.assertLessEqual(size, MOST_BYTES)
        self.assertLess(made["seconds_of_page"], MOST_SECONDS)

    def test_has_every_section_and_figure_and_complains_of_nothing(self):
        page = self.open()
        self.assertGreater(page.evaluate("document.querySelectorAll('nav a').length"), 3)
        self.assertEqual(page.evaluate(EMPTY_SECTIONS), [])
        self.assertGreater(page.evaluate("document.querySelectorAll('[data-figure]').length"), 1)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('[data-figure]')].filter((place) => place.dataset.interactive !== 'true').length"), 0)
        self.assertEqual(page.evaluate(EMPTY_FIGURES), [])
        self.assertEqual(page.errors, [])
        print(f"{len(page.warnings)} warnings on the console: {sorted(set(page.warnings))[:3]}")
        self.assertEqual([url for url in page.requests if not url.startswith(("file:", "data:", "blob:", "about:"))], [])

    def test_shows_the_same_figures_without_javascript(self):
        page = self.open(javascript=False)
        self.assertIsNone(page.evaluate("document.body.dataset.ready || null"), "scripts ran")
        self.assertEqual(page.evaluate(EMPTY_SECTIONS), [])
        self.assertGreater(page.evaluate("document.querySelectorAll('[data-figure] svg').length"), 1)
        self.assertEqual(page.evaluate(EMPTY_FIGURES), [])
        self.assertEqual([url for url in page.requests if not url.startswith(("file:", "data:", "about:"))], [])

    def test_shows_a_tooltip_over_a_mark_of_every_figure_that_has_them(self):
        page = self.open()
        figures = page.evaluate("""[...document.querySelectorAll('script[id^="spec-"]')].filter((spec) => /"tooltip"/.test(spec.textContent))
            .map((spec) => spec.id.slice(5))""")
        self.assertGreater(len(figures), 0)
        for figure in figures:
            with self.subTest(figure):
                texts = filter(None, map(lambda middle: self.tooltip_at(page, middle), self.middles_of_marks(page, figure)))
                text = next(texts, None)
                self.assertIsNotNone(text, "no mark of the figure shows a tooltip")
                self.assertRegex(text, r"\d")
                self.assertNotRegex(text, r"NaN|undefined|null")
                print(f"tooltip of {figure}: {text!r}")

    def middles_of_marks(self, page, figure):
        """Where to point at: the last mark of each layer, the one on top of the others."""
        layers = page.evaluate(f"document.querySelectorAll(`[data-figure='{figure}'] svg .role-mark`).length")
        for layer in range(layers):
            place = page.evaluate("""(() => {
              const mark = document.querySelectorAll(`[data-figure='%s'] svg .role-mark`)[%d].lastElementChild;
              if (!mark || mark.tagName === 'g') return null;
              mark.scrollIntoView({ block: 'center', inline: 'center' });
              const box = mark.getBoundingClientRect();
              return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
            })()""" % (figure, layer))
            if place:
                yield place

    def tooltip_at(self, page, place):
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        page.move_to(place["x"], place["y"])
        try:
            page.wait_for("document.querySelector('#vg-tooltip-element.visible')?.textContent.trim().length > 0", 0.5)
        except TimeoutError:
            return None
        return page.evaluate("document.querySelector('#vg-tooltip-element').innerText")

    def test_dims_what_a_click_on_the_legend_leaves_out(self):
        page = self.open()
        bound = page.evaluate("""[...document.querySelectorAll('script[id^="spec-"]')].filter((spec) => /"bind"\\s*:\\s*"legend"/.test(spec.textContent))
            .map((spec) => spec.id.slice(5))""")
        self.assertGreater(len(bound), 0)
        for figure in bound:
            with self.subTest(figure):
                marks = json.dumps(f"[data-figure='{figure}'] .role-mark path")
                before = page.evaluate(LOOK % marks)
                middle = page.evaluate(MIDDLE % json.dumps(f"[data-figure='{figure}'] .role-legend-symbol path"))
                self.assertIsNotNone(middle, "a bound legend has symbols")
                page.click(middle["x"], middle["y"])
                page.wait_for(f"{LOOK % marks} !== {json.dumps(before)}", 20)
                page.click(middle["x"], middle["y"])
                page.wait_for(f"{LOOK % marks} === {json.dumps(before)}", 20)
        self.assertEqual(page.errors, [])


class AStillPage(unittest.TestCase):
    """Comparisons and histories have no scripts at all."""

    @classmethod
    def setUpClass(cls):
        if not find_browser():
            required("no Chromium; run tools/bootstrap")

    def open(self, kind, name):
        folder = tempfile.mkdtemp(prefix="decodelab-page-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        done = subprocess.run([PROGRAM, kind, folder], capture_output=True, text=True, check=True)
        if done.stderr:
            required("this build has no vl-convert-python to draw figures with; run tools/bootstrap")
        page = Page(Path(folder) / "report" / name)
        self.addCleanup(page.__exit__)
        self.assertEqual(page.errors, [])
        self.assertEqual([url for url in page.requests if not url.startswith(("file:", "data:", "about:"))], [])
        return page

    def drawn(self, page):
        return page.evaluate("[...document.querySelectorAll('figure svg')].filter((svg) => svg.getBoundingClientRect().width > 50 && svg.querySelectorAll('path, use').length > 5).length")

    def test_a_comparison_leads_to_every_section_and_shows_its_figures(self):
        page = self.open("comparison", "compare.html")
        self.assertGreater(page.evaluate("document.querySelectorAll('nav a').length"), 10)
        self.assertEqual(page.evaluate(EMPTY_SECTIONS), [])
        self.assertEqual(self.drawn(page), 2)
        self.assertIn("the whole step", page.evaluate("document.body.textContent"))

    def test_a_history_shows_its_figure_and_the_step(self):
        page = self.open("history", "history.html")
        self.assertEqual(self.drawn(page), 1)
        self.assertIn("up", page.evaluate("[...document.querySelectorAll('td')].map((field) => field.textContent.trim())"))


class APageOf(unittest.TestCase):
    """Runs that are not as one would like them, in the browser as well: the page says so, and complains of nothing."""

    @classmethod
    def setUpClass(cls):
        if not find_browser():
            required("no Chromium; run tools/bootstrap")

    def check(self, kind, *words):
        report = Report(kind)
        self.addCleanup(report.remove)
        with Page(report.page) as page:
            page.wait_for("document.body.dataset.ready === 'true' || !document.getElementById('vega')")
            self.assertEqual(page.evaluate(EMPTY_SECTIONS), [])
            self.assertEqual(page.errors, [])
            text = page.evaluate("document.body.textContent")
            for word in words:
                self.assertIn(word, text)
            return page.evaluate("document.title"), text

    def test_text_from_outside_stays_text(self):
        title, text = self.check("hostile", "<script>document.title='broken out'</script>", "failed")
        self.assertNotEqual(title, "broken out")
        self.assertIn("causal,+kv-grow:tokens=</script>", text)

    def test_one_cell(self):
        self.check("one-cell", "1 cell")

    def test_failed_cells_alone(self):
        self.check("failed", "oom", "needs 71.2 GiB", "Nothing was measured")

    def test_void_blocks(self):
        self.check("void", "void-blocks")

    def test_nothing(self):
        self.check("empty", "0 cells", "Nothing was measured")


if __name__ == "__main__":
    unittest.main()
