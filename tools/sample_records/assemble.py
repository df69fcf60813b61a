"""Sample rows as long as real records, put together from invented parts (see README.md).

python tools/sample_records/assemble.py [--check]
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import yaml

HERE = Path(__file__).parent
TASKS = HERE.parents[1] / "tasks"
#: Times of vital signs in a stay, and of the notes of the two nursing shifts.
ROUNDS, SHIFTS = [f"{hour:02d}:00" for hour in range(0, 24, 2)], ("06:40", "18:50")
DAYS_IN_YEAR = 365
#: Days between two entries beyond which the later one begins a new note.
PAUSE = 3
#: The line between two notes in a patient's file of n2c2 2018.
ASTERISKS = "*" * 100
#: Keys of a row in charts.yaml that are no columns.
_OF_THE_TOOL = ("dataset", "until")


@dataclass(frozen=True)
class Entry:
    """One dated part of a chart."""

    day: float  # of follow-up; the fraction orders the entries of a day
    title: str
    text: str
    values: tuple[tuple[str, str], ...] = ()  # name and value, where the text is a table of them

    def __str__(self) -> str:
        return f"{stamp(self.day)} {self.title}\n{self.text}"

    def event(self, first_day: date) -> str:
        """The entry in an event stream: measurements, or a note."""
        start = f'start="{first_day + timedelta(days=int(self.day))}"'
        if not self.values:
            return f"<note type={quoteattr(self.title.lower())} {start}>{escape(self.text)}</note>"
        made = (
            f"<measurement name={quoteattr(name)} {start}>{value}</measurement>"
            for name, value in self.values
        )
        return "\n".join(made)


class Chart:
    """The chart of one patient: dated notes, flow sheets, laboratory tables, medication records.

    Args:
        patient: an entry of charts.yaml.
        until: the last day that is printed; all without one.
    """

    def __init__(self, patient: dict[str, Any], until: float = math.inf):
        self.patient = patient
        self.random = random.Random(patient["id"])
        self.unused: dict[str, list[str]] = {}
        entries = sorted(self._entries(), key=lambda entry: entry.day)
        self.entries = [entry for entry in entries if entry.day <= until]

    def text(self) -> str:
        """The chart as text, oldest entry first."""
        return "\n\n".join([self.patient["header"].strip(), *map(str, self.entries)])

    def events(self) -> str:
        """The chart as an event stream with calendar dates, without flow sheets."""
        first_day = date.fromisoformat(self.patient["first_day"])
        head = f'<person birth_year="{self.patient["birth_year"]}" gender="{self.patient["gender"]}"/>'
        kept = (entry for entry in self.entries if not entry.title.endswith("FLOWSHEET"))
        lines = (entry.event(first_day) for entry in kept)
        return "\n".join(["<eventstream>", head, *lines, "</eventstream>"])

    def notes(self) -> str:
        """The chart as dated notes, one for each stay and each visit, without flow sheets."""
        first_day = date.fromisoformat(self.patient["first_day"])
        notes: list[list[Entry]] = []
        for entry in self.entries:
            if entry.title.endswith("FLOWSHEET"):
                continue
            if not notes or entry.day - notes[-1][-1].day > PAUSE:
                notes.append([])
            notes[-1].append(entry)
        return f"\n\n{ASTERISKS}\n".join(
            f"Record date: {first_day + timedelta(days=int(note[-1].day))}\n\n"
            + "\n\n".join(f"{entry.title}\n{entry.text}" for entry in note)
            for note in notes
        )

    def _entries(self) -> Iterator[Entry]:
        for note in self.patient["notes"]:
            yield Entry(note["day"], note["title"], note["text"].strip())
        for series in self.patient["series"]:
            for at, day in enumerate(series["days"]):
                yield self._visit(series, day, at)
        for day in self.patient["laboratory_days"]:
            yield self._laboratory(day, 0.5, self.patient["panels"])
        for stay in self.patient["stays"]:
            yield from self._stay(stay)

    def _visit(self, series: dict[str, Any], day: int, at: int) -> Entry:
        """A short visit or call: the values of the day, and what was said."""
        values = ", ".join(f"{name} {self._value(name, day)}" for name in series["values"])
        passed = at / len(series["days"])
        course = [phrases[int(passed * len(phrases))] for phrases in series.get("course", {}).values()]
        any_time = [self._phrase(pool, series["pools"][pool]) for pool in series["pools"]]
        said = " ".join([*course, *any_time])
        counted = f" ({series['counts']} {at + 1})" if "counts" in series else ""
        text = f"{values}{'. ' if values else ''}{said}"
        return Entry(day + 0.4, f"{series['title']}{counted}", text)

    def _stay(self, stay: dict[str, Any]) -> Iterator[Entry]:
        for number in range(stay["days"]):
            day = stay["from"] + number
            head = f"{stay['unit']}, HOSPITAL DAY {number + 1}"
            yield Entry(day + 0.1, f"{head}, FLOWSHEET", self._flowsheet(day))
            yield self._laboratory(day, 0.2, stay["panels"])
            yield Entry(day + 0.3, f"{head}, MEDICATION ADMINISTRATION RECORD", self._given(stay, number))
            for at, shift in enumerate(SHIFTS):
                passed = (number + at / len(SHIFTS)) / stay["days"]
                course = [phrases[int(passed * len(phrases))] for phrases in stay["course"].values()]
                any_time = [
                    self._phrase(f"{stay['unit']} {name}", pool) for name, pool in stay["pools"].items()
                ]
                said = " ".join([*course, *any_time])
                text = f"Pain {self._pain(stay, number)}/10. {said}"
                yield Entry(day + 0.4, f"{head}, NURSING {shift}", text)
            if number in stay.get("progress", {}):
                yield Entry(day + 0.5, f"{head}, PROGRESS NOTE", stay["progress"][number].strip())

    def _flowsheet(self, day: int) -> str:
        names = self.patient["vitals"]
        rows = [" | ".join(["Time", *names])]
        for at in ROUNDS:
            moment = day + int(at[:2]) / 24
            rows.append(" | ".join([at, *(self._value(name, moment) for name in names)]))
        taken, passed = self.random.randrange(1300, 2200, 20), self.random.randrange(1100, 2500, 25)
        return "\n".join(
            [*rows, f"Intake {taken} mL, urine {passed} mL, weight {self._value('Weight', day)}"]
        )

    def _laboratory(self, day: int, at: float, panels: list[str]) -> Entry:
        values = [(panel, name, self._value(name, day)) for panel in panels for name in self._tests(panel)]
        lines = [
            f"{panel}: " + ", ".join(f"{name} {value}" for of, name, value in values if of == panel)
            for panel in panels
        ]
        title = f"LABORATORY, collected 05:{self.random.randrange(10, 55)}"
        return Entry(day + at, title, "\n".join(lines), tuple((name, value) for _, name, value in values))

    def _tests(self, panel: str) -> list[str]:
        return list(self.patient["laboratory"][panel])

    def _given(self, stay: dict[str, Any], number: int) -> str:
        lines = []
        for drug in stay["drugs"]:
            first, last = drug.get("from", 0), drug.get("to", stay["days"])
            if first <= number <= last:
                times = ", ".join(f"{hour:02d}:{self.random.randrange(0, 40):02d}" for hour in drug["hours"])
                lines.append(f"- {drug['name']}: given {times}")
        return "\n".join(lines)

    def _pain(self, stay: dict[str, Any], number: int) -> int:
        return max(0, stay["pain"] - number + self.random.randrange(0, 2))

    def _value(self, name: str, day: float) -> str:
        """A value between the points of its course, with some noise, and H or L outside its range."""
        course = self.patient["courses"][name]
        points = [(float(at), value) for at, value in course["points"]]
        value = points[-1][1]
        for (start, low), (end, high) in pairwise(points):
            if start <= day <= end:
                value = low + (high - low) * (day - start) / (end - start)
                break
        value += self.random.uniform(-1, 1) * course["noise"]
        if "most" in course:
            value = min(value, course["most"])
        digits = course.get("digits", 0)
        flag = ""
        if "range" in course:
            least, most = course["range"]
            flag = " (L)" if round(value, digits) < least else " (H)" if round(value, digits) > most else ""
        return f"{value:.{digits}f}{course.get('unit', '')}{flag}"

    def _phrase(self, pool: str, phrases: list[str]) -> str:
        """A phrase of a pool; all are used before one comes again."""
        if not self.unused.get(pool):
            self.unused[pool] = self.random.sample(phrases, len(phrases))
        return self.unused[pool].pop()


def stamp(day: float) -> str:
    """Year and day of follow-up: no calendar date."""
    return f"[Y{int(day) // DAYS_IN_YEAR + 1} D{int(day) % DAYS_IN_YEAR + 1:03d}]"


def coded_record(patient: dict[str, Any], panels: dict[str, list[str]]) -> list[str]:
    """The codes of a patient's record, oldest first."""
    draw = random.Random(patient["id"])
    codes = list(patient["person"])
    for stage in patient["stages"]:
        for number in range(stage["times"]):
            codes.append(f"Visit/{stage['visit']}")
            codes += draw.sample(
                stage["conditions"], min(stage.get("per_visit", 2), len(stage["conditions"]))
            )
            codes += stage.get("procedures", []) if number == 0 or not stage.get("once") else []
            for _ in range(stage.get("days", 1)):
                for panel in stage["panels"]:
                    codes += panels[panel]
                for name in draw.sample(
                    stage["drugs"], min(stage.get("drugs_a_day", 4), len(stage["drugs"]))
                ):
                    codes.append(name)
    return codes


