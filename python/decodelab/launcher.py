"""Starts the program in bin/ with the libtorch of this Python's torch, which is found but not imported."""

import importlib.util
import os
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PROGRAM = FOLDER / "bin" / "decodelab"
LIBRARY = Path("lib") / "libtorch_cpu.so"
FAILED = 70  # the program's own exit code for what is not the caller's mistake


def fail(sentence: str) -> None:
    print(f"decodelab: {sentence}", file=sys.stderr)
    sys.exit(FAILED)


def find_torch() -> Path | None:
    """The folder of torch: the one beside this package, where the program looks itself, else the one that Python would import."""
    beside = FOLDER.parent / "torch"
    if (beside / LIBRARY).exists():
        return beside
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).resolve().parent
    return folder if (folder / LIBRARY).exists() else None


def torch_versions(torch: Path) -> tuple[str, str]:
    """The version of torch and that of its CUDA, which is empty without, as its version.py says them."""
    text = (torch / "version.py").read_text(encoding="utf-8")
    version = re.search(r"^__version__ = '([^']*)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=]*= *'([^']*)'", text, re.MULTILINE)
    return (version[1] if version else "of an unknown version", cuda[1] if cuda else "")


def misfit(torch: Path) -> str:
    """Why the program cannot run with this torch; empty where it can. C++ interfaces hold within a minor release and a major one of CUDA."""
    from decodelab.built_with import CUDA, TORCH

    version, cuda = torch_versions(torch)
    release = ".".join(TORCH.split(".")[:2])
    if version.split(".")[:2] != TORCH.split(".")[:2]:
        return (f"it was built with torch {TORCH}, and {torch} is torch {version}: "
                f"run '{sys.executable} -m pip install \"torch=={release}.*\"', or build decodelab again with the torch that is there")
    if CUDA and cuda.split(".")[0] != CUDA.split(".")[0]:
        return (f"it was built with a torch for CUDA {CUDA}, and {torch} is one for {'CUDA ' + cuda if cuda else 'CPUs alone'}: "
                f"install the same kind of torch, or build decodelab again with the torch that is there")
    return ""


def environment(torch: Path) -> dict[str, str]:
    """What the program sees: this Python, which draws its figures, and where libtorch is, unless it lies where the program looks itself."""
    changed = dict(os.environ)
    changed.setdefault("DECODELAB_PYTHON", sys.executable)
    if torch != FOLDER.parent / "torch":
        folders = [torch / "lib", *sorted(torch.parent.glob("nvidia/*/lib"))]
        changed["LD_LIBRARY_PATH"] = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return changed


def main() -> None:
    if not PROGRAM.exists():
        fail(f"{PROGRAM} is not there: install the package as a wheel ('pip install .', not '-e'), or build a checkout with tools/build")
    torch = find_torch()
    if torch is None:
        fail(f"{sys.executable} has no torch, whose libraries the program needs: install decodelab with its dependencies (pip does, without --no-deps)")
    if why := misfit(torch):
        fail(why)
    os.execve(PROGRAM, ["decodelab", *sys.argv[1:]], environment(torch))


if __name__ == "__main__":
    main()
