"""Writes the JavaScript of Vega, Vega-Lite and Vega-Embed, as vl-convert bundles it, into one file for the offline page."""

import sys
from pathlib import Path

VEGA_LITE_VERSION = "6.4"  # as kVegaLiteVersion in reports/figures/figure.h


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: embed_vega.py OUTPUT.js")
    import vl_convert

    bundle = vl_convert.javascript_bundle(vl_version=VEGA_LITE_VERSION)
    # The page puts it between <script> tags, where only this would end it.
    if "</script" in bundle.lower():
        sys.exit("embed_vega.py: the bundle has a closing script tag in it and cannot be inlined")
    Path(sys.argv[1]).write_text(bundle, encoding="utf-8")


if __name__ == "__main__":
    main()
