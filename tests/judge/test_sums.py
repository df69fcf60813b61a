"""The hashes of a run that judges and clinicians rated, and whose texts went to a server."""

from tests.judge.server import Reply, verdict
from tests.judge.test_clinicians import ANN, BEN, judged, rated, ratings_file  # noqa: F401  a fixture
from tests.runs.changes import all_named, files_of, named


def test_every_change_to_a_judged_and_rated_run_is_named(judged, tmp_path):  # noqa: F811
    folder, _ = judged()
    files = files_of(folder)
    wanted = {"judgements/answers.jsonl", "judgements/agreement.json"}
    assert wanted <= set(files)
    made = all_named(folder, tmp_path)
    assert set(files) <= made.keys() and sum(made.values()) >= 137


def test_judging_is_no_change_and_names_what_was_changed_before(run, jury, medtasks, server):
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 4))
    folder = run("qa")
    assert medtasks("judge", "--jury", jury("one")).code == 0
    assert named(folder) == set()
    samples = next(folder.glob("samples_*.jsonl"))
    samples.write_text(samples.read_text() + "\n")
    again = medtasks("judge", "--jury", jury("one"))
    assert f"changed since the run ended: {samples.name}" in again.err
    assert named(folder) == {samples.name}
