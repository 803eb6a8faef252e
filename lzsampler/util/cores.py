"""How many CPU cores this process may use."""

import ctypes
import os
import sys
from pathlib import Path


def usable_cores() -> int:
    """Return the number of logical cores that this process may run on, at least 1."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def physical_cores() -> int:
    """Return the number of physical cores that this process may use; hyper-threads only slow a decode down."""
    if sys.platform == "darwin":
        return _mac_cores() or max(1, os.cpu_count() or 1)
    if not hasattr(os, "sched_getaffinity"):
        return max(1, (os.cpu_count() or 2) // 2)  # Windows: most of its processors have two threads for each core
    cores = set()
    for cpu in os.sched_getaffinity(0):
        try:
            siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
        except OSError:
            siblings = str(cpu)
        cores.add(siblings)
    return len(cores)


def _mac_cores() -> int:
    """Return the physical cores of a Mac, only the performance cores if it has two kinds; 0 if it does not say."""
    for name in (b"hw.perflevel0.physicalcpu", b"hw.physicalcpu"):
        number, size = ctypes.c_int32(), ctypes.c_size_t(4)
        try:
            status = ctypes.CDLL(None).sysctlbyname(name, ctypes.byref(number), ctypes.byref(size), None, 0)
        except (AttributeError, OSError):
            return 0
        if status == 0 and number.value > 0:
            return number.value
    return 0
