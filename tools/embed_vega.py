"""Writes the JavaScript of Vega, Vega-Lite and Vega-Embed, as vl-convert bundles it, gzipped and in base64, for the offline page."""

import base64
import gzip
import sys
from pathlib import Path

VEGA_LITE_VERSION = "6.4"  # as kVegaLiteVersion in reports/figures/figure.h


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: embed_vega.py OUTPUT")
    import vl_convert

    bundle = vl_convert.javascript_bundle(vl_version=VEGA_LITE_VERSION)
    # 0.9 MB of text, 0.4 MB like this; no time stamp, so that equal inputs give equal programs.
    Path(sys.argv[1]).write_bytes(base64.b64encode(gzip.compress(bundle.encode(), compresslevel=9, mtime=0)))


if __name__ == "__main__":
    main()
