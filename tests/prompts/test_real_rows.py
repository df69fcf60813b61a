"""Official prompts of real rows are those that HELM's own code makes of them.

`MEDTASKS_REAL_ROWS` names a folder of such rows in the files of their authors; without it these tests skip.
`real_rows.json` holds hashes of HELM's message lists (benchmarks/official/helm_messages.py).
"""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.runner.proof import digest
from tests.conftest import read_json

REAL_ROWS = Path(os.environ.get("MEDTASKS_REAL_ROWS", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("MEDTASKS_REAL_ROWS"), reason="MEDTASKS_REAL_ROWS is not set"
)
PROOFS = read_json(Path(__file__).parent / "real_rows.json")


@pytest.mark.parametrize("name", PROOFS)
def test_prompts_of_real_rows_are_those_of_helm(name, helm, data_dir):
    source = REAL_ROWS / PROOFS[name]["file"]
    folder = data_dir / "medhelm" / name
    folder.mkdir(parents=True)
    shutil.copy(source, folder / f"test{source.suffix}")
    dataset = registry().dataset(f"medhelm/{name}")
    documents = load_documents(dataset, cot=False, prompts="official")["test"]
    found = [digest([{"role": "user", "content": document["prompt"]}]) for document in documents]
    assert Counter(found) == Counter(PROOFS[name]["messages"])
