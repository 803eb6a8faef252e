"""The oracle of proper tokenization: DirectMerge and CartesianMerge as the article defines them, slow and readable.

Tran-Thien, "Fast, High-Fidelity LLM Decoding with Regex Constraints" (2024), and its technical appendix, whose
algorithms the functions name. A token is its text, and a tokenizer is its list of merges in order: `tokenize` applies
one merge after the other to a whole text, from left to right.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from derivatives import derivative, nullable, parsed

Merges = Sequence[tuple[str, str]]


@dataclass
class Automaton:
    """A deterministic automaton: state -> token -> state."""

    start: int
    accepts: set[int]
    edges: dict[int, dict[str, int]]

    @property
    def size(self) -> tuple[int, int]:
        """Number of states, and of transitions."""
        return len(self.edges), sum(map(len, self.edges.values()))

    def into(self, token: str, state: int) -> list[int]:
        """Return the states from which a token leads to ``state``."""
        return [source for source, edges in self.edges.items() if edges.get(token) == state]

    def new_state(self, like: int) -> int:
        """Return a new state without edges that accepts as another one does."""
        made = max(self.edges) + 1
        self.edges[made] = {}
        if like in self.accepts:
            self.accepts.add(made)
        return made

    def remove(self, states: set[int]) -> None:
        """Remove states and the edges that lead to them."""
        self.accepts -= states
        self.edges = {
            state: {token: to for token, to in edges.items() if to not in states}
            for state, edges in self.edges.items()
            if state not in states
        }

    def trim(self) -> None:
        """Keep the states on a way from the start to an end, and the start."""
        reached = _closure({self.start}, lambda state: self.edges[state].values())
        back: dict[int, set[int]] = {state: set() for state in self.edges}
        for state, edges in self.edges.items():
            for to in edges.values():
                back[to].add(state)
        useful = reached & _closure(set(self.accepts), lambda state: back[state])
        self.remove(set(self.edges) - useful - {self.start})

    def sequences(self, longest: int) -> Iterator[tuple[str, ...]]:
        """Yield the sequences of at most ``longest`` tokens that it accepts."""
        todo: list[tuple[int, tuple[str, ...]]] = [(self.start, ())]
        while todo:
            state, tokens = todo.pop()
            if state in self.accepts:
                yield tokens
            if len(tokens) < longest:
                todo += [(to, (*tokens, token)) for token, to in self.edges[state].items()]


def _closure(states: set[int], after: object) -> set[int]:
    reached, todo = set(states), list(states)
    while todo:
        for state in after(todo.pop()):  # type: ignore[operator]
            if state not in reached:
                reached.add(state)
                todo.append(state)
    return reached


def tokenize(text: str, merges: Merges) -> tuple[str, ...]:
    """Return the tokens of a text."""
    tokens = list(text)
    for left, right in merges:
        made: list[str] = []
        for token in tokens:
            if made and made[-1] == left and token == right:
                made[-1] = left + right
                # What was just made is not merged again by the same merge: only a token that is `left` is.
            else:
                made.append(token)
        tokens = made
    return tuple(tokens)


def of_characters(pattern: str, alphabet: Iterable[str]) -> Automaton:
    """Return the minimal automaton of the characters of a regular expression."""
    letters = sorted(set(alphabet))
    expressions = {parsed(pattern): 0}
    edges: dict[int, dict[str, int]] = {}
    todo = list(expressions)
    while todo:
        expression = todo.pop()
        at = edges.setdefault(expressions[expression], {})
        for letter in letters:
            after = derivative(expression, ord(letter))
            if after is None:
                continue
            if after not in expressions:
                expressions[after] = len(expressions)
                todo.append(after)
            at[letter] = expressions[after]
    made = Automaton(0, {number for expression, number in expressions.items() if nullable(expression)}, edges)
    made.trim()
    return _minimal(made)


def of_texts(texts: Iterable[str]) -> Automaton:
    """Return the automaton of the characters of some texts in which each text has an end of its own."""
    made = Automaton(0, set(), {0: {}})
    for text in texts:
        state = made.start
        for letter in text:
            if letter not in made.edges[state]:
                made.edges[state][letter] = len(made.edges)
                made.edges[len(made.edges)] = {}
            state = made.edges[state][letter]
        made.accepts.add(state)
    return made


def _minimal(automaton: Automaton) -> Automaton:
    block = {state: int(state in automaton.accepts) for state in automaton.edges}
    while True:
        signs = {
            state: (block[state], tuple(sorted((token, block[to]) for token, to in edges.items())))
            for state, edges in automaton.edges.items()
        }
        numbers = {sign: number for number, sign in enumerate(sorted(set(signs.values())))}
        finer = {state: numbers[sign] for state, sign in signs.items()}
        if len(set(finer.values())) == len(set(block.values())):
            break
        block = finer
    edges = {block[state]: {t: block[to] for t, to in out.items()} for state, out in automaton.edges.items()}
    return Automaton(block[automaton.start], {block[state] for state in automaton.accepts}, edges)


def of_tokens(characters: Automaton, vocabulary: Iterable[str]) -> Automaton:
    """Return Outlines' automaton: all ways to write the texts with the tokens of a vocabulary."""
    edges: dict[int, dict[str, int]] = {state: {} for state in characters.edges}
    for token in vocabulary:
        for state in characters.edges:
            to: int | None = state
            for letter in token:
                to = characters.edges[to].get(letter) if to is not None else None
            if to is not None:
                edges[state][token] = to
    made = Automaton(characters.start, set(characters.accepts), edges)
    made.trim()
    return made


