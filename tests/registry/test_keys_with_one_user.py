"""A key in files of tasks and suites with one user stands in a list beside this file, with a reason."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from medtasks_ext.strict import read_yaml

ROOT = Path(__file__).resolve().parents[2]
#: Below these stand names that a dataset or suite chooses.
OF_NAMES = {
    *("columns", "fields", "optional", "types", "codes", "digests", "axes", "values", "parts", "vocabulary"),
    *("groups", "sets", "short", "access", "aliases", "strategy_lines", "row_labels", "left_out"),
    *("artefacts", "juries", "adapters", "instruction"),
}
#: What a kind of answers or a suite's own adapters read, and refuse of others.
OF_THEIR_ROOM = ("answer", "official", "metadata")


def keys(content: Any, above: str = "") -> Iterator[str]:
    """Dotted names of keys; `*` for a name that a file chooses."""
    if isinstance(content, list):
        for item in content:
            yield from keys(item, above)
    elif isinstance(content, dict):
        for name, value in content.items():
            chosen = above.rpartition(".")[2] in OF_NAMES or above.startswith("sets.")
            here = f"{above}.{'*' if chosen else name}".removeprefix(".")
            here = here.replace("rows.schemas.", "rows.")
            here = re.sub(r"^rows\.(original|download)\.reader\.", "reader.", here)
            yield here
            yield from keys(value, here)


def with_one_user(pattern: str, suite: int) -> set[str]:
    """The keys of some files that one suite alone has; of those inside each other the outermost."""
    users = defaultdict(set)
    for file in (ROOT / "tasks").glob(pattern):
        for key in keys(read_yaml(file)):
            users[key].add(file.parts[suite])
    single = {key for key, suites in users.items() if len(suites) == 1 and not key.endswith("*")}
    return {
        key
        for key in single
        if not {key.split(".")[0], *key.split(".")[:-1]} & {*OF_THEIR_ROOM}
        and not any(key.startswith(f"{other}.") for other in single)
    }


def test_each_key_with_one_user_is_listed_with_a_reason_and_no_other_is():
    text = Path(__file__).with_name("keys_with_one_user.yaml").read_text(encoding="utf-8")
    lines = yaml.safe_load(text)
    listed = [name for line in lines for name in line["keys"]]
    assert all(line["user"] and line["why"] for line in lines) and len(listed) == len({*listed})
    assert {*listed} == with_one_user("*/*/task.yaml", -3) | with_one_user("*/suite.yaml", -2)
