#!/usr/bin/env python3
"""Checks who includes whom, and the rules on files that a program can check: the first line, `#pragma once`, the length.

usage: tools/check_includes.py [ROOT]

Prints one line per offence, `path:line: sentence`, and exits with 1 if there is any. The rules are those of the table ALLOWED and
of the constants below it; a new folder is one row.

example: tools/check_includes.py
"""

import os
import re
import sys
from typing import Iterator, NamedTuple

# Folder -> what its files may include of ours, as prefixes of paths from the root. The folder itself is always allowed.
ALLOWED = {
    "base": (),
    "reports": ("base/",),
    "profiles": ("base/",),
    "engine": ("base/", "profiles/range.h"),
    "variants": ("base/", "engine/", "profiles/range.h"),
    "bench": ("base/", "variants/", "engine/", "profiles/", "reports/"),
    "tests": ("base/", "bench/", "variants/", "engine/", "profiles/", "reports/"),
}
# Rooms of a folder, lowest first: a file includes files of its own room and of those before it. What stands in the folder itself is on
# top, but for the files that are named here, which are on the ground.
ROOMS = {
    "engine": ("kernels", "checkpoint", "families", "masks", "layers", "ranks", "sampling", "sequences", "generation"),
    "reports": ("store", "statistics", "figures", "page"),
    "profiles": ("trace", "collect", "write"),
}
GROUND = ("engine/tensor.h", "profiles/range.h")
# The one file that includes torch, and who may include that file.
TENSOR_HEADER = "engine/tensor.h"
TENSOR_USERS = ("engine/", "variants/", "bench/measure/torch_", "bench/micro/", "tests/")
TORCH_PREFIXES = ("ATen/", "torch/", "c10/", "caffe2/")
# What a test may drive that the engine has no use for: PyTorch's own profiler.
TORCH_OF_TESTS = ("torch/csrc/autograd/profiler_kineto.h",)
# Made by the build, so in no folder of the tree.
GENERATED = ("decodelab_commit.h",)
MAX_LINES = 500

CXX_SUFFIXES = (".cpp", ".h", ".cu", ".cuh")
HEADER_SUFFIXES = (".h", ".cuh")
CUDA_SUFFIXES = (".cu", ".cuh")
# Folders whose files are data or products, wherever they stand.
SKIPPED_FOLDERS = {"build", "data", "__pycache__", "node_modules"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<quote>["<])(?P<path>[^">]+)[">]')


class Offence(NamedTuple):
    path: str
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sentence}"


class Include(NamedTuple):
    line: int
    path: str
    quoted: bool


def source_files(root: str) -> Iterator[str]:
    """Paths from `root` of all files that the rules are about, sorted."""
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".") and name not in SKIPPED_FOLDERS]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if not name.startswith(".")]
    return iter(sorted(path for path in found if is_source(root, path)))


def is_source(root: str, path: str) -> bool:
    if path.endswith(CXX_SUFFIXES + (".py", ".sh", ".cmake")) or os.path.basename(path) == "CMakeLists.txt":
        return True
    if "." in os.path.basename(path):
        return False
    with open(os.path.join(root, path), "rb") as file:
        return file.read(2) == b"#!"


def read_lines(root: str, path: str) -> list[str]:
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def includes_of(lines: list[str]) -> list[Include]:
    matches = ((number, INCLUDE.match(line)) for number, line in enumerate(lines, 1))
    return [Include(number, match["path"], match["quote"] == '"') for number, match in matches if match]


def check_shape(path: str, lines: list[str]) -> Iterator[Offence]:
    """The rules on a file by itself."""
    first = 2 if lines and lines[0].startswith("#!") else 1
    marks = ("// ",) if path.endswith(CXX_SUFFIXES) else ('"""', "# ") if path.endswith(".py") else ("# ",)
    if len(lines) < first or not lines[first - 1].startswith(marks):
        yield Offence(path, first, f"line {first} is one sentence on what the file is for, in a comment")
    if path.endswith(HEADER_SUFFIXES) and "#pragma once" not in lines:
        yield Offence(path, 1, "a header needs #pragma once")
    if len(lines) > MAX_LINES:
        yield Offence(path, MAX_LINES + 1, f"{len(lines)} lines; a file has at most {MAX_LINES}")


