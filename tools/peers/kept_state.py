"""Keeps the state of filled cells in the cache folder, so that a prefill of the same prompts by the same engine is done once and not in every process."""

import hashlib
import json
import os
import tempfile

# What all states may take; beyond it those that were not used for longest go. One that is larger than the share is not kept.
MOST_BYTES = 2 << 30
MOST_OF_ONE = 256 << 20


def cache_folder():
    """Where conversions are kept, the place of decodelab's own: $DECODELAB_CACHE, else $XDG_CACHE_HOME/decodelab, else ~/.cache/decodelab."""
    base = os.environ.get("DECODELAB_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "decodelab")
    return os.path.join(base, "peers")


def place(folder, key):
    return os.path.join(folder, hashlib.sha256(key.encode()).hexdigest()[:32])


def load(folder, key):
    """(tokens, blobs) as they were kept, None where there is nothing or it is damaged."""
    path = place(folder, key)
    try:
        with open(path, "rb") as file:
            head, body = json.loads(file.readline()), file.read()
        if head["key"] != key or hashlib.sha256(body).hexdigest() != head["sha256"] or len(body) != sum(head["sizes"]):
            return None
        os.utime(path)
        blobs, begin = [], 0
        for size in head["sizes"]:
            blobs.append(body[begin : begin + size])
            begin += size
        return head["tokens"], blobs
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(folder, key, tokens, blobs):
    """Writes them whole or not at all, and returns when they are on the disk: nothing is written later, beside a timed step."""
    body = b"".join(bytes(blob) for blob in blobs)
    if len(body) > MOST_OF_ONE:
        return
    head = {"key": key, "tokens": tokens, "sizes": [len(blob) for blob in blobs], "sha256": hashlib.sha256(body).hexdigest()}
    draft = None
    try:
        os.makedirs(folder, exist_ok=True)
        make_room(folder, len(body))
        handle, draft = tempfile.mkstemp(prefix="draft-", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, place(folder, key))
    except OSError:  # no room, or no such place: the next process prefills again
        if draft and os.path.exists(draft):
            os.unlink(draft)


def make_room(folder, more):
    found = sorted(((status := entry.stat()).st_mtime_ns, status.st_size, entry.path) for entry in os.scandir(folder) if entry.is_file())
    held = more + sum(size for _, size, _ in found)
    for _, size, path in found:
        if held <= MOST_BYTES:
            return
        os.unlink(path)
        held -= size
