"""What a run tells while it goes on and once it is done: logs, a display, plots and a report."""

from __future__ import annotations

from shoal.train.reporting.logs import RunLogs
from shoal.train.reporting.plain import Display
from shoal.train.reporting.reading import read_records
from shoal.train.reporting.reporter import Reporter

__all__ = ["Display", "Reporter", "RunLogs", "read_records"]
