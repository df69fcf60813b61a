"""The seal of a run that judges and clinicians rated, and whose texts went to a server."""

import json

from medtasks_ext.registry import registry
from medtasks_ext.runner.verify import verify
from medtasks_ext.runs.seal import look
from tests.judge.server import Reply, verdict
from tests.judge.test_clinicians import ANN, BEN, judged, rated, ratings_file  # noqa: F401  a fixture
from tests.runner.test_bound import sealed_anew
from tests.runs.changes import files_of
from tests.runs.test_seal import all_named, named


def test_every_change_to_a_judged_and_rated_run_is_named(judged, tmp_path):  # noqa: F811
    folder, _ = judged()
    files = files_of(folder)
    wanted = {"sent.jsonl", "judgements/clinicians.csv", "judgements/agreement.json"}
    assert wanted <= set(files) and "judgements/medhelm_qa.jsonl" in files
    made = all_named(folder, tmp_path)
    assert set(files) <= made.keys() and sum(made.values()) >= 137
    assert [root.state for root in look(folder).roots][-1] == "rated"


def test_judging_is_a_later_state_and_its_root_is_printed(run, jury, medtasks, server):
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 4))
    folder = run("qa")
    done = medtasks("judge", "run", "--jury", jury("one"))
    assert done.code == 0, done.text
    state = look(folder)
    assert [root.state for root in state.roots] == ["written", "judged"] and named(folder) == set()
    assert f"root: {state.roots[-1].root}" in done.text
    manifest = json.loads((folder / "run.json").read_text())
    assert manifest["seal"] == {**manifest["seal"], "digest": state.roots[-1].root, "why": "judged"}


def test_judgements_say_whose_answers_they_are_about(run, jury, medtasks, server):
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 4))
    folder = run("qa")
    asked = ("--tasks", "medhelm_qa", "--model", "oracle", "--seed", "1", "--output_path", "other")
    assert medtasks("run", *asked).code == 0
    other = folder.with_name("other")
    assert medtasks("judge", "run", "--jury", jury("one")).code == 0
    assert medtasks("judge", "other", "--jury", jury("one")).code == 0
    sealed_anew(folder)
    assert named(folder) == set()
    file = folder / "judgements/medhelm_qa.jsonl"
    file.write_bytes((other / "judgements/medhelm_qa.jsonl").read_bytes())
    theirs, manifest = (json.loads((place / "run.json").read_text()) for place in (other, folder))
    (folder / "run.json").write_text(json.dumps({**manifest, "judgements": theirs["judgements"]}))
    sealed_anew(folder)
    changes = {change.file: change.what for change in verify(folder, registry()).changes}
    assert "or of other settings, than run.json names" in changes["judgements/medhelm_qa.jsonl"]
