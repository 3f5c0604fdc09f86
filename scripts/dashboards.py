"""Build the Grafana dashboard that the wheel ships: `python scripts/dashboards.py`.

The panels are written with Grafana's own Foundation SDK, which knows the fields of every panel; the JSON that
comes out is committed, and `tests/dashboards` holds it against what this script builds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, prometheus, timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

TARGET = Path(__file__).parent.parent / "src" / "steelyard" / "dashboards" / "data" / "grafana-steelyard.json"
_SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
_METRIC = '{gen_ai_evaluation_name=~"$metric"}'
_NAME = "{{gen_ai_evaluation_name}}"


@dataclass(frozen=True)
class Line:
    """One query of a panel."""

    query: str
    name: str
    exemplars: bool = False


def line(one: Line, letter: str) -> prometheus.Dataquery:
    """A query under the letter by which the panel knows it."""
    query = prometheus.Dataquery().ref_id(letter).expr(one.query).legend_format(one.name)
    return query.exemplar(one.exemplars).range()


def chart(
    title: str,
    description: str,
    *lines: Line,
    unit: str = "short",
    low: float | None = None,
    high: float | None = None,
    width: int = 12,
) -> timeseries.Panel:
    """A chart over time; every one explains itself."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(_SOURCE)
        .unit(unit)
        .span(width)
        .height(8)
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    if low is not None:
        panel = panel.min(low)
    if high is not None:
        panel = panel.max(high)
    for letter, one in zip(ascii_uppercase, lines, strict=False):
        panel = panel.with_target(line(one, letter))
    return panel


def scores() -> list[timeseries.Panel]:
    """What the answers are worth."""
    mean, error = f"steelyard:score:mean_1h{_METRIC}", f"steelyard:score:standard_error_1h{_METRIC}"
    return [
        chart(
            "Mean score with its 95 % band",
            "The unbiased mean over all turns of the last hour: each score weighs 1 / the probability with "
            "which its turn was picked. Two versions whose bands overlap widely do not differ for certain. "
            "The dots are exemplars: they lead to a trace.",
            Line(mean, _NAME, exemplars=True),
            Line(f"clamp_max({mean} + 1.96 * {error}, 1)", f"{_NAME} high"),
            Line(f"clamp_min({mean} - 1.96 * {error}, 0)", f"{_NAME} low"),
            unit="none",
            high=1,
            width=24,
        ),
        chart(
            "Pass rate",
            "The share of all turns that meet the metric's threshold, unbiased, over the last hour. "
            "Metrics without a threshold are not shown.",
            Line(f"steelyard:score:pass_rate_1h{_METRIC}", _NAME),
            unit="percentunit",
            low=0,
            high=1,
        ),
        chart(
            "Turns behind the mean",
            "How many scores the last hour's mean rests on. Below 30 do not read much into it.",
            Line(f"steelyard:scored:count_1h{_METRIC}", _NAME),
            low=0,
        ),
        chart(
            "Distribution of scores: median and lowest tenth",
            "From the histogram of scores of picked turns; not weighted, so suspicious turns count for more "
            "here than they do in the mean.",
            Line(
                "histogram_quantile(0.5, sum by (le, gen_ai_evaluation_name) "
                f"(rate(gen_ai_evaluation_score_bucket{_METRIC}[$__rate_interval])))",
                f"{_NAME} median",
                exemplars=True,
            ),
            Line(
                "histogram_quantile(0.1, sum by (le, gen_ai_evaluation_name) "
                f"(rate(gen_ai_evaluation_score_bucket{_METRIC}[$__rate_interval])))",
                f"{_NAME} lowest tenth",
            ),
            unit="none",
        ),
        chart(
            "Not scored, by cause",
            "Scores that have no value: not applicable (the turn lacks what the metric needs) or failed "
            "(judge or metric), by cause.",
            Line(
                "sum by (gen_ai_evaluation_name, steelyard_evaluation_status, steelyard_evaluation_cause) "
                '(increase(steelyard_evaluation_outcomes_total{steelyard_evaluation_status!="scored", '
                'gen_ai_evaluation_name=~"$metric"}[$__rate_interval]))',
                f"{_NAME}: {{{{steelyard_evaluation_status}}}} {{{{steelyard_evaluation_cause}}}}",
            ),
            low=0,
        ),
    ]


