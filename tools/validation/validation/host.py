"""What the host of a virtual machine takes away: it is seen only where every core is wanted."""

import multiprocessing
import sys
import time

from . import program

LOOK_S = 1.0
# As much as voids a block.
MOST_STOLEN = 0.02
PAUSE_S = 20.0
PATIENCE_S = 1800.0


class CoreTime:
    """The kernel's account of all cores, from now on."""

    def __init__(self):
        self.start = self._now()

    def stolen_share(self):
        """Of the time in which something wanted a core; 0 where the machine has no host above it."""
        user, nice, system, _, _, irq, softirq, steal = (after - before for before, after in zip(self.start, self._now()))
        wanted = user + nice + system + irq + softirq + steal
        return steal / wanted if wanted else 0.0

    @staticmethod
    def _now():
        with open("/proc/stat") as file:
            return [int(word) for word in file.readline().split()[1:9]]


def _spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def stolen_now():
    """The share that is stolen while every core is wanted for LOOK_S."""
    spinning = [multiprocessing.Process(target=_spin, args=(LOOK_S,)) for _ in range(program.threads())]
    account = CoreTime()
    for process in spinning:
        process.start()
    for process in spinning:
        process.join()
    return account.stolen_share()


def wait_until_quiet(within):
    """Whether the host left the cores alone within PATIENCE_S, and while within() holds: a trial that is called calm begins so, and is kept whatever comes then."""
    start = time.monotonic()
    while within() and time.monotonic() - start < PATIENCE_S:
        stolen = stolen_now()
        if stolen <= MOST_STOLEN:
            return True
        print(f"{time.strftime('%H:%M:%S')} the host takes {stolen:.0%} of the cores' time: waiting", file=sys.stderr, flush=True)
        time.sleep(PAUSE_S)
    return False
