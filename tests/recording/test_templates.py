"""Templates are learnt from many turns: what stays alike is instruction, what varies was filled in."""

from __future__ import annotations

from random import Random

import pytest

from steelyard.recording.building import Step, Steps, decide, sources_of
from steelyard.recording.building._templates import TEMPLATES as LEARNT
from steelyard.recording.building._templates import PromptTemplates
from steelyard.recording.provenance import ModelCall, Origin

TEMPLATES = {
    "headings": "You help our guests.\n\nHere is what we know\n{passage}\n\nBe brief.\n\nAsked: {question}",
    "an example": (
        "Context: The Orlin lamp was built in 1811.\nAsked: When was it built?\nSay: In 1811.\n\n"
        "Context: {passage}\nAsked: {question}\nSay:"
    ),
    "tags": "<rules>\nKeep to the leaflet.\n</rules>\n<leaflet>\n{passage}\n</leaflet>\n{question}",
}
PASSAGES = [f"The ferry of day {n} leaves at {n} past nine.\nIt carries {n} bicycles." for n in range(8)]
QUESTIONS = [f"When does the ferry of day {n} leave?" for n in range(8)]


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_varies_is_known_after_five_questions(name: str) -> None:
    learnt = PromptTemplates()
    filled = [
        learnt.filled_in(TEMPLATES[name].format(passage=passage, question=question), question=question)
        for passage, question in zip(PASSAGES, QUESTIONS, strict=True)
    ]
    assert filled[:4] == [None] * 4
    for passage, slots in list(zip(PASSAGES, filled, strict=True))[4:]:
        assert slots == [passage]


def test_the_same_question_again_teaches_nothing() -> None:
    learnt = PromptTemplates()
    prompt = TEMPLATES["tags"].format(passage=PASSAGES[0], question=QUESTIONS[0])
    assert [learnt.filled_in(prompt, question=QUESTIONS[0]) for _ in range(9)] == [None] * 9


def test_a_question_is_not_parted_at_a_colon_in_it() -> None:
    learnt = PromptTemplates()
    for passage, asked in zip(PASSAGES, QUESTIONS, strict=True):
        question = f'My question is: "{asked}"'
        prompt = f"Keep to this.\nMaterial\n{passage}\nBe brief.\n<q>{question}</q>"
        filled = learnt.filled_in(prompt, question=question)
    assert filled == [PASSAGES[-1]]


def test_two_templates_are_kept_apart() -> None:
    learnt = PromptTemplates()
    for passage, question in zip(PASSAGES[:6], QUESTIONS[:6], strict=True):
        for template in TEMPLATES.values():
            learnt.filled_in(template.format(passage=passage, question=question), question=question)
    for template in TEMPLATES.values():
        prompt = template.format(passage=PASSAGES[7], question=QUESTIONS[7])
        assert learnt.filled_in(prompt, question=QUESTIONS[7]) == [PASSAGES[7]]


def test_what_stands_before_all_that_stays_alike_may_be_instructions() -> None:
    learnt = PromptTemplates()
    template = "{first}\nBe brief.\nBe kind.\nAsked: {question}\nSay:"
    for passage, question in zip(PASSAGES, QUESTIONS, strict=True):
        filled = learnt.filled_in(template.format(first=passage, question=question), question=question)
    assert filled is None


def test_the_heading_of_the_question_is_no_part_of_what_stands_above_it() -> None:
    """Prompts of one beginning may have it or not, and passages may have lines in common, as code has."""
    learnt = PromptTemplates()
    code = "\n```python\nlimit = {}\n```\nSo says the council."
    for at in range(16):
        question = f"When does the ferry of day {at} leave?"
        passage = f"Of {at} days." + (code.format(at) if at % 3 else "")
        heading = "### Question\n" if at % 2 else ""
        prompt = f"### Task\nBe brief.\n### Pages\n{passage}\n{heading}{question}\n### Reply"
        filled = learnt.filled_in(prompt, question=question)
        assert at < 13 or filled == [passage]


@pytest.mark.parametrize(
    ("template", "passage"),
    [
        # A rule that all passages have is theirs.
        (
            "Be brief.\nKeep to it.\nPages\n{passage}\n\nasked: {question}",
            "== {n} ==\nOf {n} days.\n===\nOf {n}.",
        ),
        # A passage may hold the label that ends the prompt.
        (
            "Be brief.\nKeep to it.\n{question}\nPages\n{passage}\nSay:",
            "What of {n}?\nSay:\nIt is {n}.\nAnd of {n}?\nSay:\nNot {n}.",
        ),
    ],
)
def test_a_line_that_passages_share_with_the_template_parts_none(template: str, passage: str) -> None:
    learnt = PromptTemplates()
    for n in range(8):
        question = f"When does the ferry of day {n} leave?"
        found = learnt.filled_in(
            template.format(passage=passage.format(n=n), question=question), question=question
        )
    assert found == [passage.format(n=7)]


