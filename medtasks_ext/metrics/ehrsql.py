"""EHRSQL: SQL is run and its result compared (HELM, `ehr_sql_annotator` and `ehr_sql_metrics`)."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from medtasks_ext.metrics.common import result
from medtasks_ext.metrics.sql_sandbox import OUT_OF_TIME, Outcome, SqlSandbox
from medtasks_ext.privacy import excerpt, shows_text

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
_UNREADABLE: dict[str, Any] = {"empty": False, "sql": "unreadable"}
#: The outcome where there is no statement to run.
_NOTHING = Outcome(None, "no statement")


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """HELM's metrics of one document, and repaired ones beside them.

    `ehr_sql_execution_accuracy` (the score) is 1 when both results have rows and their sets of rows
    are equal, or when the reply is blank and the gold has neither rows nor slot values. Precision
    and recall of answerable questions are HELM's indicators, averaged over all documents.

    The repaired metrics take the repaired reading, run it and the gold as the dataset means them
    (`as_dataset_means`), let an empty result equal an empty result, count a reply `null` or without a
    statement as abstention, and take precision over attempted and recall over answerable questions.
    """
    parsed, gold = results[0], document["gold"]
    if gold is None:
        return result(document, parsed)
    answer = parsed["answer"] or _UNREADABLE
    repaired = parsed["repaired"]["answer"] or _UNREADABLE
    gold_sql, sql, other = gold["query"], answer["sql"], repaired["sql"]
    meant_gold, meant = as_dataset_means(gold_sql), as_dataset_means(other)
    database = _database(document.loaded.database_file)  # type: ignore[attr-defined]
    asked = [query for query in dict.fromkeys([sql, other, meant]) if query]
    outcomes = database.outcomes([gold_sql, meant_gold], asked)
    found = outcomes.get(sql, _NOTHING)

    def right_with(read: dict[str, Any]) -> float:
        outcome = outcomes.get(read["sql"], _NOTHING)
        return _result_accuracy(outcomes[gold_sql], outcome, empty_reply=read["empty"], slots=gold["slots"])

    right = right_with(answer)
    tried = float(not answer["empty"])
    both = tried * gold["answerable"]
    return result(
        document,
        parsed,
        score=right,
        score_repaired=right_with(repaired),
        ehr_sql_execution_accuracy=right,
        ehr_sql_query_validity=float(found.error is None),
        ehr_sql_precision_answerable=both,
        ehr_sql_recall_answerable=both,
        **_repaired(
            outcomes[meant_gold],
            outcomes.get(meant, _NOTHING),
            answerable=gold["answerable"],
            tried=not (repaired["empty"] or _abstains(other)),
        ),
    )


def _result_accuracy(gold: Outcome, found: Outcome, *, empty_reply: bool, slots: bool) -> float:
    if gold.rows and found.rows:
        return float(gold.rows == found.rows)
    # HELM puts slot values in the place of an empty gold result; they never equal a row
    return float(empty_reply and not gold.rows and not slots)


def _abstains(sql: str) -> bool:
    return sql.strip(" \t\n;").lower() in ("", "null")


def _repaired(gold: Outcome, found: Outcome, *, answerable: bool, tried: bool) -> dict[str, Any]:
    if answerable:
        right = float(tried and found.rows is not None and gold.rows == found.rows)
        countable = gold.rows is not None  # where the gold cannot run nothing can be right
    else:
        right, countable = float(not tried), True
    both = float(tried and answerable)
    return {
        "ehr_sql_execution_accuracy_repaired": (right, 1.0) if countable else (0.0, 0.0),
        "ehr_sql_precision_answerable_repaired": (both, float(tried)),
        "ehr_sql_recall_answerable_repaired": (both, float(answerable)),
    }


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
    """A sandbox, and the outcomes of gold queries, which are run once."""

    def __init__(self, path: str) -> None:
        self.sandbox = SqlSandbox(Path(path))
        self.gold: dict[str, Outcome] = {}

    def outcomes(self, gold: list[str], predicted: list[str]) -> dict[str, Outcome]:
        """The outcome of each query; each distinct one is run once."""
        wanted = [query for query in dict.fromkeys([*gold, *predicted]) if query not in self.gold]
        found = dict(zip(wanted, self.sandbox.run(wanted), strict=True))
        for query in gold:
            if query not in self.gold:
                self.gold[query] = found[query]
                if found[query].error == OUT_OF_TIME:  # on a machine that is far too busy
                    shown = query if shows_text() else excerpt(query)
                    log.warning("a gold query ran out of time, so no answer to it can be right: %s", shown)
        return {query: found[query] if query in found else self.gold[query] for query in (*gold, *predicted)}


@lru_cache(maxsize=4)
def _database(path: str) -> _Database:
    return _Database(path)