def _arranged(dataset: str, given: dict[str, Any], chart: Chart) -> dict[str, Any]:
    """A row in the columns of its dataset, in their order."""
    if dataset == "medhelm/medalign":
        found = given | {"ehr": chart.events()}
        order = ("_split", "id", "question", "ehr", "clinician_response", "instruction_id")
    elif dataset == "medhelm/clinic_referral":
        found = given | {"context": chart.text(), "question": _question(dataset)}
        order = ("_split", "id", "question", "context", "label")
    elif dataset == "medhelm/n2c2_ct":
        found = given | {"text": chart.notes()}
        order = ("_split", "id", "text", "tags")
    else:
        found = given | {"context": chart.text()}
        order = ("_split", "id", "prompt", "context", "label")
    return {key: found[key] for key in order}


def _question(dataset: str) -> str:
    """The question of all rows of a dataset."""
    with (TASKS / dataset / "sample.jsonl").open(encoding="utf-8") as file:
        return str(json.loads(next(file))["question"])


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Dataset and row of every long record."""
    for patient in yaml.safe_load((HERE / "charts.yaml").read_text(encoding="utf-8")):
        for row in patient["rows"]:
            given = {"_split": "test"} | {key: value for key, value in row.items() if key not in _OF_THE_TOOL}
            chart = Chart(patient, row.get("until", math.inf))
            yield row["dataset"], _arranged(row["dataset"], given, chart)
    coded = yaml.safe_load((HERE / "codes.yaml").read_text(encoding="utf-8"))
    for patient in coded["patients"]:
        row = {key: patient[key] for key in ("id", "patient", "subject")}
        record = coded_record(patient, coded["panels"])
        yield (
            "medhelm/ehrshot",
            {"_split": "test"} | row | {"codes": record, "boolean_value": patient["boolean_value"]},
        )


def main(check: bool) -> int:
    """Write the rows into their files, or compare them; 1 where they differ."""
    differ = 0
    for dataset, row in rows():
        path = TASKS / dataset / "sample.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()
        new = json.dumps(row, ensure_ascii=False)
        if new in lines:
            continue
        differ += 1
        print(f"{dataset} {row['id']}: {'differs' if check else 'written'}")
        if not check:
            kept = [line for line in lines if json.loads(line)["id"] != row["id"]]
            path.write_text("\n".join([*kept, new]) + "\n", encoding="utf-8")
    return int(check and differ > 0)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
