"""`InUse`: lets one thread at a time use an object. Any other thread gets an error that names the object."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from threading import RLock
from typing import Any, Protocol, TypeVar, cast

from ..errors import LzsError

_Method = TypeVar("_Method", bound=Callable[..., Any])


class InUse:
    """The use of an object by one thread at a time. A thread uses the object within ``with``, which may be nested.

    ``what`` names the object, and ``instead`` says what each thread needs instead. If another thread tries to use the
    object meanwhile, it gets an LzsError with both texts. No thread waits. ``also``: a second `InUse`, which each later
    ``with`` enters, too.
    """

    also: "InUse | None" = None

    def __init__(self, what: str, instead: str) -> None:
        self._what, self._instead = what, instead
        self._lock = RLock()
        self._entered: list[InUse | None] = []  # value of ``also`` in each nested ``with``, outermost first
        self._sharers: list[None] = []  # one element per sharer, because append and pop are atomic
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
        """Return the error for a thread that cannot use the object now."""
        return LzsError(f"{self._what} is in use by another thread: {self._instead}")

    def share(self) -> None:
        """Begin to use the object's constant parts, in any thread, until `leave`. Raises LzsError during `close`."""
        self._sharers.append(None)  # This comes before the check, as `close` sets _ends before it looks at _sharers.
        if self._ends:
            self._sharers.pop()
            raise LzsError(f"{self._what} is being closed by another thread: {self._instead}")

    def leave(self) -> None:
        """End the use that `share` began."""
        self._sharers.pop()

    def close(self, free: Callable[[], object]) -> None:
        """Call ``free``, which frees the object. Raises LzsError while any thread, even this one, uses the object."""
        with self:
            self._ends = True
            try:
                if len(self._entered) > 1 or self._sharers:
                    raise LzsError(f"{self._what} is in use: close it when nothing uses it any more")
                free()
            finally:
                self._ends = False

    def finish(self, end: Callable[[], object]) -> None:
        """Call ``end``, which ends a use. If another thread uses the object, ``end`` is called after that use."""
        if self._lock.acquire(blocking=False):
            try:
                end()
            finally:
                self._lock.release()
        else:
            self._late.append(end)
            self._catch_up()  # The other thread may have left the object by now.

    def _catch_up(self) -> None:
        while self._late and self._lock.acquire(blocking=False):
            try:
                with suppress(Exception):  # The caller of `finish` has continued, so it cannot get the error.
                    self._late.pop()()
            finally:
                self._lock.release()


class Used(Protocol):
    """An object that has an `InUse`."""

    @property
    def in_use(self) -> InUse:
        """The `InUse` of the object."""


@contextmanager
def using(*objects: Used | None) -> Iterator[None]:
    """Use objects within a ``with`` block; None is skipped. Raises LzsError if another thread uses one of them."""
    with ExitStack() as stack:
        for each in objects:
            if each is not None:
                stack.enter_context(each.in_use)
        yield


def one_thread(method: _Method) -> _Method:
    """Decorate a method so that only one thread at a time can call it on an object with ``in_use``."""

    @wraps(method)
    def alone(self: Used, *arguments: Any, **keywords: Any) -> Any:
        with self.in_use:
            return method(self, *arguments, **keywords)

    return cast(_Method, alone)


def any_thread(method: _Method) -> _Method:
    """Decorate a method so that any number of threads can call it at a time on an object with ``in_use``."""

    @wraps(method)
    def shared(self: Used, *arguments: Any, **keywords: Any) -> Any:
        in_use = self.in_use  # read once, since the `in_use` of an unfinished model is always new
        in_use.share()
        try:
            return method(self, *arguments, **keywords)
        finally:
            in_use.leave()

    return cast(_Method, shared)
