"""EHRSQL: SQL is run and its result compared (HELM, `ehr_sql_annotator` and `ehr_sql_metrics`).

Gold and reply are run on the dataset's SQLite database. `ehr_sql_execution_accuracy` (the score) is 1 if
both results have rows and the sets of rows are equal, or if the reply is empty and the gold has neither rows
nor slot values. Limits of a query: 300 million steps of SQLite, 20 s of a processor, 50,000 distinct rows,
16 MiB. A query whose process fails twice counts in `ehr_sql_not_decided`, and as wrong.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from medtasks_ext.answers.sql import GoldQuery, Statement
from medtasks_ext.metrics.common import Document, Metrics, scorer
from medtasks_ext.metrics.sql_sandbox import QueryResult, SqlSandbox
from medtasks_ext.privacy import excerpt, shows_text

log = logging.getLogger(__name__)

#: What stands for the reply when reasoning never ended: text that is no SQL, and no abstention.
_UNREADABLE = Statement(empty=False, sql="unreadable")
#: The outcome where there is no statement to run.
_NOTHING = QueryResult(None, "no statement")


@scorer
def process_results(document: Document, gold: GoldQuery, answer: Statement | None) -> Metrics:
    """As HELM's; precision and recall of answerable questions are indicators, averaged over all documents."""
    answer = answer or _UNREADABLE
    gold_sql, sql = gold["query"], answer["sql"]
    database = _database(document.loaded.database_file)  # type: ignore[attr-defined]
    outcomes = database.outcomes([gold_sql], [sql] if sql else [])
    result = outcomes.get(sql, _NOTHING)
    right = _result_accuracy(outcomes[gold_sql], result, empty_reply=answer["empty"], slots=gold["slots"])
    attempted = float(not answer["empty"]) * gold["answerable"]
    return {
        **dict.fromkeys(("score", "ehr_sql_execution_accuracy"), right),
        "ehr_sql_query_validity": float(result.error is None),
        "ehr_sql_not_decided": float(not all(outcome.decided for outcome in outcomes.values())),
        **dict.fromkeys(("ehr_sql_precision_answerable", "ehr_sql_recall_answerable"), attempted),
    }


def _result_accuracy(gold: QueryResult, result: QueryResult, *, empty_reply: bool, slots: bool) -> float:
    if gold.rows and result.rows:
        return float(gold.rows == result.rows)
    # HELM puts slot values in the place of an empty gold result; they never equal a row
    return float(empty_reply and not gold.rows and not slots)


class _Database:
    def __init__(self, path: str) -> None:
        self.sandbox = SqlSandbox(Path(path))
        self.gold: dict[str, QueryResult] = {}
        self.last: dict[str, QueryResult] = {}  # both readings of a reply are mostly one query

    def outcomes(self, gold: list[str], predicted: list[str]) -> dict[str, QueryResult]:
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