def test_the_end_of_a_tag_that_began_before_is_no_part_of_a_passage() -> None:
    """Prompts of one kind may have a tag or not."""
    learnt = PromptTemplates()
    for n in range(16):
        question, passage = (
            f"When is day {n}?",
            f"Of {n}.\n" + ("As ever.\n" if n % 2 else "") + f"It is {n}.",
        )
        prompt = f"Be brief.\nKeep to it.\n{question}\nHere it is\n{passage}" + ("\n</data>" if n % 4 else "")
        found = learnt.filled_in(prompt, question=question)
    assert found == ["Of 15.\nAs ever.\nIt is 15."]


def test_what_somebody_said_is_no_passage() -> None:
    learnt = PromptTemplates()
    template = "Be brief.\nHuman: {asked}\nAI: {said}\nContext:\n{passage}\nQuestion: {question}"
    for at, (passage, question) in enumerate(zip(PASSAGES, QUESTIONS, strict=True)):
        said = {"asked": f"What of day {at}?", "said": f"Nobody has told me of day {at} yet."}
        filled = learnt.filled_in(
            template.format(**said, passage=passage, question=question), question=question
        )
    assert filled == [PASSAGES[-1]]


def test_many_kinds_of_prompts_stay_within_bounds() -> None:
    learnt = PromptTemplates()
    for kind in range(1_000):
        learnt.filled_in(f"Rule {kind} of them all.\nLine {kind}.", question=f"Question {kind}?")
    assert len(learnt._templates) <= 256
    assert len(learnt._by_end) <= 2 * 256


HARBOUR = "Rules of the harbour office.\n\nBackground: {passage}\n\nAnswer this question: {question}"


def decided(passage: str, question: str) -> Origin:
    """What a prompt's passages are taken for, where nobody saw them come."""
    call = ModelCall(prompts=(HARBOUR.format(passage=passage, question=question),), reply="At nine.")
    turn = Steps(
        given=question, returned="At nine.", steps=[Step(kind="model", call=call)], answer="At nine."
    )
    return decide(turn, sources_of(turn), answer="At nine.", question=question)


def test_passages_of_an_unseen_source_are_guessed_at_first_and_known_later() -> None:
    LEARNT.forget()
    found = [decided(passage, question) for passage, question in zip(PASSAGES, QUESTIONS, strict=True)]
    for passage, origin in zip(PASSAGES, found, strict=True):
        assert passage in "\n".join(one.text for one in origin.contexts)
    assert (found[0].contexts_source, found[-1].contexts_source) == ("guessed", "in_prompt")


def test_a_passage_that_comes_every_time_keeps_the_others_from_being_known() -> None:
    """It looks like the template's own words, so that what varies may not be all that was filled in."""
    LEARNT.forget()
    fixed = "The ferry office is open on every day of the year."
    for passage, question in zip(PASSAGES, QUESTIONS, strict=True):
        origin = decided(f"{fixed}\n{passage}", question)
        assert origin.contexts_source == "guessed"
        assert fixed in "\n".join(one.text for one in origin.contexts)


VARIANT = TEMPLATES["headings"] + "\nAnswer in French."


def test_a_line_where_nothing_stood_before_is_not_known() -> None:
    learnt = PromptTemplates()
    for passage, question in zip(PASSAGES[:7], QUESTIONS[:7], strict=True):
        learnt.filled_in(TEMPLATES["headings"].format(passage=passage, question=question), question=question)
    prompt = VARIANT.format(passage=PASSAGES[7], question=QUESTIONS[7])
    assert learnt.filled_in(prompt, question=QUESTIONS[7]) is None


def test_the_words_of_a_variant_are_no_passage() -> None:
    learnt = PromptTemplates()
    for passage, question in zip(PASSAGES, QUESTIONS, strict=True):
        for template in (TEMPLATES["headings"], VARIANT):
            slots = learnt.filled_in(template.format(passage=passage, question=question), question=question)
    assert slots == [PASSAGES[7]]


def test_a_line_that_only_some_prompts_have_is_no_passage() -> None:
    """A rule for some users stands where mostly nothing stands, whatever its words are."""
    learnt = PromptTemplates()
    plain = TEMPLATES["headings"]
    for passage, question in zip(PASSAGES[:7], QUESTIONS[:7], strict=True):
        learnt.filled_in(plain.format(passage=passage, question=question), question=question)
    ruled = f"If you cannot answer, say so in one line.\n{plain}"
    for day in (5, 6, 7):
        prompt = ruled.format(passage=PASSAGES[day], question=QUESTIONS[day])
        slots = learnt.filled_in(prompt, question=QUESTIONS[day])
    assert slots is None


