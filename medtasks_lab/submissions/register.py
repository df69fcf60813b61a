"""What maintainers say of submissions: `register.yaml`, beside the folders of organisations.

A pull request with a submission must not touch it: the check of pull requests names it as a stray file.

The file looks so:

sites:                      # who may confirm results of others (submit --confirm)
  - {name: charite, title: Charité - Universitätsmedizin Berlin}
cleared:                    # flags that you have looked at
  - submission: ORG/MODEL/DATE
    record: 5f…             # as the check prints it; another record is flagged again
    flags: [far above the best published]
    by: your name
    why: the answers of 40 documents were read; the model is new

Before `confirmed-SITE.json` is merged, see that the pull request comes from that site: the file carries no
signature. Before a flag is cleared, read answers, compare them with the submission that is named, and ask
for the run (`medtasks verify RUN --against submission.json`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.yamlfile import read_mapping
from medtasks_ext.strict import Strict, faults_of
from medtasks_lab.submissions.record import NAME, FlagKind

REGISTER = "register.yaml"


class KnownSite(Strict):
    """Who may confirm results of others."""

    name: Annotated[str, Field(pattern=rf"^{NAME}$")]
    title: str  # as people know it


class Cleared(Strict):
    """Flags that a person has looked at, and found no fault."""

    submission: str  # ORG/MODEL/DATE
    record: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # its digest, as the check prints it
    flags: Annotated[list[FlagKind], Field(min_length=1)]
    by: str  # which maintainer
    why: str


class Register(Strict):
    """The content of the file."""

    sites: list[KnownSite] = Field(default=[])
    cleared: list[Cleared] = Field(default=[])

    def knows(self, site: str) -> bool:
        """Whether a site may confirm."""
        return any(item.name.casefold() == site.casefold() for item in self.sites)

    def clears(self, submission: str, record: str, flag: FlagKind) -> bool:
        """Whether a person has cleared a flag of a submission, as its record is now."""
        return any(
            (item.submission, item.record) == (submission, record) and flag in item.flags
            for item in self.cleared
        )


def read_register(root: Path) -> Register:
    """The register of a folder of submissions; an empty one where there is none.

    Raises:
        MedtasksError: it is not as it should be.
    """
    file = root / REGISTER
    if not file.is_file():
        return Register()
    try:
        return Register.model_validate(read_mapping(file))
    except ValidationError as error:
        raise MedtasksError(
            faults_of(error)[0],
            where=file,
            remedy="medtasks_lab/submissions/register.py shows one",
        ) from None
