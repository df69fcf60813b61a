"""EHRSQL: SQL is run and its result compared (HELM, `ehr_sql_annotator` and `ehr_sql_metrics`).

Gold and reply are run on the dataset's SQLite database. `ehr_sql_execution_accuracy` (the score) is 1 if
both results have rows and the sets of rows are equal, or if the reply is empty and the gold has neither rows
nor slot values. In the repaired metrics the dataset's own conventions are written out (present moment
2105-12-31 23:59:00, `%Y`, normal ranges), two empty results are equal, `null` abstains, precision is over
attempts and recall over answerable questions. Limits of a query: 300 million steps of SQLite, 20 s of a
processor, 50,000 distinct rows, 16 MiB. A query whose process fails twice counts in `ehr_sql_not_decided`:
wrong in the official metrics, left out of the repaired accuracy.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.answers.sql import GoldQuery, Statement
from medtasks_ext.metrics.common import Document, Metrics, both
from medtasks_ext.metrics.sql_sandbox import QueryResult, SqlSandbox
from medtasks_ext.privacy import excerpt, shows_text

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed

log = logging.getLogger(__name__)

#: The moment that the dataset's questions call now (EHRSQL, `evaluate.py`).
REFERENCE_TIME = "2105-12-31 23:59:00"
#: What the dataset's queries mean by `heart_rate_lower` and the like (EHRSQL, `evaluate.py`).
NORMAL_RANGES = {
    "temperature": (35.5, 38.1),
    "sao2": (95.0, 100.0),
    "heart_rate": (60.0, 100.0),
    "respiration": (12.0, 18.0),
    "systolic_bp": (90.0, 120.0),
    "diastolic_bp": (60.0, 90.0),
    "mean_bp": (60.0, 110.0),
}
_NOW = re.compile(r"\bcurrent_time(?:stamp)?\b|'now'", re.IGNORECASE)
_TODAY = re.compile(r"\bcurrent_date\b", re.IGNORECASE)
_RANGE = re.compile(rf"\b({'|'.join(NORMAL_RANGES)})_(lower|upper)\b", re.IGNORECASE)
#: What stands for the reply when reasoning never ended: text that is no SQL, and no abstention.
_UNREADABLE = Statement(empty=False, sql="unreadable")
_REPAIRED = (
    "ehr_sql_execution_accuracy_repaired",
    "ehr_sql_precision_answerable_repaired",
    "ehr_sql_recall_answerable_repaired",
)
#: The outcome where there is no statement to run.
_NOTHING = QueryResult(None, "no statement")


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """HELM's metrics of one document, and repaired ones beside them.

    `ehr_sql_not_decided` is 1 where processes failed twice over one of the queries, which says nothing about
    the answer. It counts as wrong officially, and not at all in the repaired accuracy.

    `ehr_sql_execution_accuracy` (the score) is 1 when both results have rows and their sets of rows
    are equal, or when the reply is blank and the gold has neither rows nor slot values. Precision
    and recall of answerable questions are HELM's indicators, averaged over all documents.

    The repaired metrics take the repaired reading, run it and the gold as the dataset means them
    (`as_dataset_means`), let an empty result equal an empty result, count a reply `null` or without a
    statement as abstention, and take precision over attempted and recall over answerable questions.
    """
    return both(document, results[0], _statistics, repaired=_REPAIRED)


def _statistics(document: Document, gold: GoldQuery, answer: Statement | None) -> Metrics:
    answer = answer or _UNREADABLE
    gold_sql, sql = gold["query"], answer["sql"]
    meant_gold, meant = as_dataset_means(gold_sql), as_dataset_means(sql)
    database = _database(document.loaded.database_file)  # type: ignore[attr-defined]
    outcomes = database.outcomes([gold_sql, meant_gold], [query for query in (sql, meant) if query])
    result = outcomes.get(sql, _NOTHING)
    right = _result_accuracy(outcomes[gold_sql], result, empty_reply=answer["empty"], slots=gold["slots"])
    attempted = float(not answer["empty"]) * gold["answerable"]
    return {
        **dict.fromkeys(("score", "ehr_sql_execution_accuracy"), right),
        "ehr_sql_query_validity": float(result.error is None),
        "ehr_sql_not_decided": float(not all(outcome.decided for outcome in outcomes.values())),
        **dict.fromkeys(("ehr_sql_precision_answerable", "ehr_sql_recall_answerable"), attempted),
        **_as_meant(
            outcomes[meant_gold],
            outcomes.get(meant, _NOTHING),
            answerable=gold["answerable"],
            tried=not (answer["empty"] or sql.strip(" \t\n;").lower() in ("", "null")),
        ),
    }


def _result_accuracy(gold: QueryResult, result: QueryResult, *, empty_reply: bool, slots: bool) -> float:
    if gold.rows and result.rows:
        return float(gold.rows == result.rows)
    # HELM puts slot values in the place of an empty gold result; they never equal a row
    return float(empty_reply and not gold.rows and not slots)


def _as_meant(gold: QueryResult, result: QueryResult, *, answerable: bool, tried: bool) -> Metrics:
    if answerable:
        right = float(tried and result.rows is not None and gold.rows == result.rows)
        # where the gold cannot run nothing can be right
        countable = gold.rows is not None and result.decided
    else:
        right, countable = float(not tried), True
    attempted = float(tried and answerable)
    accuracy = (right, 1.0) if countable else (0.0, 0.0)
    rates = (accuracy, (attempted, float(tried)), (attempted, float(answerable)))
    return dict(zip(_REPAIRED, rates, strict=True))


def as_dataset_means(sql: str) -> str:
    """A query with the conventions of the EHRSQL release written out (EHRSQL, `evaluate.py`).

    Its queries were lower-cased, which turned `%Y` and `%J` into codes that SQLite does not know or
    reads otherwise; its now is a fixed moment; normal ranges of vital signs are named, not given.
    Unlike the release's own script this leaves case and doubled quotation marks alone.
    """
    sql = _NOW.sub(f"'{REFERENCE_TIME}'", sql)
    sql = _TODAY.sub(f"'{REFERENCE_TIME[:10]}'", sql)
    sql = sql.replace("%y", "%Y").replace("%j", "%J")
    return _RANGE.sub(lambda found: str(NORMAL_RANGES[found[1].lower()][found[2].lower() == "upper"]), sql)


class _Database:
    """A sandbox, and the outcomes of gold queries, which are run once, and of the last queries."""

    def __init__(self, path: str) -> None:
        self.sandbox = SqlSandbox(Path(path))
        self.gold: dict[str, QueryResult] = {}
        self.last: dict[str, QueryResult] = {}  # both readings of a reply are mostly one query

    def outcomes(self, gold: list[str], predicted: list[str]) -> dict[str, QueryResult]:
        """The outcome of each query; each distinct one is run once."""
        known = self.last | self.gold
        wanted = [query for query in dict.fromkeys([*gold, *predicted]) if query not in known]
        known |= zip(wanted, self.sandbox.run(wanted), strict=True) if wanted else ()
        for query in gold:
            outcome = known[query]
            if query in self.gold:
                continue
            if outcome.decided:
                self.gold[query] = outcome
            if outcome.took_too_long or not outcome.decided:
                shown = query if shows_text() else excerpt(query)
                why = f"gave no result ({outcome.error}), so no answer to it can be right"
                log.warning("a gold query %s: %s", why, shown)
        results = {query: known[query] for query in (*gold, *predicted)}
        self.last = {query: outcome for query, outcome in results.items() if outcome.decided}
        return results


@lru_cache(maxsize=4)
def _database(path: str) -> _Database:
    return _Database(path)
