"""The output of a run: logs, the progress display, plots and the report."""

from __future__ import annotations

from shoal.train._reporting.log_reader import read_records
from shoal.train._reporting.logs import RunLogs
from shoal.train._reporting.plain import Display
from shoal.train._reporting.reporter import Reporter

__all__ = ["Display", "Reporter", "RunLogs", "read_records"]