def direct_merge(characters: Automaton, merges: Merges) -> Automaton:
    """Return the automaton of the proper token sequences alone (algorithms 1 and 2), out of that of the characters."""
    made = Automaton(characters.start, set(characters.accepts), {s: dict(e) for s, e in characters.edges.items()})
    for left, right in merges:
        if left == right:
            _merge_same(made, left)
        else:
            for state in list(made.edges):
                _process(made, state, left, right)
        made.trim()
    return made


def _process(automaton: Automaton, state: int, left: str, right: str) -> None:
    """Apply a merge where its left part leads to a state from which its right part leads on (algorithm 1)."""
    if state not in automaton.edges or right not in automaton.edges[state]:
        return
    sources = automaton.into(left, state)
    if not sources:
        return
    for source in sources:
        automaton.edges[source][left + right] = automaton.edges[state][right]
    comes_otherwise = state == automaton.start or any(
        to == state and token != left for edges in automaton.edges.values() for token, to in edges.items()
    )
    goes_otherwise = state in automaton.accepts or any(token != right for token in automaton.edges[state])
    if comes_otherwise and goes_otherwise:
        copy = automaton.new_state(like=state)
        for source in sources:
            automaton.edges[source][left] = copy
        automaton.edges[copy] = {token: to for token, to in automaton.edges[state].items() if token != right}
    elif comes_otherwise:
        for source in sources:
            del automaton.edges[source][left]
    elif goes_otherwise:
        del automaton.edges[state][right]
    else:
        automaton.remove({state})


def _merge_same(automaton: Automaton, token: str) -> None:
    """Apply a merge of a token with itself: in a run of them it joins the first two, the next two ... (algorithm 2)."""
    run = {state for state, edges in automaton.edges.items() if token in edges and automaton.into(token, state)}
    odd = {state: automaton.new_state(like=state) for state in run}
    for state in list(automaton.edges):
        if state in odd.values():
            continue
        edges = automaton.edges[state]
        for label, to in list(edges.items()):
            inside = label == token and to in run
            if state in run:
                automaton.edges[odd[state]][label] = to
            if inside:
                edges[label] = odd[to]
    for state in odd.values():
        _process(automaton, state, token, token)


@dataclass
class TokenizerAutomaton:
    """What the tokenizer allows behind each token: the token leads to a state, and the state forbids tokens."""

    behind: dict[str, int]
    forbidden: dict[int, frozenset[str]]

    def allows(self, first: str, second: str) -> bool:
        """Return whether two tokens may stand side by side."""
        return second not in self.forbidden[self.behind[first]]


def of_tokenizer(letters: Iterable[str], merges: Merges) -> TokenizerAutomaton:
    """Return DirectMerge's automaton of all texts (algorithm 3)."""
    behind = dict.fromkeys(letters, 0)
    forbidden: list[set[str]] = [set()]
    for left, right in merges:
        if left not in behind or right not in behind:
            continue
        state, target = behind[left], behind[right]
        if right in forbidden[state]:
            continue
        shared = state == 0 or any(token != left and to == state for token, to in behind.items())
        if left == right or shared:
            behind[left] = len(forbidden)
            forbidden.append({*forbidden[state], right})
        else:
            forbidden[state].add(right)
        behind[left + right] = target
        for tokens in forbidden:
            if left in tokens:
                tokens.add(left + right)
    return TokenizerAutomaton(behind, {state: frozenset(tokens) for state, tokens in enumerate(forbidden)})


def cartesian_merge(tokens: Automaton, tokenizer: TokenizerAutomaton) -> Automaton:
    """Return the relevant part of the product of Outlines' automaton and the tokenizer's (algorithm 5)."""
    numbers: dict[tuple[int, frozenset[str]], int] = {(tokens.start, frozenset()): 0}
    edges: dict[int, dict[str, int]] = {}
    todo = list(numbers)
    while todo:
        state, forbidden = pair = todo.pop()
        out = edges.setdefault(numbers[pair], {})
        for token, to in tokens.edges[state].items():
            if token in forbidden or token not in tokenizer.behind:
                continue
            after = (to, tokenizer.forbidden[tokenizer.behind[token]])
            if after not in numbers:
                numbers[after] = len(numbers)
                todo.append(after)
            out[token] = numbers[after]
    made = Automaton(0, {number for (state, _), number in numbers.items() if state in tokens.accepts}, edges)
    made.trim()
    return made
