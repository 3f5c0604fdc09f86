"""From what was retrieved to what the answer is judged by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steelyard.record import Context
from steelyard.recording import assemble, mark_in_prompt, unique

ONE = Context(
    text="The steelyard is a balance with unequal arms. It has been in use since antiquity.", id="1"
)
TWO = Context(
    text="The steelyard is a balance with unequal arms. Its counterweight slides on a beam.", id="2"
)
THREE = Context(text="Rome had many of them.", id="3")


def test_only_what_reached_the_prompt_counts() -> None:
    found = assemble([ONE, TWO, THREE], prompts=[f"Context:\n{TWO.text}\n\nQuestion: what is it?"])
    assert [context.id for context in found.contexts] == ["2"]
    assert found.contexts_source == "in_prompt"
    assert [(context.id, context.in_prompt) for context in found.retrieved] == [
        ("1", False),
        ("2", True),
        ("3", False),
    ]


def test_everything_in_the_prompt_leaves_nothing_to_keep_apart() -> None:
    found = assemble([ONE, THREE], prompts=[ONE.text, THREE.text])
    assert (len(found.contexts), found.retrieved, found.contexts_source) == (2, (), "in_prompt")


def test_nothing_found_in_the_prompt_means_all_count() -> None:
    found = assemble([ONE, TWO], prompts=["A summary of what was found."], source="tool")
    assert found.contexts == (ONE, TWO)
    assert found.contexts_source == "tool"


def test_no_prompt_seen() -> None:
    assert assemble([ONE, ONE], prompts=[]).contexts == (ONE,)
    assert assemble([], prompts=["x"]).contexts == ()


def test_white_space_does_not_count() -> None:
    template = "Context: " + ONE.text.replace(" ", "\n  ")
    assert mark_in_prompt([ONE], [template])[0].in_prompt is True


def test_a_shared_beginning_is_not_enough() -> None:
    """Passages of one store often begin alike; the middle tells them apart."""
    squeezed = TWO.text.replace("arms. Its", "arms.  Its")
    assert [context.in_prompt for context in mark_in_prompt([ONE, TWO], [squeezed])] == [False, True]


def test_a_passage_cut_at_the_end_is_still_found() -> None:
    long = Context(text=" ".join(f"word{n}" for n in range(200)))
    assert mark_in_prompt([long], [long.text[: len(long.text) * 3 // 4]])[0].in_prompt is True


def test_an_empty_passage_is_nowhere() -> None:
    empty, blank = Context(text=""), Context(text=" \n ")
    assert [context.in_prompt for context in mark_in_prompt([empty, blank], ["any \n prompt"])] == [
        False,
        False,
    ]


def test_marking_keeps_everything_else() -> None:
    full = Context(text="Text.", id="x", score=0.5, rank=3, query="q", hop=2)
    (marked,) = mark_in_prompt([full], ["Text."])
    assert marked == Context(text="Text.", id="x", score=0.5, rank=3, query="q", hop=2, seen=1.0)


texts = st.lists(st.text(max_size=20), max_size=8)


@given(texts)
def test_unique_keeps_the_first_of_each_text_in_order(given_texts: list[str]) -> None:
    contexts = [Context(text=text, rank=rank) for rank, text in enumerate(given_texts)]
    kept = unique(contexts)
    assert [context.text for context in kept] == list(dict.fromkeys(given_texts))
    assert all(given_texts.index(context.text) == context.rank for context in kept)


@given(texts, texts)
def test_what_is_judged_was_retrieved(given_texts: list[str], prompts: list[str]) -> None:
    contexts = [Context(text=text) for text in given_texts]
    found = assemble(contexts, prompts=prompts)
    assert {context.text for context in found.contexts} <= set(given_texts)
    assert bool(found.contexts) == bool(contexts)
    if found.retrieved:
        assert len(found.contexts) < len(found.retrieved)
