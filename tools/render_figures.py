"""Draws every *.vl.json of a folder as .svg and .png beside it, without a browser and without the network."""

import re
import sys
from pathlib import Path

VEGA_LITE_VERSION = "6.4"  # as kVegaLiteVersion in reports/figures/figure.h
PNG_SCALE = 1.5  # sharp enough for a slide, and still a few hundred kB

# What vl-convert writes for a round point, whose centre stands in the transform.
ROUND_POINT = re.compile(r'<path transform="translate\(([-\d.]+),([-\d.]+)\)" d="M([\d.]+),0A\3,\3,0,1,1,-\3,0A\3,\3,0,1,1,\3,0"')
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
TAG = re.compile(r"<[^>]+>")
REPEATED = re.compile(r' (?:role|aria-roledescription|aria-hidden|font-family|pointer-events)="[^"]*"')


def shrink(svg: str) -> str:
    """The same picture in about half of the text: hundredths of a pixel, circles as circles, one font for all."""

    def shorter(tag: re.Match) -> str:
        text = LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag[0])
        text = ROUND_POINT.sub(r'<circle cx="\1" cy="\2" r="\3"', text)
        return REPEATED.sub("", text)

    font = re.search(r'font-family="([^"]*)"', svg)
    svg = TAG.sub(shorter, svg)
    return svg.replace("<svg ", f'<svg font-family="{font[1]}" ', 1) if font else svg


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: render_figures.py FOLDER")
    import vl_convert

    for path in sorted(Path(sys.argv[1]).glob("*.vl.json")):
        spec = path.read_text(encoding="utf-8")
        stem = str(path).removesuffix(".vl.json")
        svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE_VERSION, allowed_base_urls=[])
        Path(stem + ".svg").write_text(shrink(svg), encoding="utf-8")
        Path(stem + ".png").write_bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))


if __name__ == "__main__":
    main()
