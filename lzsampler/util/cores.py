"""How many CPU cores this process may use."""

import os
import subprocess
import sys
from pathlib import Path


def usable_cores() -> int:
    """Return the number of logical cores that this process may run on, at least 1."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def physical_cores() -> int:
    """Return the number of physical cores that this process may use, at least 1; hyper-threads only slow a decode down.

    On Apple silicon it is the number of performance cores, since the others hold every step back.
    """
    if sys.platform == "darwin":
        return _apple_cores() or max(1, (os.cpu_count() or 2) // 2)
    if not hasattr(os, "sched_getaffinity"):
        return max(1, (os.cpu_count() or 2) // 2)
    cores = set()
    for cpu in os.sched_getaffinity(0):
        try:
            siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
        except OSError:
            siblings = str(cpu)
        cores.add(siblings)
    return len(cores)


def _apple_cores() -> int:
    """Return the performance cores of an M-series, or else the physical cores of an Intel Mac; 0 if unknown."""
    for name in ("hw.perflevel0.physicalcpu", "hw.physicalcpu"):
        try:
            done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=True, timeout=5)
            return int(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
    return 0
