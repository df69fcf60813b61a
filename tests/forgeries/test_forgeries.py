"""No forgery that can be detected has a rank, each is named; what cannot be detected is said to readers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import forget, registry
from medtasks_lab.site.boards import Scores, scores_of
from medtasks_lab.site.gather import gather_site
from medtasks_lab.site.write import write_site
from medtasks_lab.submissions.flags import undetected
from medtasks_lab.submissions.submission import AnswerFile, submit
from tests.forgeries.base import MODELS, Base, make_base
from tests.forgeries.generate import Variant, classes, forge, forge_run, variants
from tests.submissions.test_site import data_of

SUBMISSIONS, RUNS = variants("submission"), variants("run")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield make_base(tmp_path_factory.mktemp("forgeries"), patch)
    forget()


@pytest.fixture(scope="module")
def board(base, tmp_path_factory) -> Board:
    """The leaderboard of ten honest submissions, and all that were forged."""
    root = tmp_path_factory.mktemp("board") / "submissions"
    shutil.copytree(base.honest, root)
    others = {model: base.read(model) for model in MODELS}
    folders = {variant.id: forge(variant, base, others, root) for variant in SUBMISSIONS}
    sites = [{"name": "charite", "title": "Charité"}]
    (root / "register.yaml").write_text(yaml.safe_dump({"sites": sites}), encoding="utf-8")
    return Board(base, root, folders)


class Board:
    """What the leaderboard says of each submission."""

    def __init__(self, base: Base, root: Path, folders: dict[str, Path]) -> None:
        self.base, self.root, self.folders = base, root, folders
        self.site = gather_site(registry(), root)
        self.scores: Scores = scores_of(self.site)
        self.lines = {
            line.entry.folders[0]: place for place, line in enumerate(self.site.lines) if not line.published
        }

    def ranks(self, folder: Path) -> list[int]:
        """Its ranks in all groups."""
        place = self.lines.get(folder)
        found = (
            self.scores.ranks(strategy, group).get(place)
            for strategy in self.scores.strategies
            for group in self.scores.groups
        )
        return [rank for rank in found if rank is not None]

    def said(self, folder: Path) -> str:
        """What is said of it, on its pages and among what is left out or has no rank."""
        name = "/".join(folder.parts[-3:])
        faults = [str(fault) for fault in self.site.faults if name in fault.where]
        place = self.lines.get(folder)
        if place is None:
            return "\n".join(faults)
        line = self.site.lines[place]
        verdicts = [line.verdict(item) for item in line.entry.experiments.values()]
        low = [f"{item.words}: {item.why}" for item in verdicts if not item.is_proven]
        part = [item.coverage.words for item in line.entry.experiments.values()]
        return "\n".join([*faults, *low, *part, line.checked.waits])


def test_there_are_a_hundred_of_many_classes():
    assert len(SUBMISSIONS) >= 100 and len(SUBMISSIONS) + len(RUNS) >= 115
    assert len({item.name for item in classes()}) == len(classes()) >= 25
    ids = [variant.id for variant in [*SUBMISSIONS, *RUNS]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("variant", SUBMISSIONS, ids=lambda item: item.id)
def test_a_forged_submission(board, variant: Variant):
    folder, asked = board.folders[variant.id], variant.of_class
    ranks, said = board.ranks(folder), board.said(folder)
    if asked.detectable:
        assert not ranks, (ranks, said)
        assert said.strip() and re.search(asked.words, said), said
    elif asked.ranked:
        assert ranks, said
        assert asked.undetected is None or asked.undetected in undetected()


@pytest.mark.parametrize("variant", RUNS, ids=lambda item: item.id)
def test_a_forged_run_cannot_be_submitted(base, tmp_path, variant: Variant):
    run = forge_run(variant, base, tmp_path / "run")
    with pytest.raises(MedtasksError) as refused:
        submit(
            run,
            tmp_path / "out" / "Lab" / "random-label" / "2026-06-01",
            registry(),
            {},
            AnswerFile(given=False),
        )
    assert variant.of_class.detectable
    assert re.search(variant.of_class.words, str(refused.value))


def test_honest_submissions_keep_their_ranks_among_all_forgeries(board):
    """Nobody who forges takes a rank away, or the class of those that were asked alike."""
    alone = scores_of(gather_site(registry(), board.base.honest))
    group = next(item for item in alone.groups if item.suite == "bridge" and item.axis == "suite")
    before = {
        line.entry.model: alone.ranks("zero_shot", group).get(place)
        for place, line in enumerate(alone.site.lines)
        if line.entry.model in MODELS
    }
    here = next(item for item in board.scores.groups if item.suite == "bridge" and item.axis == "suite")
    ranks = board.scores.ranks("zero_shot", here)
    after = {
        line.entry.model: ranks.get(place)
        for place, line in enumerate(board.site.lines)
        if line.entry.model in MODELS and line.entry.folders[0].parent.parent.name.startswith("Lab-")
        and line.entry.folders[0].name == "2026-05-01"
    }  # fmt: skip
    lost = [model for model in MODELS if before[model] and not after[model]]
    assert all(before.values())
    assert lost == [], lost


def test_every_class_that_no_check_can_tell_is_said_to_readers(board, tmp_path):
    named = {item.undetected for item in classes() if not item.detectable and item.undetected}
    assert named and named <= undetected().keys()
    write_site(tmp_path / "site", board.site)
    said = data_of(tmp_path / "site" / "about.html")["undetected"]
    assert set(said) == set(undetected().values())
