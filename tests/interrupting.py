"""Interrupts at any line of Shoal's code."""

import itertools
import linecache
import os
import sys

import shoal

PACKAGE = tuple(os.path.join(folder, "") for folder in shoal.__path__)
"""The folders of the imported package, with a separator at the end."""


class Lines:
    """Raises KeyboardInterrupt at the n-th line of Shoal's code in this thread."""

    def __init__(self, number):
        self._remaining = itertools.count(-number)
        self.where = ""

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind, *_):
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def _trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        # CPython delivers no interrupt between the body of a "with" and its exit; a tracer would.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and "with " not in line and next(self._remaining) == 0:
            sys.settrace(None)
            code = frame.f_code
            self.where = f"{os.path.basename(code.co_filename)}:{frame.f_lineno} {code.co_qualname}"
            raise KeyboardInterrupt
        return self._trace
