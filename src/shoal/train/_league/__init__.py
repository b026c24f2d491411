"""A league of players that train against each other: who is in it, how strong, and who plays whom.

Nothing here knows of networks or environments. The training tells a league what came of games and
when to freeze a player; the league names players, rates them and draws opponents.
"""

from shoal.errors import MissingExtraError

try:
    import msgspec as _msgspec  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError('msgspec is not installed, run `pip install "shoal[train]"`') from error

from shoal.train._league.league import League
from shoal.train._league.ratings import Ratings
from shoal.train._league.settings import LeagueSettings
from shoal.train._league.tournament import run_tournament

__all__ = ["League", "LeagueSettings", "Ratings", "run_tournament"]
