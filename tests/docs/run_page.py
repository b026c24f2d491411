"""Run the samples of one page as one script: ``python -m tests.docs.run_page PAGE [--slow]``."""

from __future__ import annotations

import sys
import types
from pathlib import Path

from tests.docs.pages import samples


def main(page: Path, with_slow: bool) -> None:
    """Run the samples in order, in one module called ``__main__``."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module  # pickles functions by value, as those of a script
    for sample in samples(page):
        if sample.kind == "json" and sample.title:
            Path(sample.title).write_text(sample.text)
        if sample.kind not in ("python", "setup"):
            continue
        # Keep the line numbers of the page, so that a traceback shows the failing line.
        code = compile("\n" * (sample.line - 1) + sample.text, str(page), "exec")
        if not sample.not_run and (with_slow or not sample.is_slow):
            exec(code, module.__dict__)


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--slow" in sys.argv)
