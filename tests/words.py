"""Infinite words of two letters that repeat themselves as little as can be, or nearly."""


def fibonacci(n: int) -> list[int]:
    """The beginning of the Fibonacci word, 0100101..., which has cubes and no fourth power."""
    a, b = [0], [0, 1]
    while len(b) < n:
        a, b = b, b + a
    return b[:n]


def thue_morse(n: int) -> list[int]:
    """The beginning of the Thue-Morse word, 0110100..., which has squares and no cube."""
    return [i.bit_count() % 2 for i in range(n)]
