"""The site's pages: every page of the repository, and of the catalogue, in its place, so that links hold."""

import re
import sys
from importlib import import_module
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from medtasks_ext.registry import registry

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
internals, catalogue = import_module("docs").internals, import_module("catalogue").pages
FOLDERS = ("docs", "tasks", "tests", "results", "benchmarks", "model_configs")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the pages of the repository, and the files to which these lead, in place of a folder of pages."""
    pages = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
    targets = (_target(page, link[2]) for page in pages for link in LINK.findall(page.read_text("utf-8")))
    for path in (*pages, *(path for path in targets if path and path.is_file())):
        name = path.relative_to(ROOT).as_posix()
        if files.get_file_from_path(name) is None:
            files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, content in catalogue(registry()).items():
        files.append(File.generated(config, f"docs/catalogue/{name}", content=content))
    files.append(File.generated(config, "docs/internals.md", content=internals(ROOT)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A folder of the repository has no page: its link becomes its name."""
    here = ROOT / page.file.src_uri

    def plain(link: re.Match[str]) -> str:
        target = _target(here, link[3])
        return link[2] if target and target.is_dir() else link[0]

    return LINK.sub(plain, markdown)


def _target(page: Path, link: str) -> Path | None:
    """The file or folder of the repository to which a link leads."""
    if "://" in link or link.startswith("mailto:"):
        return None
    target = (page.parent / link).resolve()
    return target if ROOT in target.parents else None
