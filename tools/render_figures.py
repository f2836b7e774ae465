"""Draws every *.vl.json of a folder as .svg, and .png where asked for, beside it: no browser, no network."""

import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

VEGA_LITE_VERSION = "6.4"  # as kVegaLiteVersion in reports/figures/figure.h
MOST_PROCESSES = 4
FIGURES_OF_A_PROCESS = 4  # each takes half a second to start
PNG_SCALE = 1.5  # sharp enough for a slide, and still a few hundred kB

LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
TAG = re.compile(r"<[^>]+>")
# The page has one font, describes each figure as a whole, and drawings answer to no pointer.
REPEATED = re.compile(r' (?:role|aria-roledescription|aria-hidden|font-family|pointer-events)="[^"]*"| opacity="1"')
# Vega's frames for pointers: no fill and no stroke of their own.
INVISIBLE = re.compile(r'<path class="(?:background|foreground)" d="[^"]*"(?: display="none")?/>')
EMPTY_GROUP = re.compile(r"<g[^>]*/>|<g[^>]*></g>")
# A mark of a point: a shape around the origin, moved to where it stands.
POINT = re.compile(r'<path transform="translate\(([-\d.]+),([-\d.]+)\)" d="(M[^"]*)"([^>]*)/>')
LINES = re.compile(r"(<g[^>]*)>((?:<line [^>]*/>)+)</g>")
STYLE = re.compile(r' ((?:stroke|fill)[-a-z]*)="([^"]*)"')
FEWEST_COPIES = 3  # of a point, from which on a definition is shorter


def hoist(lines: re.Match) -> str:
    """Moves what all lines of a group have in common to the group."""
    styles = [dict(STYLE.findall(line)) for line in TAG.findall(lines[2])]
    common = {key: value for key, value in styles[0].items() if all(style.get(key) == value for style in styles)}
    body = lines[2]
    for key, value in common.items():
        body = body.replace(f' {key}="{value}"', "")
    return lines[1] + "".join(f' {key}="{value}"' for key, value in common.items()) + ">" + body + "</g>"


def share_points(svg: str, prefix: str) -> str:
    """Draws points that look the same as copies of one; `prefix` keeps the names of several drawings of a page apart."""
    looks: dict[tuple[str, str], int] = {}
    for _, _, shape, style in POINT.findall(svg):
        looks[shape, style] = looks.get((shape, style), 0) + 1
    names = {look: f"{prefix}-{i}" for i, (look, count) in enumerate(looks.items()) if count >= FEWEST_COPIES}

    def copy(point: re.Match) -> str:
        x, y, shape, style = point.groups()
        return f'<use href="#{names[shape, style]}" x="{x}" y="{y}"/>' if (shape, style) in names else point[0]

    definitions = "".join(f'<path id="{name}" d="{shape}"{style}/>' for (shape, style), name in names.items())
    svg = POINT.sub(copy, svg)
    return re.sub(r"(<svg [^>]*>)", rf"\1<defs>{definitions}</defs>", svg, count=1) if definitions else svg


def shrink(svg: str, prefix: str) -> str:
    """The same picture in about half of the text: hundredths of a pixel, styles once for all that have them."""

    def shorter(tag: re.Match) -> str:
        text = LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag[0])
        text = REPEATED.sub("", text)
        return text if ' stroke="' in text else re.sub(r' stroke-width="[^"]*"', "", text)

    font = re.search(r'font-family="([^"]*)"', svg)
    svg = TAG.sub(shorter, svg)
    svg = INVISIBLE.sub("", svg)
    while (rest := EMPTY_GROUP.sub("", svg)) != svg:
        svg = rest
    # Two processes number their clips and gradients alike, and a page holds the drawings of both.
    svg = re.sub(r'( id="|url\(#)', rf"\1{prefix}-", svg)
    svg = share_points(LINES.sub(hoist, svg), prefix)
    return svg.replace("<svg ", f'<svg font-family="{font[1]}" ', 1) if font else svg


def draw(work: tuple[Path, str, bool]) -> None:
    """Draws one figure; `work` is the path of its spec, the prefix of names in its drawing, and whether a PNG is wanted."""
    import vl_convert

    path, prefix, png = work
    stem = str(path).removesuffix(".vl.json")
    svg = vl_convert.vegalite_to_svg(path.read_text(encoding="utf-8"), vl_version=VEGA_LITE_VERSION, allowed_base_urls=[])
    Path(stem + ".svg").write_text(shrink(svg, prefix), encoding="utf-8")
    if png:
        Path(stem + ".png").write_bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))


def main() -> None:
    png = sys.argv[2:] == ["--png"]
    if len(sys.argv) != 2 + png:
        sys.exit("usage: render_figures.py FOLDER [--png]")
    specs = sorted(Path(sys.argv[1]).glob("*.vl.json"))
    work = [(path, f"p{index}", png) for index, path in enumerate(specs)]
    work.sort(key=lambda item: -item[0].stat().st_size)  # the longest first, so that no process ends long after the others
    processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)), len(work) // FIGURES_OF_A_PROCESS)
    if processes < 2:
        for item in work:
            draw(item)
        return
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(draw, work))


if __name__ == "__main__":
    main()
