"""Sample rows as long as real records, put together from invented parts (see README.md).

python tools/sample_records/assemble.py [--check]
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
TASKS = HERE.parents[1] / "tasks"
#: Times of vital signs in a stay, and of the notes of the two nursing shifts.
ROUNDS, SHIFTS = [f"{hour:02d}:00" for hour in range(0, 24, 2)], ("06:40", "18:50")
DAYS_IN_YEAR = 365


class Chart:
    """The chart of one patient: dated notes, flow sheets, laboratory tables, medication records.

    Args:
        patient: an entry of charts.yaml.
    """

    def __init__(self, patient: dict[str, Any]):
        self.patient = patient
        self.random = random.Random(patient["id"])
        self.unused: dict[str, list[str]] = {}

    def text(self) -> str:
        """The whole chart, oldest entry first."""
        entries = sorted(self._entries(), key=lambda entry: entry[0])
        return "\n\n".join([self.patient["header"].strip(), *(text for _, text in entries)])

    def _entries(self) -> Iterator[tuple[float, str]]:
        for note in self.patient["notes"]:
            yield note["day"], f"{stamp(note['day'])} {note['title']}\n{note['text'].strip()}"
        for series in self.patient["series"]:
            for at, day in enumerate(series["days"]):
                yield day + 0.4, self._visit(series, day, at)
        for day in self.patient["laboratory_days"]:
            yield day + 0.5, self._laboratory(day, self.patient["panels"])
        for stay in self.patient["stays"]:
            yield from self._stay(stay)

    def _visit(self, series: dict[str, Any], day: int, at: int) -> str:
        """A short visit or call: the values of the day, and what was said."""
        values = ", ".join(f"{name} {self._value(name, day)}" for name in series["values"])
        said = " ".join(self._phrase(pool, series["pools"][pool]) for pool in series["pools"])
        counted = f" ({series['counts']} {at + 1})" if "counts" in series else ""
        return f"{stamp(day)} {series['title']}{counted}\n{values}{'. ' if values else ''}{said}"

    def _stay(self, stay: dict[str, Any]) -> Iterator[tuple[float, str]]:
        for number in range(stay["days"]):
            day = stay["from"] + number
            head = f"{stamp(day)} {stay['unit']}, HOSPITAL DAY {number + 1}"
            yield day + 0.1, f"{head}, FLOWSHEET\n{self._flowsheet(day)}"
            yield day + 0.2, self._laboratory(day, stay["panels"])
            yield day + 0.3, f"{head}, MEDICATION ADMINISTRATION RECORD\n{self._given(stay, number)}"
            for at, shift in enumerate(SHIFTS):
                passed = (number + at / len(SHIFTS)) / stay["days"]
                course = [phrases[int(passed * len(phrases))] for phrases in stay["course"].values()]
                any_time = [
                    self._phrase(f"{stay['unit']} {name}", pool) for name, pool in stay["pools"].items()
                ]
                said = " ".join([*course, *any_time])
                yield day + 0.4, f"{head}, NURSING {shift}\nPain {self._pain(stay, number)}/10. {said}"
            if number in stay.get("progress", {}):
                yield day + 0.5, f"{head}, PROGRESS NOTE\n{stay['progress'][number].strip()}"

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

    def _laboratory(self, day: float, panels: list[str]) -> str:
        lines = []
        for panel in panels:
            tests = (f"{name} {self._value(name, day)}" for name in self.patient["laboratory"][panel])
            lines.append(f"{panel}: " + ", ".join(tests))
        return f"{stamp(day)} LABORATORY, collected 05:{self.random.randrange(10, 55)}\n" + "\n".join(lines)

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


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Dataset and row of every long record."""
    for patient in yaml.safe_load((HERE / "charts.yaml").read_text(encoding="utf-8")):
        row = {"_split": "test", "id": patient["id"], "prompt": patient["prompt"]}
        yield patient["dataset"], row | {"context": Chart(patient).text(), "label": patient["label"]}
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
