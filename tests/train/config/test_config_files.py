"""Loading of config files."""

import json

import pytest

from shoal.errors import ConfigError
from shoal.train._config import load_config, parse_config
from tests.train.config.full_config import FULL, changed


def test_errors_name_the_file(tmp_path):
    file = tmp_path / "some.json"
    file.write_text(json.dumps(changed(("agent", "type"), 3)))
    with pytest.raises(ConfigError, match=r"some\.json: agent\.type: expected str"):
        load_config(file)
    file.write_text(json.dumps(FULL))
    assert load_config(str(file)) == parse_config(FULL)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{'a': 1}", b'{"a": 1}}', b'{"a": NaN}', b"\xff\xfe", b'{"a": 1e999}', b"\x00"],
)
def test_a_file_that_is_not_json_raises(content, tmp_path):
    file = tmp_path / "some.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"some\.json is not JSON: "):
        load_config(file)


def test_the_error_for_a_missing_file_lists_the_bundled_configs(tmp_path):
    for path in (tmp_path / "nowhere.json", "nowhere", "configs/nowhere.json"):
        with pytest.raises(FileNotFoundError, match=r"no config .*nowhere.*cartpole_dddqn, "):
            load_config(path)
    with pytest.raises(FileNotFoundError):
        load_config(tmp_path)


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_that_is_not_a_file_raises(path):
    with pytest.raises(FileNotFoundError):
        load_config(path)
