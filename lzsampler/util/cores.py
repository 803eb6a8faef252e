"""Counts the CPU cores that this process may use."""

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path("/")  # root of the files of cgroups; tests set another root


def usable_cores() -> int:
    """Return the number of logical cores that affinity and cgroups allow this process, at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # The system is not Linux.
        return os.cpu_count() or 1
    return min(cores, _quota() or cores)


def physical_cores() -> int:
    """Return the number of physical cores that this process may use. Hyper-threads would only slow down a decode."""
    if sys.platform == "darwin":
        return _mac_cores() or max(1, os.cpu_count() or 1)
    if not hasattr(os, "sched_getaffinity"):
        return max(1, (os.cpu_count() or 2) // 2)  # On Windows, most processors have two threads per core.
    cores = set()
    for cpu in os.sched_getaffinity(0):
        try:
            siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
        except OSError:
            siblings = str(cpu)
        cores.add(siblings)
    return min(len(cores), _quota() or len(cores))


def _quota() -> int | None:
    """Return the number of whole cores, at least 1, that the CPU quotas of cgroups allow; None without a quota.

    A container limited to 2 of 64 cores still sees all 64. If it runs more threads than its quota allows, the kernel
    stops the threads in every period. Parent groups may have quotas, too; the lowest quota applies.
    """
    quotas = [quota / period for quota, period in _quotas() if quota > 0 and period > 0]
    return max(1, int(min(quotas))) if quotas else None


def _quotas() -> Iterator[tuple[int, int]]:
    """Yield (quota, period), in microseconds, for each cgroup of this process that has a CPU limit."""
    try:
        memberships = (ROOT / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    mounts = ROOT / "sys/fs/cgroup"
    for membership in memberships:  # hierarchy:controllers:/path
        if membership.count(":") < 2:
            continue
        _, controllers, path = membership.split(":", 2)
        below = PurePosixPath(path.strip("/"))
        for group in (below, *below.parents):
            if not controllers:  # cgroup v2
                yield from _numbers(mounts / group / "cpu.max")
            elif "cpu" in controllers.split(","):  # cgroup v1
                folder = mounts / "cpu" / group
                yield from _numbers(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")


def _numbers(*files: Path) -> Iterator[tuple[int, int]]:
    """Yield quota and period of a CPU limit, from one file (cgroup v2) or two (v1).

    Nothing is yielded if a file is missing, or if there is no limit ("max", -1).
    """
    try:
        quota, period = " ".join(file.read_text() for file in files).split()
        yield int(quota), int(period)
    except (OSError, ValueError):
        return


def _mac_cores() -> int:
    """Return the number of physical cores of a Mac, or only of its performance cores; 0 if macOS does not report it."""
    for name in (b"hw.perflevel0.physicalcpu", b"hw.physicalcpu"):
        number, size = ctypes.c_int32(), ctypes.c_size_t(4)
        try:
            status = ctypes.CDLL(None).sysctlbyname(name, ctypes.byref(number), ctypes.byref(size), None, 0)
        except (AttributeError, OSError):
            return 0
        if status == 0 and number.value > 0:
            return number.value
    return 0
