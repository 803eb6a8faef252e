"""Two audits of answers to the same prompts: who is paired with whom, and what is said about the pairs."""

import json

import pytest
from scipy.stats import binom, binomtest

from lzsampler import LzsError
from lzsampler.auditing.diff import compare
from lzsampler.auditing.work_folder import Outcome
from lzsampler.util.clustered import paired_difference


def side(text: str, file: str = "a.jsonl") -> list[Outcome]:
    """Outcomes out of "x y! z": ids, those with ! loop."""
    return [Outcome(file, word.rstrip("!"), word.endswith("!")) for word in text.split()]


def test_newly_cured_still() -> None:
    made = compare(side("a! b c! d! e x"), side("y! c a! b! e d", "b.jsonl"))
    assert [pair.id for pair in made.newly] == ["b"]
    assert [pair.id for pair in made.cured] == ["c", "d"]
    assert made.still == (("a", "a.jsonl", "b.jsonl", 0, 0),)
    assert (made.records, made.only_a, made.only_b) == (5, 1, 1)
    assert (made.rate_a, made.rate_b, made.difference) == (0.6, 0.4, -0.2)
    assert made.p == pytest.approx(binomtest(1, 3).pvalue - binom.pmf(1, 3, 0.5))
    assert made.interval.low < made.difference < made.interval.high
    assert made.verdict() == "no significant difference"
    assert json.loads(json.dumps(made.to_json()))["cured"][0] == {
        "id": "c", "file_a": "a.jsonl", "file_b": "b.jsonl", "record_a": 0, "record_b": 0
    }  # fmt: skip


def test_stuck_records_are_counted_beside_the_verdict() -> None:
    before = [outcome._replace(stuck=outcome.id == "a") for outcome in side("a b c! only_a")]
    after = [outcome._replace(stuck=outcome.id != "b") for outcome in side("a b c! only_b")]
    made = compare(before, after)
    assert (made.stuck_a, made.stuck_b) == (1, 2)  # of the pairs
    assert (made.to_json()["stuck_a"], made.to_json()["stuck_b"]) == (1, 2)
    assert made.verdict() == "no significant difference"


def test_significance_is_that_of_mcnemar() -> None:
    before = side(" ".join(f"r{i}" for i in range(40)))
    after = side(" ".join(f"r{i}{'!' if i < 6 else ''}" for i in range(40)))
    worse = compare(before, after)
    assert worse.p == pytest.approx(1 / 2**6)  # the mid-p
    assert worse.verdict() == "worse"
    assert worse.verdict(alpha=0.01) == "no significant difference"
    assert compare(after, before).verdict() == "better"
    assert worse.interval.low > 0
    assert compare(before, before).p == 1.0


def test_files_of_the_same_name_are_partners() -> None:
    a = side("0! 1", "runs/a/x.jsonl") + side("0 1", "runs/a/sub/y.jsonl")
    b = side("0 1", "elsewhere/sub/y.jsonl") + side("0 1!", "elsewhere/x.jsonl")
    made = compare(a, b)
    assert made.cured == (("0", "runs/a/x.jsonl", "elsewhere/x.jsonl", 0, 0),)
    assert made.newly == (("1", "runs/a/x.jsonl", "elsewhere/x.jsonl", 0, 0),)
    assert made.records == 4


def test_ids_alone_where_no_name_is_in_both() -> None:
    a = side("p! q", "a/1.jsonl") + side("r s", "a/2.jsonl")
    made = compare(a, side("p q! r s", "b/all.jsonl"))
    assert (made.records, made.cured[0].id, made.newly[0].id) == (4, "p", "q")
    repeated = side("p q", "a/1.jsonl") + side("p", "a/2.jsonl")
    with pytest.raises(LzsError, match=r"id 'p' is in a/1.jsonl and in a/2.jsonl.*file by file"):
        compare(repeated, side("p q", "b/all.jsonl"))


