"""The figures of tests/data/figures compile in Vega-Lite without a warning, draw as SVG and PNG, and stay the same picture when shrunk."""

import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/data/figures"
sys.path.insert(0, str(ROOT / "tools"))

import render_figures  # noqa: E402

try:
    import vl_convert
except ImportError:
    vl_convert = None
    if os.environ.get("CI") == "true":
        raise

# Run in a process of its own, since warnings go to its standard error.
COMPILE = """import sys, vl_convert
for path in sys.argv[2:]:
    print('figure', path, file=sys.stderr, flush=True)
    vl_convert.vegalite_to_vega(open(path, encoding='utf-8').read(), vl_version=sys.argv[1], show_warnings=True)
"""


def pixels(png):
    """Width, and the RGBA bytes of a PNG with 8 bits a channel, row by row with its filters undone."""
    chunks, at = b"", 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", png[at + 8:at + 18])
            assert (depth, color) == (8, 6), f"not RGBA with 8 bits: {depth}, {color}"
        if kind == b"IDAT":
            chunks += png[at + 8:at + 8 + size]
        at += 12 + size
    data, stride = zlib.decompress(chunks), 4 * width
    rows, before = [], bytes(stride)
    for y in range(height):
        kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left, up, corner = row[x - 4] if x >= 4 else 0, before[x], before[x - 4] if x >= 4 else 0
            if kind == 4:
                guess = left + up - corner
                nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            row[x] = (row[x] + (0, left, up, (left + up) // 2, nearest if kind == 4 else 0)[kind]) & 255
        before = bytes(row)
        rows.append(before)
    return width, rows


def specs():
    paths = sorted(GOLDEN.glob("*.vl.json"))
    assert len(paths) > 15, f"{GOLDEN} has {len(paths)} specs; tests/reports/figures/golden_test.cpp writes them"
    return paths


@unittest.skipIf(vl_convert is None, "SKIPPED: vl-convert-python is not installed; run tools/bootstrap")
class FiguresTest(unittest.TestCase):
    def test_every_spec_compiles_without_a_warning(self):
        done = subprocess.run([sys.executable, "-c", COMPILE, render_figures.VEGA_LITE_VERSION, *map(str, specs())], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if line and not line.startswith("figure ")], [], done.stderr)

    def test_a_spec_with_a_mistake_is_caught(self):
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder) / "wrong.vl.json"
            wrong.write_text('{"data":{"values":[{"a":1}]},"mark":"point","encoding":{"nonsense":{"field":"a"}}}')
            done = subprocess.run([sys.executable, "-c", COMPILE, render_figures.VEGA_LITE_VERSION, str(wrong)], capture_output=True, text=True, timeout=300)
        self.assertIn("nonsense", done.stderr)

    def test_every_figure_draws_as_svg_and_png_with_its_axes_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in specs():
                (Path(folder) / path.name).write_bytes(path.read_bytes())
            subprocess.run([sys.executable, ROOT / "tools/render_figures.py", folder, "--png"], check=True, timeout=300)
            names = {}
            for path in specs():
                stem = Path(folder) / path.name.removesuffix(".vl.json")
                svg = stem.with_suffix(".svg").read_text(encoding="utf-8")
                self.assertTrue(svg.startswith("<svg "), path.name)
                self.assertTrue(stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG"), path.name)
                texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg)
                self.assertGreater(len(texts), 8, path.name)
                for word in ("NaN", "undefined", "null", "Infinity"):
                    self.assertNotIn(word, texts, path.name)
                for name in re.findall(r'id="([^"]+)"', svg):
                    self.assertNotIn(name, names, f"{path.name} and {names.get(name)} share a name; in one page the second drawing would show the first's")
                    names[name] = path.name

    def test_shrinking_keeps_the_picture(self):
        for name in ("decode-latency", "decode-order", "decode-steps", "prefill-speedup", "decode-waterfall"):
            spec = (GOLDEN / f"{name}.vl.json").read_text(encoding="utf-8")
            svg = vl_convert.vegalite_to_svg(spec, vl_version=render_figures.VEGA_LITE_VERSION, allowed_base_urls=[])
            small = render_figures.shrink(svg, "p")
            self.assertLess(len(small), 0.75 * len(svg), name)
            width, before = pixels(vl_convert.svg_to_png(svg, scale=0.5))
            other_width, after = pixels(vl_convert.svg_to_png(small, scale=0.5))
            self.assertEqual((width, len(before)), (other_width, len(after)), name)
            # Coordinates in hundredths of a pixel move edges by a shade; a mark that is lost, moved or in another colour is far more.
            off = sum(max(map(abs, map(int.__sub__, a, b))) > 60 for a, b in zip(before, after))
            self.assertEqual(off, 0, f"{name}: {off} rows of pixels differ")


if __name__ == "__main__":
    unittest.main()
