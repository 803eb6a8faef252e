"""Random settings of the LZ penalty, for hypothesis: fields of `Params`."""

from typing import Any

from hypothesis import strategies as st

from samplers import mask_of

Fields = st.SearchStrategy[dict[str, Any]]


def default_rule(n_vocab: int, strengths: tuple[float, ...] = (0.0, 0.3, 1.0), tokens: int = 4) -> Fields:
    """The default rule. ``tokens``: separators and commas are some of so many, the first ones."""

    def fitting(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "lz_min_match": min(fields["lz_min_match"], fields["lz_window"])}

    ids = st.sets(st.integers(0, min(n_vocab, tokens) - 1), max_size=2)
    sets = st.just(b"") | ids.map(lambda chosen: mask_of(n_vocab, sorted(chosen)).tobytes())
    return st.fixed_dictionaries(
        {
            "lz_penalty": st.sampled_from(strengths),
            "lz_window": st.sampled_from([2, 4, 16, 512]),
            "lz_min_match": st.integers(1, 6),
            "lz_run_penalty": st.sampled_from([0.0, 0.1, 2.0]),
            "lz_run_allowance": st.sampled_from([0, 1, 5, 20]),
            "lz_separators": sets,
            "lz_commas": sets,
        }
    ).map(fitting)


def paper_rule(strengths: tuple[float, ...] = (0.0, 0.15, 1.0)) -> Fields:
    return st.fixed_dictionaries(
        {
            "lz_rule": st.just("paper"),
            "lz_penalty": st.sampled_from(strengths),
            "lz_window": st.sampled_from([4, 16, 512]),
            "lz_buffer": st.sampled_from([1, 2, 3]),
            "lz_formula": st.sampled_from(["rate", "distance", "codelength"]),
        }
    )


def either_rule(n_vocab: int, strengths: tuple[float, ...] = (0.0, 0.15, 1.0)) -> Fields:
    return default_rule(n_vocab, strengths) | paper_rule(strengths)
