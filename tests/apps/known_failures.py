"""What is known to fail, and why. The tests expect these failures; a mend removes its lines."""

from __future__ import annotations

ESCAPED = "Passages that the prompt holds in another writing are not found (records 1)."
CUT = "Of a passage that is shown in part the share that was seen is not told (records 1)."
ORDER = "Contexts stand in the order of retrieval, not of the prompt (records 15)."
GRADERS = "Prompts of calls that did not make the answer are searched for passages (records 2)."
MADE = "Passages that no retriever returned are lost: made in a node, mappings, a tool's text (records 6)."
STRINGS = "A string that a node puts among the messages is taken for the user's (records 7)."
SHOWN = "What was retrieved is recorded, not what was shown (records 15)."
LISTS = "Results of a tool that come as a list or as JSON are not read (records 5)."
EMPTY = "A turn in which nothing was found is not recorded (outputs 10)."
ROOTS = "Calls without a common root are turns of their own, and no note says so (records 10)."
STREAMS = "Replies that are streamed are not told, so no prompt is known for the answer's; a note says so."
UPSTREAM = "The instrumentor never ends the root of a stream (records 14)."

_BY_CAUSE: dict[str, dict[str, str]] = {
    ESCAPED: {
        "a_list_of_texts": "attach handler",
        "documents_as_python_prints_them": "attach handler",
        "documents_printed_by_a_graph": "attach handler",
        "each_passage_graded": "attach handler",
        "fusion_of_ranks": "attach handler",
        "json_in_the_prompt": "attach handler",
        "json_lines_in_utf8": "attach handler",
        "markdown_headings": "attach handler",
        "multi_query_by_map": "attach handler",
        "one_step_back": "attach handler",
        "passage_imagined_first": "attach handler",
        "passages_with_scores": "attach handler",
        "questions_answered_one_by_one": "attach handler",
        "retrieve_then_run_a_chain": "attach block handler",
        "routed_by_structured_output": "attach handler openinference openllmetry",
        "xml_with_entities": "attach handler",
    },
    CUT: {
        "passages_cut_short": "attach handler",
    },
    ORDER: {
        "best_at_both_ends": "attach handler",
        "nodes_reordered": "instrument openinference openllmetry",
        "reordered_for_long_contexts": "attach handler",
        "research_plan_with_parallel_searches": "attach handler",
        "two_places_in_one_template": "attach handler",
    },
    GRADERS: {
        "best_of_one_answer_each": "attach handler",
        "self_reflective": "attach handler",
    },
    MADE: {
        "a_tool_in_a_chain": "attach handler",
        "adaptive_to_the_web": "attach handler",
        "class_that_also_searches_the_web": "attach block handler",
        "corrective_with_nothing_relevant": "attach handler",
        "corrective_with_one_relevant": "attach handler",
        "documents_kept_by_middleware": "openllmetry",
        "neighbours_joined": "attach handler",
        "prompt_made_by_middleware": "attach handler",
        "results_of_a_service_in_the_state": "attach handler",
        "retrieve_then_complete": "instrument",
        "search_then_ask": "attach block handler",
        "streamed_to_a_page": "attach block handler",
        "texts_of_a_plain_function": "attach handler openinference openllmetry",
    },
    STRINGS: {
        "agentic_with_a_grader": "attach handler",
    },
    SHOWN: {
        "numbered_citations": "openinference openllmetry",
        "sentences_searched_windows_shown": "openinference",
    },
    LISTS: {
        "agent_that_searches_the_web": "instrument",
    },
    EMPTY: {
        "agent_in_a_thread": "openinference openllmetry",
    },
    ROOTS: {
        "class_of_graders": "attach handler",
        "loop_over_sub_questions": "attach handler openinference openllmetry",
        "retrieve_then_synthesize": "instrument",
    },
    STREAMS: {
        "fusion_of_ranks": "openllmetry",
        "multi_query_by_map": "openllmetry",
        "one_step_back": "openllmetry",
        "passage_imagined_first": "openllmetry",
        "rewritten_for_retrieval": "openllmetry",
        "routed_by_a_branch": "openllmetry",
    },
    UPSTREAM: {
        "streamed_query_engine": "openllmetry",
    },
}

KNOWN_FAILURES: dict[tuple[str, str], str] = {
    (app, recorder): cause
    for cause, apps in _BY_CAUSE.items()
    for app, recorders in apps.items()
    for recorder in recorders.split()
}
"""The reason, by application and recorder."""
