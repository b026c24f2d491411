"""Write the records of a run as TensorBoard scalars."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.errors import MissingExtraError
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord

__all__ = ["TensorBoardLog", "open_board"]

_FLUSH_SECONDS = 30


class TensorBoardLog:
    """TensorBoard scalars in the folder ``tensorboard`` of a run.

    Args:
        folder: The folder of the run.
        purge_step: For a resumed run: scalars from this step on that were written earlier are
            hidden.

    Raises:
        MissingExtraError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError(
                "no TensorBoard logs are written because TensorBoard is not installed: pip install "
                "tensorboard"
            ) from error
        writer: Any = SummaryWriter
        self._writer = writer(
            str(folder / "tensorboard"), purge_step=purge_step, flush_secs=_FLUSH_SECONDS
        )

    def progress(self, record: ProgressRecord) -> None:
        """Write the progress of the run."""
        self._write("returns/mean", record.mean_reward, record.step)
        self._write("returns/win_rate", record.win_rate, record.step)
        self._write("speed/steps_per_second", record.steps_per_second, record.step)
        self._write("speed/updates_per_second", record.updates_per_second, record.step)
        self._write("run/episodes", record.episodes, record.step)
        self._write("run/updates", record.updates, record.step)
        self._write("run/hours", record.seconds / 3600, record.step)
        self._write("run/phase", record.phase_number + 1, record.step)
        for name, loss in record.losses.items():
            self._write(f"losses/{name}", loss, record.step)

    def evaluation(self, record: EvaluationRecord) -> None:
        """Write the result of an evaluation."""
        prefix = f"evaluation/{record.opponent}" if record.opponent else "evaluation"
        self._write(f"{prefix}/win_rate", record.win_rate, record.step)
        self._write(f"{prefix}/low", record.low, record.step)
        self._write(f"{prefix}/high", record.high, record.step)
        self._write(f"{prefix}/mean_reward", record.mean_reward, record.step)
        self._write(f"{prefix}/mean_length", record.mean_length, record.step)

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Write the ratings of all players of the league."""
        for record in records:
            self._write(f"league/{record.player}/rating", record.rating, record.step)
            self._write(f"league/{record.player}/mean", record.mean, record.step)
            self._write(f"league/{record.player}/deviation", record.deviation, record.step)

    def close(self) -> None:
        """Write buffered scalars and close the log. May be called more than once."""
        self._writer.close()

    def _write(self, name: str, value: float | None, step: int) -> None:
        if value is not None:
            self._writer.add_scalar(name, value, step)


def open_board(folder: Path, purge_step: int | None = None) -> TensorBoardLog | None:
    """Return a ``TensorBoardLog``, or None with a warning if TensorBoard is not installed."""
    try:
        return TensorBoardLog(folder, purge_step)
    except MissingExtraError as error:
        warnings.warn(str(error), stacklevel=2)
        return None
