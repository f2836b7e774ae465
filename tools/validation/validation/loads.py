"""Loads beside a measurement: N1, a thread that streams memory; N2, one that swells and ebbs; and both cores taken."""

import contextlib
import multiprocessing
import os
import time

BUFFER_BYTES = 64 << 20
PERIOD_S = 0.1
N1_DUTY = 0.3
N2_MOST = 0.5
N2_PERIOD_S = 20.0


def _stream(duty_at):
    """Reads a buffer above any cache for its share of each period; duty_at(seconds since the start) is the share."""
    buffer = bytearray(os.urandom(1 << 20) * (BUFFER_BYTES >> 20))
    start = time.monotonic()
    while True:
        begin = time.monotonic()
        duty = duty_at(begin - start)
        while time.monotonic() - begin < duty * PERIOD_S:
            bytes(buffer[: 4 << 20])
        time.sleep(max(0.0, PERIOD_S - (time.monotonic() - begin)))


def _n1():
    _stream(lambda seconds: N1_DUTY)


def _n2():
    """0 to N2_MOST and back to 0 within N2_PERIOD_S."""
    _stream(lambda seconds: N2_MOST * (1 - abs(2 * (seconds % N2_PERIOD_S) / N2_PERIOD_S - 1)))


def _busy():
    while True:
        pass


LOADS = {"calm": [], "N1": [_n1], "N2": [_n2], "saturated": [_busy] * (os.cpu_count() or 1)}


@contextlib.contextmanager
def load(name):
    """The load runs until the block ends, however it ends."""
    processes = [multiprocessing.Process(target=target, daemon=True) for target in LOADS[name]]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
