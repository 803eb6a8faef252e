"""`InUse`: who uses an object. One thread at a time does, and another one gets an error that names the object."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from threading import RLock
from typing import Any, Protocol, TypeVar, cast

from ..errors import LzsError

_Method = TypeVar("_Method", bound=Callable[..., Any])


class InUse:
    """Who uses an object. In a ``with`` statement it is the running thread, which may enter another one meanwhile.

    ``what`` names the object, and ``instead`` says what each thread should have: an LzsError says both while another
    thread uses it. Nothing here ever waits. ``also``: what is used with the object, from the next ``with`` on.
    """

    also: "InUse | None" = None

    def __init__(self, what: str, instead: str) -> None:
        self._what, self._instead = what, instead
        self._lock = RLock()
        self._entered: list[InUse | None] = []  # what is used with it in each ``with`` of the thread that has the lock
        self._sharers: list[None] = []  # one for each: to add one and to take one are atomic
        self._ends = False
        self._late: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise self.refusal()
        also = self.also
        try:
            if also is not None:
                also.__enter__()
        except BaseException:
            self._lock.release()
            raise
        self._entered.append(also)

    def __exit__(self, *_: object) -> None:
        also = self._entered.pop()
        if also is not None:
            also.__exit__()
        self._lock.release()
        if not self._entered:
            self._catch_up()

    def refusal(self) -> LzsError:
        """Return the error for a thread that cannot use it now."""
        return LzsError(f"{self._what} is in use by another thread: {self._instead}")

    def share(self) -> None:
        """Begin to use what never changes, in any thread, until `leave`; LzsError while the object is being closed."""
        self._sharers.append(None)  # before the question, as `close` asks after it said that it ends
        if self._ends:
            self._sharers.pop()
            raise LzsError(f"{self._what} is being closed by another thread: {self._instead}")

    def leave(self) -> None:
        """End what `share` began."""
        self._sharers.pop()

    def close(self, free: Callable[[], object]) -> None:
        """Call what frees the object; LzsError while anything uses it, be it in this thread."""
        with self:
            self._ends = True
            try:
                if len(self._entered) > 1 or self._sharers:
                    raise LzsError(f"{self._what} is in use: close it when nothing uses it any more")
                free()
            finally:
                self._ends = False

    def finish(self, end: Callable[[], object]) -> None:
        """Call what ends a use: now, or in the thread that uses the object meanwhile, as soon as it no longer does."""
        if self._lock.acquire(blocking=False):
            try:
                end()
            finally:
                self._lock.release()
        else:
            self._late.append(end)
            self._catch_up()  # that thread may have ended by now

    def _catch_up(self) -> None:
        while self._late and self._lock.acquire(blocking=False):
            try:
                with suppress(Exception):  # the thread that asked for it has gone on
                    self._late.pop()()
            finally:
                self._lock.release()


class Used(Protocol):
    """What has an `InUse`."""

    @property
    def in_use(self) -> InUse:
        """Who uses it."""


@contextmanager
def using(*objects: Used | None) -> Iterator[None]:
    """Use objects within a ``with`` block; None is nothing. LzsError where another thread uses one of them."""
    with ExitStack() as stack:
        for each in objects:
            if each is not None:
                stack.enter_context(each.in_use)
        yield


def one_thread(method: _Method) -> _Method:
    """Have a method use its object (``in_use``), as one thread at a time can."""

    @wraps(method)
    def alone(self: Used, *arguments: Any, **keywords: Any) -> Any:
        with self.in_use:
            return method(self, *arguments, **keywords)

    return cast(_Method, alone)


def any_thread(method: _Method) -> _Method:
    """Have a method share its object (``in_use``), as any number of threads can."""

    @wraps(method)
    def shared(self: Used, *arguments: Any, **keywords: Any) -> Any:
        in_use = self.in_use  # one object for both ends: a model that is being made has a new one each time
        in_use.share()
        try:
            return method(self, *arguments, **keywords)
        finally:
            in_use.leave()

    return cast(_Method, shared)
