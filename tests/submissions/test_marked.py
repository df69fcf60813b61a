"""What a run was asked with is in its submission and on the site, and no text of the user's."""

from tests.submissions.conftest import CLOSED_COUNTS, PLACE


def test_settings_that_were_added_are_in_the_submission_and_on_the_site(medtasks, run, tmp_path):
    run("run", "--gen_kwargs", "repetition_penalty=1.8", "--system_instruction", "Most answers are yes.",
        "--apply_chat_template", tasks=CLOSED_COUNTS)  # fmt: skip
    assert medtasks("card", "--layout", "medtasks", "run", "-o", PLACE).code == 0
    record = (tmp_path / PLACE / "submission.json").read_text(encoding="utf-8")
    assert '"repetition_penalty": 1.8' in record and "Most answers" not in record
    assert '"system_instruction": "text-' in record and '"engines"' in record
    root = PLACE.partition("/")[0]
    assert medtasks("dev", "site", "--submissions", root, "-o", "site").code == 0
    [page] = (tmp_path / "site" / "models").glob("org-random-label-*.html")
    text = page.read_text(encoding="utf-8")
    assert "generation settings" in text and "system instruction" in text
    assert "Most answers" not in text