def test_several_answers_to_a_prompt_are_paired_in_order() -> None:
    made = compare(side("p p! p q"), side("p p p! p!"))
    assert (len(made.cured), len(made.newly), made.only_a, made.only_b) == (1, 1, 1, 1)

    assert made.by_order == 3
    assert compare(side("p q"), side("p q")).by_order == 0


def of_models(text: str) -> list[Outcome]:
    """Outcomes out of "a.x b.x!": models and ids, numbered from 0."""
    made = []
    for number, word in enumerate(text.split()):
        model, id = word.rstrip("!").split(".")
        made.append(Outcome("a.jsonl", id, word.endswith("!"), number=number, model=model))
    return made


def test_records_of_several_models_are_paired_by_id_and_model() -> None:
    a, b = "a.p! a.q! b.p b.q", "b.p b.q a.p! a.q!"
    made = compare(of_models(a), of_models(b))
    assert (len(made.newly), len(made.cured), made.by_order) == (0, 0, 0)
    assert [(pair.record_a, pair.record_b) for pair in made.still] == [(0, 2), (1, 3)]
    assert compare(of_models(a + " a.p!"), of_models(b + " a.p")).by_order == 2
    more = compare(
        of_models(a + " c.p! c.s"), of_models(b + " d.q! d.s!")
    )  # models of one side leave the others as they are
    assert (more.records, len(more.newly), len(more.cured), more.only_a, more.only_b) == (5, 1, 0, 1, 1)
    other = compare(of_models("a.p! c.p"), of_models("b.p d.p"))  # no model of both sides, so that these cannot tell
    assert (other.records, len(other.cured), other.by_order) == (2, 1, 2)
    assert compare(of_models("a.p! b.q"), of_models("b.p! a.q")).records == 2  # each id once: whatever the model


def test_fewer_than_half_compared() -> None:
    for right, few in (("p q", False), ("p", True), ("p q r s t u v w", False), ("p q r s t u v w x", True)):
        assert compare(side("p q r s"), side(right)).few is few, right
    assert not compare(side("p q r s"), side("x")).few  # two groups: all are compared
    assert not compare(evaluation("T=0", "p q"), evaluation("T=0", "p q") + 4 * evaluation("T=1", "p q")).few