def room_of(path: str) -> int:
    """How high the room of a file is among those of its folder; 0 for a folder without rooms."""
    folder, _, rest = path.partition("/")
    rooms = ROOMS.get(folder, ())
    if path in GROUND or not rooms:
        return 0
    room = rest.split("/")[0]
    return rooms.index(room) + 1 if "/" in rest and room in rooms else len(rooms) + 1


def check_include(path: str, include: Include, known: set[str]) -> Iterator[Offence]:
    """The rules on one include line."""
    folder, target = path.split("/")[0], include.path
    is_own = target.split("/")[0] in ALLOWED and "/" in target
    if target in TORCH_OF_TESTS and folder == "tests":
        return
    if target.startswith(TORCH_PREFIXES) and path != TENSOR_HEADER:
        if path.endswith(CUDA_SUFFIXES):
            yield Offence(path, include.line, f"a CUDA file includes no torch header, but this is <{target}>")
        else:
            yield Offence(path, include.line, f"torch is included through {TENSOR_HEADER} only, but this is <{target}>")
    elif include.quoted and target not in GENERATED and target not in known:
        yield Offence(path, include.line, f'"{target}" is no file of ours: own includes are written from the repository\'s root, '
                                          "others in angle brackets")
    elif not include.quoted and is_own and target in known:
        yield Offence(path, include.line, f'<{target}> is ours: write "{target}"')
    if target not in known:
        return
    if room_of(target) > room_of(path) and target.split("/")[0] == folder:
        yield Offence(path, include.line, f"{target} is in a room above: lowest first are {', '.join(ROOMS[folder])}, "
                                          f"then what stands in {folder}/ itself")
    if folder in ALLOWED and not target.startswith((folder + "/",) + ALLOWED[folder]):
        may = ", ".join((folder + "/",) + ALLOWED[folder])
        yield Offence(path, include.line, f"{folder}/ may not include {target}; it may include {may}")
    elif target == TENSOR_HEADER and not path.startswith(TENSOR_USERS):
        yield Offence(path, include.line, f"{target} is for {', '.join(TENSOR_USERS)} only; forward-declare at::Tensor")


def path_to_torch(start: str, includes: dict[str, list[Include]]) -> list[str]:
    """The chain of own headers by which `start` reaches torch, without `start` itself; empty if it does not."""
    waiting, seen = [[start]], {start}
    while waiting:
        chain = waiting.pop(0)
        for include in includes.get(chain[-1], []):
            if include.path == TENSOR_HEADER:
                return chain[1:] + [TENSOR_HEADER]
            if include.path in includes and include.path not in seen:
                seen.add(include.path)
                waiting.append(chain + [include.path])
    return []


def check_tree(root: str) -> list[Offence]:
    """All offences of the tree in `root`, in the order of paths and lines."""
    paths = list(source_files(root))
    texts = {path: read_lines(root, path) for path in paths}
    includes = {path: includes_of(lines) for path, lines in texts.items() if path.endswith(CXX_SUFFIXES)}
    known = set(includes)
    offences = []
    for path, lines in texts.items():
        offences += check_shape(path, lines)
        for include in includes.get(path, []):
            offences += check_include(path, include, known)
        chain = path_to_torch(path, includes) if path.endswith(CUDA_SUFFIXES) else []
        if chain:
            line = next(include.line for include in includes[path] if include.path == chain[0])
            offences.append(Offence(path, line, f"a CUDA file includes no torch header, but this reaches {' -> '.join(chain)}"))
    return sorted(offences)


def main(arguments: list[str]) -> int:
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__.strip())
        return 0
    root = arguments[0] if arguments else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    offences = check_tree(root)
    for offence in offences:
        print(offence)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
