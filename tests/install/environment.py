"""A virtual environment of its own that sees this one's packages through a `.pth` file."""

import site
import subprocess
import sys
from pathlib import Path


def run(*command: object, cwd: Path, ok: bool = True) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert (done.returncode == 0) is ok, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


class Environment:
    """A virtual environment with its own lm-eval, and everything else borrowed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
        self.python = folder / "venv" / "bin" / "python"
        self.site = Path(
            run(self.python, "-c", "import site; print(site.getsitepackages()[0])", cwd=folder).strip()
        )
        borrowed = [path for path in map(Path, site.getsitepackages()) if path.is_dir()]
        (self.site / "zz_borrowed.pth").write_text("\n".join(map(str, borrowed)) + "\n")
        self.pip("install", "--quiet", "--no-deps", "--force-reinstall", "lm-eval==0.4.13")

    def pip(self, *arguments: object) -> str:
        return run(self.python, "-m", "pip", "--disable-pip-version-check", *arguments, cwd=self.folder)

    def medtasks(self, *arguments: object, ok: bool = True) -> str:
        return run(self.python, "-m", "medtasks_ext", *arguments, cwd=self.folder, ok=ok)

    def lm_eval_names(self, include: str = "") -> str:
        """What lm-eval's own scan finds, by default without --include_path."""
        manager = f"TaskManager(include_path={include!r} or None)"
        code = f"from lm_eval.tasks import TaskManager; print(*{manager}.all_tasks)"
        return run(self.python, "-c", code, cwd=self.folder)

    def leftovers(self) -> list[str]:
        return [
            str(path)
            for path in (self.site / "medtasks_ext", self.site / "lm_eval" / "tasks" / "medtasks")
            if path.exists()
            and any(item.is_file() for item in path.rglob("*") if "__pycache__" not in item.parts)
        ]
