"""`forced_of`: how many tokens of a text are forced by a grammar."""

from ..constraint.grammar import Grammar
from ..sampler import Sampler


def forced_of(grammar: Grammar, text: str) -> tuple[int, int] | None:
    """Return (number of tokens that the grammar forces, number of tokens) for a text.

    At each place the text is split by the longest token that the grammar allows. None if there is no such token, or if
    the grammar does not allow the text. The end token is not counted.
    """
    data = text.encode()
    by_bytes = {piece: token for token, piece in reversed(list(enumerate(grammar.vocabulary.pieces))) if piece}
    longest = max(map(len, by_bytes), default=0)
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    forced = tokens = at = 0
    while at < len(data):
        only, words = sampler.forced(), sampler.allowed()
        assert words is not None
        for end in range(min(len(data), at + longest), at, -1):
            token = by_bytes.get(data[at:end])
            if token is not None and words[token // 32] >> (token % 32) & 1:
                break
        else:
            return None
        sampler.accept(token)
        forced += only is not None
        tokens += 1
        at = end
    return (forced, tokens) if grammar.match(text) == "yes" else None