RECORDS = {
    "fields": "Product: Widget {n}\nPrice: {price} euros\nStock: {stock}",
    "JSON": '{{\n  "name": "Widget {n}",\n  "price": {price},\n  "stock": "{stock}"\n}}',
    "lists": "## Widget {n}\n- It costs {price} euros\n- In stock: {stock}",
    "sentences": "Widget {n} is this:\nIt costs {price} euros.\nIt is in stock: {stock}",
}


@pytest.mark.parametrize("kind", RECORDS)
def test_passages_that_are_alike_in_form_stay_whole(kind: str) -> None:
    """Names of fields and common values are in every prompt, as the words of the template are."""
    learnt, drawn = PromptTemplates(), Random(3)
    for turn in range(10):
        fields = [(f"{turn}{n}", drawn.choice((10, 20, 30)), drawn.choice(("yes", "no"))) for n in range(3)]
        shown = "\n\n".join(RECORDS[kind].format(n=n, price=price, stock=stock) for n, price, stock in fields)
        question = f"What does widget {turn}0 cost?"
        prompt = f"You work in our shop.\nProducts\n{shown}\n\nAsked: {question}\nBe brief."
        filled = learnt.filled_in(prompt, question=question) or []
    assert len(filled) == 1
    for n, price, _ in fields:
        assert f"idget {n}" in filled[0]
        assert filled[0].count(str(price)) >= 1
    assert "Be brief" not in filled[0]
    assert "our shop" not in filled[0]


def repeated(learnt: PromptTemplates, text: str) -> list[str]:
    """The parts of an input that another one had."""
    return [part.strip() for part, is_known in learnt.in_parts(text) if is_known]


def test_a_line_that_another_input_had_is_not_typed_by_users() -> None:
    learnt = PromptTemplates()
    reminder = "Remember to use the tables that you have access to"
    assert not repeated(learnt, f"{reminder}\n  {QUESTIONS[0]}")
    assert not repeated(learnt, f"{reminder}\n  {QUESTIONS[0]}"), "the same input again tells nothing"
    for _ in range(2):  # what several had is known, whichever of them comes again
        assert repeated(learnt, f"{reminder}\n  {QUESTIONS[1]}") == [reminder]
    assert not repeated(learnt, QUESTIONS[1]), "a question of one line may be asked again"
    assert not repeated(learnt, f"Thanks!\n{QUESTIONS[2]}")
    korean, thanks = (
        "\ud56d\uc0c1 \ud55c\uad6d\ub9d0\ub85c \ub300\ub2f5\ud574\uc918",
        "\uac10\uc0ac\ud569\ub2c8\ub2e4",
    )
    told = [repeated(learnt, f"{korean}\n{thanks}\n{question}") for question in QUESTIONS[:2]]
    assert told == [[], [korean]], "a wide character says as much as two letters"


def test_sentences_and_tags_that_another_input_had_are_not_typed_by_users() -> None:
    learnt = PromptTemplates()
    rule, tagged = "Keep to the tables, and cite each row that you use.", "<asked>\n{}\n</asked>\n</message>"
    typed = ["Thank you. And the ferry?", "Good day. And the bus?"]
    assert not repeated(learnt, f"{rule} {typed[0]}") and not repeated(learnt, tagged.format(typed[0]))
    assert repeated(learnt, f"{rule} {typed[1]}") == [rule]
    assert repeated(learnt, tagged.format(typed[1])) == ["</asked>", "</message>"]
    assert not repeated(learnt, "Thank you. And the train?"), "people say short sentences again and again"


def test_headings_and_labels_beside_what_another_input_had_are_not_typed_by_users() -> None:
    learnt = PromptTemplates()
    told = ["Solve this and write to stdout.", "### Problem", "### Format", "Give one block of code."]
    framed = "{}\n\n{}\n{{}}\n\n{}\n{}".format(*told)
    assert not repeated(learnt, framed.format(QUESTIONS[0]))
    assert repeated(learnt, framed.format(QUESTIONS[1])) == told
    labelled = "Here is what our customer wrote to us.\nMessage:\n{}"
    assert not repeated(learnt, labelled.format(QUESTIONS[2]))
    assert repeated(learnt, labelled.format(QUESTIONS[3])) == labelled.split("\n")[:2]
    assert not repeated(learnt, f"Message:\n{QUESTIONS[4]}"), "a user may type it, too"


def test_several_lines_may_have_words_of_code_until_users_typed_five_such_texts() -> None:
    learnt = PromptTemplates()
    texts = [f"Hello!\n{question}" for question in QUESTIONS[:5]]
    assert len({*texts}) == 5
    assert all(map(learnt.tells_typed, QUESTIONS)), "one line is what a user typed"
    assert [learnt.tells_typed(one) for one in (*texts[:4], *texts[:4])] == [False] * 8
    assert learnt.tells_typed(texts[4])
    learnt.forget()
    assert not learnt.tells_typed("Keep to the tables, and cite each row that you use. And the ferry?")
    assert not learnt.tells_typed(texts[4])
