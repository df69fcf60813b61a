"""Draw the pictures of pages that docs show: `python docs/pictures/make.py`.

Needs Chromium. The report and the leaderboard show published scores. The runs of the viewer are made of the
bundled synthetic rows: two imagined models give gold answers, and answers with mistakes as real ones make.
Their scores say nothing about any model, and these pictures say SAMPLE.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import Chromium  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

TASKS = ("bridge_mednli", "bridge_ade_extraction", "clinicbench_bc5_disease", "medhelm_mimic_iv_billing_code")
#: Imagined model -> share of its answers that are right.
MODELS = {"imagined-8b": 0.35, "imagined-70b": 0.65}
#: Name of the picture -> part of the page of own runs.
PICTURES = {
    "viewer_answers": "answers/bridge_ade_extraction?doc=t4",
    "viewer_errors": "answers/bridge_mednli?part=errors",
}
#: Name of the picture -> page of published scores, and what it shows.
PUBLISHED = {
    "report_leaderboard": ("report/report.html", "leaderboard"),
    "leaderboard": ("site/index.html", ""),
}
SIZE = (1360, 900)


def medtasks(*arguments: str) -> None:
    """Run a command; what it prints is left out."""
    subprocess.run(
        [sys.executable, "-m", "medtasks_ext", *arguments], check=True, cwd=ROOT, capture_output=True
    )


def mistaken(target: str, others: Sequence[str], draw: random.Random) -> tuple[str, str]:
    """A response that is not right, and why it ended."""
    lines = target.split("\n")
    shorter = (
        "\n".join([*lines[1:], lines[0][: max(1, 2 * len(lines[0]) // 3)]]) if len(lines) > 1 else target
    )
    mistakes = [
        (draw.choice(others), "stop"),
        (shorter, "stop"),
        (draw.choice(others), "stop"),
        (
            f"<think>The question is which finding matters here. {draw.choice(others)} would be one way to",
            "length",
        ),
        ("I'm sorry, but I cannot give a diagnosis for this patient.", "stop"),
        ("This depends on the clinical picture as a whole, which has more than one reading.", "stop"),
        (f"{target.partition(':')[0]}: undetermined", "stop"),
    ]
    return draw.choice(mistakes)


def make_run(folder: Path, model: str, right: float, targets: dict[tuple[str, str], str]) -> Path:
    """A run of an imagined model, through the files of a batch."""
    draw = random.Random(model)
    run, asked, answered = folder / model, folder / f"{model}.jsonl", folder / f"{model}.answers.jsonl"
    flags = (
        "run", *TASKS, "--model", "local-chat-completions", "--model_args", f"model={model}",
        "--apply_chat_template", "--data", "sample", "--output_path", str(run),
    )  # fmt: skip
    medtasks(*flags, "--to-batch", str(asked))
    rows = map(json.loads, (run / "answers.jsonl").read_text(encoding="utf-8").splitlines())
    documents = {row["key"]: (row["task"], row["document"]) for row in rows if row["outcome"] == "question"}
    lines = []
    for line in asked.read_text(encoding="utf-8").splitlines():
        key = json.loads(line)["custom_id"]
        task, document = documents[key]
        target = targets[task, document]
        others = [text for (name, _), text in targets.items() if name == task and text != target]
        text, finish = (target, "stop") if draw.random() < right else mistaken(target, others, draw)
        if finish == "stop" and model.endswith("70b"):
            text = f"<think>The text says it in so many words; the format is given.</think>\n{text}"
        body = {
            "model": model,
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
            ],
            "usage": {"prompt_tokens": 180 + len(text), "completion_tokens": 1 + len(text) // 4},
        }
        lines.append(
            json.dumps({"custom_id": key, "response": {"status_code": 200, "body": body}, "error": None})
        )
    answered.write_text("\n".join(lines) + "\n", encoding="utf-8")
    medtasks(*flags, "--from-batch", str(answered))
    return run


def make_runs(folder: Path) -> list[Path]:
    """The runs of all imagined models, below a folder."""
    medtasks("run", *TASKS, "--model", "oracle", "--data", "sample", "--output_path", str(folder / "oracle"))
    targets = {
        (task, record["doc"]["id"]): record["doc"]["target"]
        for task in TASKS
        for record in map(
            json.loads, (folder / "oracle" / f"samples_{task}.jsonl").read_text(encoding="utf-8").splitlines()
        )
    }
    return [make_run(folder, model, right, targets) for model, right in MODELS.items()]


def main() -> None:
    """Draw all pictures beside this file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        medtasks("report", "--published", "all", "-o", str(folder / "report"))
        medtasks("dev", "site", "-o", str(folder / "site"))
        medtasks("report", *map(str, make_runs(folder)), "-o", str(folder / "own"))
        browser = Chromium(folder / "profile", folder)
        browser.screen(*SIZE)
        pages = {name: (folder / "own" / "report.html", at) for name, at in PICTURES.items()} | {
            name: (folder / page, at) for name, (page, at) in PUBLISHED.items()
        }
        for picture, (page, address) in pages.items():
            browser.call("Page.navigate", url=f"{page.as_uri()}#{address}")
            browser.wait("document.readyState === 'complete' && !!document.querySelector('main h2')")
            browser.wait("!document.querySelector('[aria-busy=true]')")
            browser.js("document.querySelector('.parts')?.scrollIntoView()")
            browser.screenshot(Path(__file__).with_name(f"{picture}.png"))
        browser.close()


if __name__ == "__main__":
    main()
