"""Self-play leagues: members, ratings, matchmaking and tournaments.

This package is independent of networks and environments. The training loop records the outcomes of
games and decides when to freeze a player; the league names and rates players and draws opponents.
"""

from shoal.errors import MissingExtraError

try:
    import msgspec as _msgspec  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError('msgspec is not installed: pip install "shoal[train]"') from error

from shoal.train._league.league import League
from shoal.train._league.ratings import Ratings
from shoal.train._league.settings import LeagueSettings
from shoal.train._league.tournament import run_tournament

__all__ = ["League", "LeagueSettings", "Ratings", "run_tournament"]
