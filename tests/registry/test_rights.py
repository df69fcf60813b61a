"""Terms of datasets: one record for each source, closed values, and one line that says what they restrict."""

import json

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import forget, registry
from medtasks_ext.registry.metadata import Licence, licences, restrictions, use_of

TASKS = registry()
OPEN = {item.id: item.metadata for item in TASKS.datasets.values() if item.metadata.scoreable}


def card_of(dataset):
    from medtasks_ext.strict import read_mapping

    return read_mapping(dataset.folder / "card.yaml")["licence"]


def test_each_card_names_a_record_and_each_record_is_named():
    named = {card_of(item) for item in TASKS.datasets.values()}
    assert named == {*licences()}


def test_what_anyone_may_use_has_an_address_and_no_restricting_licence():
    for name, record in OPEN.items():
        licence = record.licence
        assert licence.place.startswith("https://"), name
        if record.use == "any":
            assert use_of(licence.spdx) == "any", name
        if licence.spdx in ("NONE", "NOASSERTION"):
            assert record.use == "unclear" and record.third_party_api == "unclear", name


def test_restricted_text_is_never_open():
    restricted = [item.metadata for item in TASKS.datasets.values() if item.metadata.third_party_api == "no"]
    assert {record.access for record in restricted} == {"gated", "private"}


def test_the_group_holds_what_the_filter_finds(medtasks):
    chosen = {name for name in TASKS.datasets if TASKS.datasets[name].metadata.use == "any"}
    shown = json.loads(medtasks("ls", "use=any", "--json").out)
    assert {record["id"] for record in shown} == chosen
    grouped = {name for name in chosen if TASKS.datasets[name].metadata.grouped}
    apart = {name for name in grouped if not TASKS.datasets[name].suite.in_totals}
    assert {*TASKS.leaves("medtasks_use_any")} == grouped - apart


@pytest.mark.parametrize(
    ("given", "spdx", "use", "api"),
    [
        ("mit", "MIT", "any", "yes"),
        ("CC-BY-NC-ND-4.0", "CC-BY-NC-ND-4.0", "research", "yes"),
        ("CC-BY-SA-4.0", "CC-BY-SA-4.0", "share-alike", "yes"),
        ("CC-BY-ND-4.0", "CC-BY-ND-4.0", "unclear", "unclear"),
        ("held by the ward", "NOASSERTION", "unclear", "unclear"),
        ("medqa", "MIT", "any", "yes"),
        ({"spdx": "LicenseRef-ward", "use": "research", "third_party_api": False}, "LicenseRef-ward",
         "research", "no"),
    ],
)  # fmt: skip
def test_a_text_stands_for_a_record(given, spdx, use, api):
    found = Licence.model_validate(given)
    assert (found.spdx, found.use, found.third_party_api) == (spdx, use, api)


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ("{spdx: Apache 2, use: any}", "is no licence of SPDX"),
        ("{spdx: CC-BY-NC-4.0, use: any}", "CC-BY-NC-4.0 does not allow any use"),
        ("{spdx: MIT, use: commercial}", "licence.use"),
        ("{spdx: MIT}", "licence.use: missing key"),
        ("{spdx: MIT, use: any, evidence: {address: here}}", "licence.evidence.address"),
    ],
)
def test_a_wrong_record_is_one_error(tmp_path, monkeypatch, licence, said):
    source = TASKS.datasets["medhelm_medec"].folder
    folder = tmp_path / "mine"
    folder.mkdir()
    config = (source / "task.yaml").read_text("utf-8").replace("medhelm_medec", "own_mine")
    (folder / "task.yaml").write_text(config.replace("medhelm/medec", "own/mine"), "utf-8")
    card = (source / "card.yaml").read_text("utf-8").replace("licence: medec", f"licence: {licence}")
    (folder / "card.yaml").write_text(card, "utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(tmp_path))
    forget()
    try:
        (reason,) = registry().broken.values()
    finally:
        monkeypatch.delenv("MEDTASKS_TASKS")
        forget()
    assert said in reason and "card.yaml" in reason


def test_the_line_names_sources_and_says_nothing_where_nothing_is_restricted():
    assert restrictions([("a", licences()["medqa"])]) == ""
    line = restrictions(
        [("a", licences()["n2c2"]), ("b", licences()["n2c2"]), ("c", licences()["medcalc_bench"])]
    )
    assert "2 only for research (a and 1 more https://n2c2.dbmi.hms.harvard.edu/data-sets)" in line
    assert "1 share-alike (c " in line and "2 whose text may go to no third party" in line
    many = [("a", licences()["n2c2"]), ("b", licences()["n2c2"])]
    assert restrictions(many, named=1) == (
        "terms of 2 datasets: 2 only for research; 2 whose text may go to no third party "
        "(which: medtasks data status TASKS)"
    )
    assert restrictions(many, named=2) == restrictions(many)


def test_a_record_that_is_wrong_names_the_file(tmp_path, monkeypatch):
    from medtasks_ext.registry import metadata

    file = tmp_path / "licences.yaml"
    file.write_text("ward: {spdx: MIT, use: all}\n", "utf-8")
    monkeypatch.setattr(metadata, "LICENCES_FILE", file)
    licences.cache_clear()
    try:
        with pytest.raises(MedtasksError, match=r"ward\.use"):
            licences()
    finally:
        monkeypatch.undo()
        licences.cache_clear()
