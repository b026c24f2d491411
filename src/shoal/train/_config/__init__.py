"""Configs of training runs: JSON files, validated before a run starts."""

from shoal.train._config.loading import (
    HOCKEY,
    checked,
    config_file,
    convert,
    load_config,
    parse_config,
)
from shoal.train._config.schema import Config

__all__ = ["HOCKEY", "Config", "checked", "config_file", "convert", "load_config", "parse_config"]
