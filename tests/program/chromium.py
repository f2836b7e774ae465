"""Opens a local page in headless Chromium with the network off: its DOM after scripts ran, or a picture of it."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
SCRIPT_TIME_MS = 20_000  # virtual time: scripts get that long, the wall clock does not wait for it
TIMEOUT_S = 180
NO_SCRIPTS = """<meta http-equiv="Content-Security-Policy" content="script-src 'none'">"""


def _run(page: Path, *options: str) -> str:
    """Runs Chromium on the page with a profile of its own; raises RuntimeError with its messages when it fails."""
    if not Path(page).is_file():
        raise FileNotFoundError(f"There is no page '{page}'.")  # Chromium would show an empty one
    with tempfile.TemporaryDirectory(prefix="decodelab-chromium-") as profile:
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            f"--virtual-time-budget={SCRIPT_TIME_MS}",
            *options,
            Path(page).resolve().as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def _page(page: Path, javascript: bool) -> Iterator[Path]:
    """The page itself, or a copy that forbids scripts: headless Chromium answers nothing when they are switched off by a setting."""
    if javascript:
        yield Path(page)
        return
    with tempfile.TemporaryDirectory(prefix="decodelab-page-") as folder:
        copy = Path(folder) / Path(page).name
        text = Path(page).read_text(encoding="utf-8")
        copy.write_text(text.replace("<head>", f"<head>{NO_SCRIPTS}", 1), encoding="utf-8")
        yield copy


def dump_dom(page: Path, *, javascript: bool = True) -> str:
    """The page's HTML after its scripts ran, or as it is without them."""
    with _page(page, javascript) as shown:
        return _run(shown, "--dump-dom")


def screenshot(page: Path, png: Path, *, width: int = 1240, height: int = 2400, dark: bool = False, javascript: bool = True) -> None:
    """Writes a picture of the page's first `height` pixels; `dark` prefers the dark colour scheme."""
    with _page(page, javascript) as shown:
        _run(
            shown,
            f"--screenshot={Path(png).resolve()}",
            f"--window-size={width},{height}",
            "--hide-scrollbars",
            *(["--blink-settings=preferredColorScheme=0"] if dark else []),
        )
    if not Path(png).exists():
        raise RuntimeError(f"Chromium wrote no picture to {png}")
