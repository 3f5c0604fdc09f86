"""One RAG turn: some spans that belong together, and what they say about it as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from steelyard.recording.building import (
    Asked,
    Sources,
    Steps,
    asked_of,
    is_telling,
    shows_nothing,
    sources_of,
    without_template,
)
from steelyard.recording.provenance import AnswerCalls, ModelCall, calls_behind, is_intermediate_output
from steelyard.recording.reading import asked_in, strings_in
from steelyard_opentelemetry._asked import asked_above, drop_followup_calls
from steelyard_opentelemetry._documents import left_none
from steelyard_opentelemetry._payload import Cut, answer_in, answer_in_form, find_cut, loaded, squeezed
from steelyard_opentelemetry._span import Kind, Node, ParsedSpan
from steelyard_opentelemetry._translate import (
    asked_within,
    given_of,
    looked_up,
    steps_of,
    told_answer,
)

_CONDENSING = re.compile(r"conversation|chat.?history|follow.?up|standalone|stand-alone", re.IGNORECASE)
_HEAD = 20_000
_CUT = "..."
EMPTY = "Empty Response"
"""What LlamaIndex answers by itself, without asking a model: nothing is left to answer from, or it failed."""
_REASONED = re.compile(r"Thought:[^\n]*\n(?:[^\n]*\n){0,8}?(?:Final )?Answer:(.*)", re.DOTALL)


@dataclass(eq=False)
class Turn:
    """A candidate: everything below one root, or pieces that were joined because they belong together."""

    root: Node
    """The span that stands for the turn."""
    nodes: Sequence[Node]
    """Every span of the turn, in order of start."""
    joined: tuple[str, ...] = ()
    """Trace ids of pieces that came from elsewhere."""
    evidence: object = None
    """What `evidence_of` found, once it has looked."""
    is_call_assumed: bool = False
    """Whether the call that made the answer is known only because no other one can have."""
    earlier: Sequence[ModelCall] = ()
    """What models of the same service were sent and replied before it began."""
    tree: Node | None = None
    """All spans that it stands among, with the application's own above it."""
    is_given_doubtful: bool = False
    """Whether somebody else than the user may have written what it is taken to have been given."""

    @classmethod
    def below(cls, root: Node) -> Turn:
        """The turn of one tree."""
        return cls(root, list(root.below()))

    @classmethod
    def of(cls, root: Node, pieces: Iterable[Turn]) -> Turn:
        """One turn out of several pieces."""
        parts = list(pieces)
        nodes = sorted((node for part in parts for node in part.nodes), key=lambda node: node.span.start)
        elsewhere = {part.root.span.trace_id for part in parts} - {root.span.trace_id}
        return cls(
            root,
            nodes,
            tuple(sorted(elsewhere)),
            earlier=[call for part in parts for call in part.earlier],
            tree=next((part.tree for part in parts if part.tree is not None and root in part.nodes), None),
        )

    @cached_property
    def above(self) -> dict[int, frozenset[Kind]]:
        """For each span (by `id`), the kinds of the spans above it within the turn."""
        found: dict[int, frozenset[Kind]] = {}
        # A walk with a list of its own: traces of agents nest deeper than Python's recursion may.
        waiting = [(node, frozenset[Kind]()) for node in self._tops]
        while waiting:
            node, kinds = waiting.pop()
            found[id(node)] = kinds
            if node.children:
                inner = kinds | {node.parsed.kind} if node.parsed else kinds
                waiting.extend([(child, inner) for child in node.children])
        return found

    @cached_property
    def _tops(self) -> list[Node]:
        """The spans that stand below no other one of the turn."""
        # A turn may be put together from several traces, so that it has several tops.
        below = {id(child) for node in self.nodes for child in node.children}
        return [node for node in self.nodes if id(node) not in below]

    @cached_property
    def parsed(self) -> Sequence[tuple[Node, ParsedSpan]]:
        """The spans that a dialect knows, in order of start; most spans of a turn may be of none."""
        return [(node, node.parsed) for node in self.nodes if node.parsed is not None]

    def seen(self, *kinds: Kind) -> Sequence[tuple[Node, ParsedSpan]]:
        """The spans of some kinds."""
        return [found for found in self.parsed if found[1].kind in kinds]

    def marked(self, part: str) -> Any:
        """A part of the turn that was marked by hand; nothing if none was."""
        return next(filter(None, (getattr(parsed, part) for _, parsed in self.seen("turn"))), None)

    def outermost(self, kind: Kind) -> Sequence[tuple[Node, ParsedSpan]]:
        """The spans of a kind that stand in no other of the same kind."""
        return [(node, parsed) for node, parsed in self.seen(kind) if kind not in self.above[id(node)]]

    @cached_property
    def agentic(self) -> bool:
        """Whether tools were called, so that what is below them has questions and answers of its own."""
        return bool(self.seen("tool"))

    @cached_property
    def retrieves(self) -> bool:
        """Whether anything was retrieved, whatever is told of it."""
        return bool(self.seen("retrieval", "rerank") or self.marked("documents"))

    @cached_property
    def cut(self) -> Cut:
        """Which texts were cut at a length limit."""
        return find_cut([node.span for node, _ in self.parsed])

    @cached_property
    def has_unread(self) -> bool:
        """Whether something was looked up, and it is not told what that found."""
        if any(step.contexts is None for step in self.steps.retrievals):
            return True
        told = any(one.role == "tool" for step in self.steps.models for one in step.messages)
        return not told and any(step.returned is None for step in self.steps.tools)

    @property
    def found_nothing(self) -> bool:
        """Whether something was looked up, and all that was told of it is that it found nothing.

        So it is if a step, a template or the answer's prompt has a place for passages with nothing in it.
        """
        if self.sources.documents or self.has_unread:
            return False
        if self.sources.looked_up or left_none(self.steps):
            return True
        asks = not (self.retrieves or self.agentic)
        return asks and shows_nothing(self.steps, self.behind.made, question=self.question)

    @cached_property
    def calls(self) -> list[ModelCall]:
        """All model calls, in order of start.

        Where the reply of one alone was not seen, or of those of one conversation, and no other's is in the
        answer, the answer is the last one's: some instrumentors do not write down what was streamed. A call
        counts if the step that it ran in directly returned the answer, or tells nothing of what it returned.
        """
        told = self.told_calls
        # A call without prompts may have been anything, an embedding among them.
        around = {at: self._around(at) for at, call in enumerate(told) if not call.replies and call.prompts}
        silent = [at for at, returned in around.items() if returned and self.answer in returned]
        silent = silent or [at for at, returned in around.items() if returned is None]
        if not silent or self.answer in ("", EMPTY):
            return told
        # Where another call is known to have made the answer, nothing is assumed of this one.
        if len(told) == 1 or calls_behind(told, self.answer, queries=self.queries).known:
            return told
        told[silent[-1]] = replace(told[silent[-1]], reply=self.answer)
        self.is_call_assumed = True
        return told

    def _around(self, at: int) -> set[str] | None:
        """The texts that the step returned in which a model call ran directly; None if it tells none."""
        call = self.llms[at][0]
        parsed = next((node.parsed for node in self.nodes if call in node.children), None)
        if parsed is None or not (parsed.answer or any(parsed.passing[1:])):
            return None
        returned = loaded(parsed.passing[-1]) if len(parsed.passing) > 1 else None
        return {parsed.answer, *(text.strip() for _, text in strings_in(returned))}

    @property
    def told_calls(self) -> list[ModelCall]:
        """The model calls as their spans tell them, before anything is assumed of one."""
        return [
            ModelCall(
                prompts=() if self.repeats(parsed) else parsed.texts,
                reply=parsed.answer,
                arguments=parsed.arguments,
                started=float(node.span.start),
                name=node.span.name,
            )
            for node, parsed in self.llms
        ]

    def repeats(self, parsed: ParsedSpan) -> bool:
        """Whether a model's span tells what was asked in place of what the model was sent."""
        near = self.seen("retrieval", "chain", "agent", "turn") if self.retrieves and parsed.question else ()
        asked = {text.strip() for _, one in near for text in (one.question, one.query)} - {""}
        # If no other span says what was asked, a bare line is that.
        return parsed.question in asked or (bool(near) and not asked and "\n" not in parsed.question)

    @cached_property
    def llms(self) -> list[tuple[Node, ParsedSpan]]:
        """The spans of model calls; of two in each other with one reply, the one that tells more of it."""
        return [(node, parsed) for node, parsed in self.seen("llm") if id(node) not in self._echoes]

    @cached_property
    def wrappers(self) -> list[ParsedSpan]:
        """Steps written as model calls, which were given less than the call below them was sent."""
        told = (parsed for node, parsed in self.seen("llm") if self._echoes.get(id(node)))
        return [parsed for parsed in told if parsed.messages]

    @cached_property
    def _echoes(self) -> dict[int, bool]:
        """The spans that tell a call once more (by `id`), and whether they stand around it."""
        # Two instrumentors, or a wrapper and its client, tell one call as two spans.
        echoes: dict[int, bool] = {}
        waiting: list[tuple[Node, Node | None]] = [(node, None) for node in self._tops]
        while waiting:
            node, outer = waiting.pop()
            if node.parsed is not None and node.parsed.kind == "llm":
                told = outer.parsed if outer is not None else None
                if outer is not None and told and node.parsed.answer == told.answer != "":
                    is_step = _tells_more(node.parsed, told)
                    echoes[id(outer if is_step else node)] = is_step
                outer = node
            waiting.extend((child, outer) for child in node.children)
        return echoes

    @cached_property
    def behind(self) -> AnswerCalls:
        """Which of the calls made the answer."""
        return calls_behind(self.calls, self.answer, queries=self.queries)

    @cached_property
    def prompts(self) -> list[str]:
        """The texts that models were sent."""
        return [text for call in self.calls for text in call.prompts]

    @cached_property
    def queries(self) -> list[str]:
        """What retrievers were asked."""
        return [parsed.query for _, parsed in self.seen("retrieval") if parsed.query]

    @cached_property
    def answer(self) -> str:
        """What the turn came to: the user's mark, the root's output, else the last reply that answers."""
        if marked := self.marked("answer"):
            return str(marked)
        return answer_in_form(self._told_answer())

    def _told_answer(self) -> str:
        own = told_answer(self)
        if own.endswith(_CUT):
            # Shown objects are cut; a model's reply that goes on as the cut one begins holds the whole.
            stem = own.removesuffix(_CUT)
            whole = (parsed.answer for _, parsed in self.seen("llm") if parsed.answer.startswith(stem))
            return next(whole, own)
        return own or self._last_reply()

    @cached_property
    def is_reply_taken(self) -> bool:
        """Whether no span says what the user was given, so that the last reply is taken for the answer."""
        return not (told_answer(self) or self.marked("answer"))

    @cached_property
    def answering(self) -> list[tuple[Node, ParsedSpan]]:
        """The calls that may have answered, and services that retrieve and answer in one span.

        Verdicts, scores, routes and queries are not answers, whichever was last; nor is what was said for a
        retriever, or of an answer that had been given: a title, further questions, a check.
        """
        asked = set(map(squeezed, self.queries))
        # A word before anything was looked up says what to look up.
        begun = min((node.span.start for node, _ in self.seen("retrieval")), default=0)
        models = [
            (node, parsed)
            for node, parsed in self.seen("llm", "retrieval")
            if parsed.answer
            and self.above[id(node)].isdisjoint(("retrieval", "rerank"))
            and not is_intermediate_output((parsed.answer,))
            and squeezed(parsed.answer) not in asked
            and (node.span.end > begun or is_telling(parsed.answer))
        ]
        # What a model says within a tool is a tool's result, and not what the user read.
        outside = [(node, parsed) for node, parsed in models if "tool" not in self.above[id(node)]]
        return drop_followup_calls(outside or models)

    def _last_reply(self) -> str:
        """The last reply of those that may be answers."""
        last = max(self.answering, key=lambda found: found[0].span.end, default=None)
        form = self._form(last[0].span.end if last else 0)
        if form or last is None or self._is_passed_on(*last):
            return form
        # An agent that reasons in text ends with its answer; the thoughts before it are not part of it.
        reasoned = _REASONED.match(last[1].answer)
        return reasoned[1].strip() if reasoned else last[1].answer

    def _is_passed_on(self, node: Node, parsed: ParsedSpan) -> bool:
        """Whether a later call was shown a reply, and no span tells what it made of it."""
        reply = squeezed(parsed.answer)
        later = (one for at, one in self.seen("llm") if at.span.start >= node.span.end)
        silent = (one for one in later if not (one.answer or one.arguments))
        return any(reply in squeezed(text) for one in silent for text in one.texts)

    def _form(self, since: int) -> str:
        """The answer in a form that a model filled in last, after which no tool ran."""
        tools = [node.span.start for node, _ in self.seen("tool")]
        filled = [
            # A tool that ran after the form was filled in had it as its arguments.
            parsed.arguments[-1]
            for node, parsed in self.seen("llm")
            if parsed.arguments and node.span.end > since and node.span.end >= max(tools, default=0)
        ]
        return answer_in(filled[-1]) if filled else ""

    @property
    def question(self) -> str:
        """The user's own words, as near to the root as they are told."""
        return self.asked.question

    @cached_property
    def steps(self) -> Steps:
        """The turn as the builder of all recorders sees it."""
        steps = steps_of(self)
        steps.earlier = self.earlier
        (steps.given, self.is_given_doubtful) = given_of(self, steps)
        return steps

    @cached_property
    def sources(self) -> Sources:
        """What came into the turn from outside of a model."""
        found = sources_of(self.steps)
        # What an inner step was asked is no passage, although it stands in a prompt and no model wrote it.
        found.look_ups.queries += asked_within(self.steps)
        return found

    @property
    def is_told(self) -> bool:
        """Whether a step says what it was asked."""
        steps = self.seen("chain", "agent")
        return any(p.question or (p.passing and asked_in(loaded(p.passing[0]))) for _, p in steps)

    @cached_property
    def asked(self) -> Asked:
        """What the user asked, and the form of it that stands without the conversation."""
        # A mark by hand is the application's own word, and nothing is weighed against it.
        if marked := self.marked("question"):
            return Asked(question=marked)
        found = asked_of(self.steps, self.sources)
        if not found.question and (query := looked_up(self.steps)):
            # An input without words, as of a workflow that tells its state; nobody but the user wrote this.
            return Asked(question=query, notes=("question_guessed",))
        if found.question and self.is_given_doubtful and not found.notes:
            found = replace(found, notes=("question_guessed",))
        found = self._completed(found)
        own = asked_above(self, found.question) if found.notes or not self.is_told else ""
        return Asked(question=own) if own else found

    def _completed(self, found: Asked) -> Asked:
        """A question with the end that was cut off it, and without a template that was around it."""
        queries = [step.given for step in self.steps.retrievals]
        # What was looked up stands for itself; a prompt may have a template around the question.
        if self.steps.given is not None and self.steps.given not in queries and not self.is_told:
            found = without_template(found, self.steps, self.sources)
        if not self.cut.ends(found.question):
            return found
        whole = (text for text in self.queries if text.startswith(found.question))
        return replace(found, question=max(whole, key=len, default=found.question))

    @cached_property
    def in_conversation(self) -> bool:
        """Whether there was a conversation before the question."""
        if any(parsed.in_conversation for _, parsed in self.seen("chain", "agent")):
            return True
        for _, parsed in self.seen("llm"):
            roles = [message.role for message in parsed.messages]
            # An assistant's message before the user's last one is a turn that was.
            last = max((at for at, role in enumerate(roles) if role == "user"), default=0)
            if "assistant" in roles[:last]:
                return True
        asked = set(map(squeezed, self.queries))
        writers = [call for call in self.calls if squeezed(call.reply) in asked]
        return any(_CONDENSING.search(text[:_HEAD]) for call in writers for text in call.prompts)


def _tells_more(inner: ParsedSpan, outer: ParsedSpan) -> bool:
    """Whether a model call tells all that the one around it was sent, and more: instructions, passages."""
    sent = "\n".join(inner.texts)
    return len(sent) > len("\n".join(outer.texts)) and all(text in sent for text in outer.texts)
