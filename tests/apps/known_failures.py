"""What is known to fail, and why. The tests expect these failures; a mend removes its lines."""

from __future__ import annotations

ESCAPED = "Passages that the prompt holds in another writing are not found (records 1)."
CUT = "Of a passage that is shown in part the share that was seen is not told (records 1)."
ORDER = "Contexts stand in the order of retrieval, not of the prompt (records 15)."
GRADERS = "Prompts of calls that did not make the answer are searched for passages (records 2)."
MADE = "Passages that no retriever returned are lost: made in a node, mappings, a tool's text (records 6)."
STRINGS = "A string that a node puts among the messages is taken for the user's (records 7)."
FORMS = "An answer in the arguments of a tool call is not seen (records 7)."
SHOWN = "What was retrieved is recorded, not what was shown (records 15)."
LISTS = "Results of a tool that come as a list or as JSON are not read (records 5)."
QUESTION = "A query that a model wrote, or a serialised event, is taken for the question (records 4)."
ANSWER = "The reply of another step is taken for the answer (records 3)."
EMPTY = "A turn in which nothing was found is not recorded (outputs 10)."
ROOTS = "Calls without a common root are turns of their own, and no note says so (records 10)."
UPSTREAM = "The instrumentor never ends the root of a stream (records 14)."

_BY_CAUSE: dict[str, dict[str, str]] = {
    ESCAPED: {
        "a_list_of_texts": "attach handler openinference openllmetry",
        "documents_as_python_prints_them": "attach handler openinference openllmetry",
        "documents_printed_by_a_graph": "attach handler openinference openllmetry",
        "each_passage_graded": "attach handler openinference openllmetry",
        "fusion_of_ranks": "attach handler openinference openllmetry",
        "json_in_the_prompt": "attach handler openinference openllmetry",
        "json_lines_in_utf8": "attach handler openinference openllmetry",
        "markdown_headings": "attach handler openinference openllmetry",
        "multi_query_by_map": "attach handler openinference openllmetry",
        "one_step_back": "attach handler openinference openllmetry",
        "passage_imagined_first": "attach handler openinference openllmetry",
        "passages_with_scores": "attach handler openinference openllmetry",
        "questions_answered_one_by_one": "attach handler openinference openllmetry",
        "retrieve_then_run_a_chain": "attach block handler",
        "routed_by_structured_output": "attach handler openinference openllmetry",
        "xml_with_entities": "attach handler openinference openllmetry",
    },
    CUT: {
        "passages_cut_short": "attach handler openinference openllmetry",
    },
    ORDER: {
        "best_at_both_ends": "attach handler openinference openllmetry",
        "nodes_reordered": "instrument openinference openllmetry",
        "reordered_for_long_contexts": "attach handler openinference openllmetry",
        "research_plan_with_parallel_searches": "attach handler openinference openllmetry",
        "two_places_in_one_template": "attach handler openinference openllmetry",
    },
    GRADERS: {
        "adaptive_to_the_store": "openinference openllmetry",
        "best_of_one_answer_each": "attach handler openinference openllmetry",
        "nodes_reranked_by_a_model": "openinference openllmetry",
        "ranked_by_a_model": "openinference openllmetry",
        "self_reflective": "attach handler openinference openllmetry",
    },
    MADE: {
        "a_tool_in_a_chain": "attach handler openinference openllmetry",
        "adaptive_to_the_web": "attach handler",
        "class_that_also_searches_the_web": "attach block handler",
        "corrective_with_nothing_relevant": "attach handler openinference openllmetry",
        "corrective_with_one_relevant": "attach handler openinference openllmetry",
        "documents_kept_by_middleware": "openllmetry",
        "neighbours_joined": "attach handler openinference openllmetry",
        "parallel_searches": "openinference openllmetry",
        "prompt_made_by_middleware": "attach handler",
        "results_of_a_service_in_the_state": "attach handler openinference openllmetry",
        "retrieve_then_complete": "instrument",
        "retriever_and_web_tools": "openinference openllmetry",
        "search_then_ask": "attach block handler",
        "streamed_to_a_page": "attach block handler",
        "texts_of_a_plain_function": "attach handler openinference openllmetry",
    },
    STRINGS: {
        "agentic_with_a_grader": "attach handler",
    },
    FORMS: {
        "agent_that_answers_in_a_form": "openinference openllmetry",
    },
    SHOWN: {
        "numbered_citations": "openinference openllmetry",
        "sentences_searched_windows_shown": "openinference openllmetry",
    },
    LISTS: {
        "agent_that_searches_the_web": "instrument openinference openllmetry",
        "search_tool_with_a_list": "openinference openllmetry",
        "search_tool_with_results_as_json": "openinference openllmetry",
        "web_search_tool": "openinference openllmetry",
    },
    QUESTION: {
        "rewritten_for_retrieval": "openinference openllmetry",
        "workflow_that_corrects": "openinference openllmetry",
        "workflow_that_reranks": "openinference",
        "workflow_with_a_prompt_by_hand": "openinference",
    },
    ANSWER: {
        "agent_that_reasons_in_text": "openinference",
    },
    EMPTY: {
        "agent_in_a_thread": "openinference openllmetry",
        "nothing_found": "openinference openllmetry",
    },
    ROOTS: {
        "class_of_graders": "attach handler",
        "loop_over_sub_questions": "attach handler openinference openllmetry",
        "retrieve_then_synthesize": "instrument",
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