def turns() -> list[timeseries.Panel]:
    """Where all turns have got to."""
    return [
        chart(
            "What became of the turns",
            "Every turn the application produced: accepted to be judged, or skipped, by reason. The sum of "
            "all is what was seen.",
            Line(
                "sum by (steelyard_decision, steelyard_evaluation_cause) "
                "(increase(steelyard_turns_decisions_total[$__rate_interval]))",
                "{{steelyard_decision}} {{steelyard_evaluation_cause}}",
            ),
            low=0,
        ),
        chart(
            "Accepted turns, by outcome",
            "Evaluated, spooled for another process, dead by cause, or abandoned at the end of a program.",
            Line(
                "sum by (steelyard_outcome, steelyard_evaluation_cause) "
                "(increase(steelyard_turns_outcomes_total[$__rate_interval]))",
                "{{steelyard_outcome}} {{steelyard_evaluation_cause}}",
            ),
            low=0,
        ),
        chart(
            "Waiting turns",
            "Turns in memory, and all that are accepted and not finished. A queue that only grows will drop "
            "turns: judge fewer, or give the judge more room.",
            Line("sum(gen_ai_evaluation_client_queue_size)", "in the queue"),
            Line("sum(steelyard_turns_pending)", "not finished"),
            low=0,
        ),
        chart(
            "How long a turn waits",
            "Pending turns divided by how many are finished a second (Little's law): the seconds from a "
            "turn's submission to its scores.",
            Line(
                "sum(steelyard_turns_pending) / "
                '(sum(rate(steelyard_turns_outcomes_total{steelyard_outcome="evaluated"}[5m])) > 0)',
                "expected wait",
            ),
            unit="s",
            low=0,
        ),
        chart(
            "Results by sink",
            "Written and lost, by sink. Lost results did not arrive there; other sinks have them.",
            Line(
                "sum by (steelyard_sink_name, steelyard_outcome) "
                "(increase(steelyard_sink_results_total[$__rate_interval]))",
                "{{steelyard_sink_name}} {{steelyard_outcome}}",
            ),
            low=0,
        ),
        chart(
            "Alarms that have gone off",
            "1 while an alarm of steelyard.toml says that scores have fallen. `steelyard alarms` shows the "
            "means before and since.",
            Line("max by (steelyard_alarm_name) (steelyard_alarm_fallen)", "{{steelyard_alarm_name}}"),
            low=0,
            high=1,
        ),
    ]


def judge() -> list[timeseries.Panel]:
    """What judging takes and costs."""
    seconds = "gen_ai_evaluation_client_operation_duration_seconds_bucket"
    duration = f"sum by (le) (rate({seconds}[$__rate_interval]))"
    return [
        chart(
            "Seconds to judge a turn",
            "From the first question about a turn to its last score, half of the turns and 95 % of them.",
            Line(f"histogram_quantile(0.5, {duration})", "median", exemplars=True),
            Line(f"histogram_quantile(0.95, {duration})", "95 %", exemplars=True),
            unit="s",
            low=0,
        ),
        chart(
            "Cost of the last day against the daily limit",
            "US dollars, where prices are known, over all processes; the limit is that of one of them "
            "(`budget.cost_per_day`).",
            Line("steelyard:judge:cost_1d", "cost of the last day"),
            Line('max(steelyard_budget_limit{steelyard_budget_name="cost_per_day"})', "limit of one process"),
            unit="currencyUSD",
            low=0,
        ),
        chart(
            "Tokens a second, by kind",
            "Tokens that judging uses. Cached input is counted apart from other input.",
            Line(
                "sum by (steelyard_token_type) (rate(steelyard_judge_tokens_total[$__rate_interval]))",
                "{{steelyard_token_type}}",
            ),
            low=0,
        ),
        chart(
            "Requests a second, and judges that are unavailable",
            "Requests sent to judges, and how many circuit breakers keep questions back.",
            Line("sum(rate(steelyard_judge_request_count_total[$__rate_interval]))", "requests a second"),
            Line("max(steelyard_judge_breaker_open)", "breakers open"),
            low=0,
        ),
    ]


def build() -> str:
    """The dashboard as JSON."""
    made = (
        Dashboard("Steelyard: can the answers be trusted")
        .uid("steelyard")
        .description("Scores of RAG answers on live traffic. Prometheus needs prometheus-rules.yaml.")
        .tags(["rag", "evaluation", "steelyard"])
        .refresh("1m")
        .time("now-24h", "now")
        .with_variable(DatasourceVariable("source").label("Data source").type("prometheus"))
        .with_variable(
            QueryVariable("metric")
            .label("Metric")
            .datasource(_SOURCE)
            .query("label_values(steelyard_evaluation_outcomes_total, gen_ai_evaluation_name)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".+")
        )
    )
    number = 0
    for title, panels in (("Scores", scores()), ("Turns", turns()), ("Judge", judge())):
        made = made.with_row(Row(title).id(number := number + 1))
        for panel in panels:
            made = made.with_panel(panel.id(number := number + 1))
    plain = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    return json.dumps(plain, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