def test_a_conversation_is_drawn_whole_but_not_a_task_with_a_slash() -> None:
    """HumanEval/1 and HumanEval/2 are independent, the messages of a conversation are not."""
    tasks = [Outcome("a", f"HumanEval/{i}", False) for i in range(30)]
    looping = [outcome._replace(looping=i % 3 == 0) for i, outcome in enumerate(tasks)]
    independent = compare(tasks, looping).interval
    assert independent == paired_difference([i % 3 == 0 for i in range(30)], [0] * 30, [1] * 30)
    talks = [outcome._replace(conversation=f"c{i // 3}") for i, outcome in enumerate(tasks)]
    together = [outcome._replace(looping=i // 3 % 3 == 0) for i, outcome in enumerate(talks)]
    clustered = compare(talks, together).interval
    assert clustered.high - clustered.low > 1.4 * (independent.high - independent.low)


def test_an_id_is_not_the_number_of_a_line() -> None:
    """Rows with the ids 0 and 1 were paired with the first two lines of a file without ids."""
    named, unnamed = side("0 1! 2"), [outcome._replace(named=False) for outcome in side("0! 1 2", "b.jsonl")]
    made = compare(named, unnamed)
    assert (made.paired, made.records_a, made.records_b, made.by_number) == (False, 3, 3, 0)
    mixed = compare(named, [*unnamed[:1], *side("1 2", "b.jsonl")])
    assert (mixed.records, mixed.only_a, mixed.only_b, mixed.by_number) == (2, 1, 1, 0)
    assert compare(unnamed, unnamed).by_number == 3


def evaluation(setting: str, text: str, file: str = "a/transcripts.jsonl") -> list[Outcome]:
    """Texts of an evaluation out of "p1 p2!": prompts, those with ! loop with the second of two seeds."""
    return [
        Outcome(
            file, f"{p}, {setting}, seed {seed}", word.endswith("!") and seed == 2, False, True, p, f"{p}, seed {seed}"
        )
        for word in text.split()
        for p in [word.rstrip("!")]
        for seed in (1, 2)
    ]


def test_evaluations_of_different_settings_are_paired_by_prompt_and_seed() -> None:
    a = evaluation("T=0", "p1! p2! p3 p4!")
    b = evaluation("T=0 lz_penalty=0.3", "p1 p2! p3 p5", "b/transcripts.jsonl")
    made = compare(a, b)
    assert (made.paired, made.records, made.by_prompt, made.by_number, made.conversations) == (True, 6, 6, 0, 3)
    assert made.cured == (("p1, seed 2", "a/transcripts.jsonl", "b/transcripts.jsonl", 0, 0),)
    assert [pair.id for pair in made.still] == ["p2, seed 2"]
    assert (made.only_a, made.only_b) == (2, 2)
    same = compare(a, a)
    assert (same.by_prompt, same.records, same.still[0].id) == (0, 8, "p1, T=0, seed 2")


def test_evaluations_of_several_settings_have_no_partners_by_prompt() -> None:
    """Which of two settings would be the partner of a third? Where one is in both grids, it is compared alone."""
    a, b = evaluation("T=0", "p1! p2"), evaluation("T=0 lz_penalty=0.3", "p1 p2")
    other = evaluation("T=0 dry_multiplier=0.8", "p1 p2", "b/transcripts.jsonl")
    made = compare([*a, *b], other)
    assert (made.paired, made.records_a, made.records_b) == (False, 8, 4)
    common = compare([*a, *b], [*other, *evaluation("T=0", "p1 p2", "b/transcripts.jsonl")])
    assert (common.records, common.by_prompt, common.only_a, common.only_b) == (4, 0, 4, 4)
    assert [pair.id for pair in common.cured] == ["p1, T=0, seed 2"]
    strangers = [*other, *side("x y", "b/transcripts.jsonl")]  # not all of them are of an evaluation
    assert not compare(a, strangers).paired


def test_no_interval_is_without_a_width() -> None:
    for before, after in (("a b c", "a b c"), ("a! b! c!", "a b c"), ("a! b!", "a! b!"), ("a", "a!")):
        made = compare(side(before), side(after))
        assert made.interval.low <= made.difference <= made.interval.high
        assert made.interval.high - made.interval.low > 0.4, (before, after)


def test_nothing_in_common() -> None:
    made = compare(side("a b! c"), side("x! y!"))
    assert (made.paired, made.records, made.only_a, made.only_b) == (False, 0, 3, 2)
    assert (made.looping_a, made.records_a, made.looping_b, made.records_b) == (1, 3, 2, 2)
    # Of 10 choices of B's two, 3 have both that loop, as far apart as these are, and 1 has none, which is further.
    assert made.p == pytest.approx(0.1 + 0.3 / 2, abs=0.02)
    with pytest.raises(LzsError, match="nothing to compare: A has no record"):
        compare([], side("x"))
    with pytest.raises(LzsError, match="nothing to compare: B has no record"):
        compare(side("x"), [])


def test_equal_ids_are_counted() -> None:
    """They are one conversation, so that a hundred rows with one id tell as little as one."""
    made = compare(side("a! a! a! b"), side("a a a b b", "b.jsonl"))
    assert (made.records, made.conversations, made.repeated_a, made.repeated_b) == (4, 2, 2, 3)
    assert (made.to_json()["repeated_a"], made.to_json()["repeated_b"]) == (2, 3)
    groups = compare(side("x x"), side("y y y", "b.jsonl"))
    assert (groups.paired, groups.repeated_a, groups.repeated_b) == (False, 1, 2)
