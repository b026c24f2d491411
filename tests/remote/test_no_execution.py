"""Decoding cannot execute code: a static check of the sources."""

import ast
import importlib.util
from pathlib import Path

import pytest

import shoal.remote
from tests.remote.execution_finder import find_execution

PACKAGE = Path(shoal.remote.__file__).parent
HELPERS = ["shoal.pools._env_access", "shoal._error_description"]
"""Modules outside the package that handle received names."""


def modules_of(package):
    """Yield all modules of a package, including those that are imported lazily."""
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        yield ".".join(["shoal.remote", *(part for part in parts if part != "__init__")])


def source_of(module):
    """Return the source of a module; None if it is not a module, or native."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    path = None if spec is None or spec.origin is None else Path(spec.origin)
    return path.read_text() if path is not None and path.suffix == ".py" else None


def imported_by(source):
    """Yield all imports of a source, including lazy ones."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def reachable():
    """Return the sources of all modules that are involved in decoding."""
    sources, waiting = {}, [*modules_of(PACKAGE), *HELPERS]
    while waiting:
        module = waiting.pop()
        if module in sources:
            continue
        source = source_of(module)
        if source is not None:
            sources[module] = source
            waiting += [each for each in imported_by(source) if each.startswith("shoal.remote.")]
    return sources


REACHABLE = reachable()

CHECKED = "shoal.remote._rpc_allowlist has rejected private names"
EXCEPTIONS = "only used to look up exceptions"
OPTIONS = "a literal list of socket options"
OWN = "a space of this end, which is encoded"

ALLOWED = {
    # Functions that access an attribute by name for clients.
    (
        "shoal.pools._env_access",
        "get_attribute",
        "get_wrapper_attr with variable name: name",
    ): CHECKED,
    (
        "shoal.pools._env_access",
        "has_attribute",
        "has_wrapper_attr with variable name: name",
    ): CHECKED,
    (
        "shoal.pools._env_access",
        "call_method",
        "get_wrapper_attr with variable name: name",
    ): CHECKED,
    (
        "shoal.pools._env_access",
        "set_attribute",
        "has_wrapper_attr with variable name: name",
    ): CHECKED,
    (
        "shoal.pools._env_access",
        "set_attribute",
        "set_wrapper_attr with variable name: name",
    ): CHECKED,
    ("shoal.remote._device_pool", "DevicePool.call", "getattr with variable name: what"): CHECKED,
    ("shoal.remote._device_pool", "DevicePool.call", "hasattr with variable name: what"): CHECKED,
    (
        "shoal.remote._device_pool",
        "_DeviceAsEnv.get_wrapper_attr",
        "getattr with variable name: name",
    ): CHECKED,
    (
        "shoal.remote._device_pool",
        "_DeviceAsEnv.has_wrapper_attr",
        "hasattr with variable name: name",
    ): CHECKED,
    (
        "shoal.remote._device_pool",
        "_DeviceAsEnv.set_wrapper_attr",
        "setattr with variable name: name",
    ): CHECKED,
    # Exceptions by name.
    ("shoal._error_description", "", "import builtins"): EXCEPTIONS,
    ("shoal._error_description", "stand_in", "getattr with variable name: description.builtin"): (
        "only exception classes are accepted"
    ),
    (
        "shoal._error_description",
        "stand_in",
        "dynamic class: name",
    ): "an empty class with known bases",
    ("shoal.remote._error_codec", "", "import builtins"): EXCEPTIONS,
    (
        "shoal.remote._error_codec",
        "",
        "vars of module",
    ): "a table of exceptions that is built at import",
    # Names that do not come from messages.
    ("shoal.remote.bam._vector", "make_bam_vec_env", "sys.modules"): (
        "a literal name: whether Stable-Baselines3 is imported"
    ),
    (
        "shoal.remote._hosting",
        "_as_pool",
        "hasattr with variable name: name",
    ): "a literal list of methods",
    (
        "shoal.remote._pool",
        "RemotePool._set_up",
        "getattr with variable name: self.autoreset_mode.name",
    ): ("the name of an enum member"),
    (
        "shoal.remote._transports.sockets",
        "configure_tcp",
        "hasattr with variable name: option",
    ): OPTIONS,
    (
        "shoal.remote._transports.sockets",
        "configure_tcp",
        "getattr with variable name: option",
    ): OPTIONS,
    # Dtypes.
    (
        "shoal.remote._value_codec",
        "",
        "dynamic dtype: name",
    ): "a literal list of dtypes",
    ("shoal.remote._value_codec", "_array", "dynamic dtype: code"): (
        "only string dtypes, after a check with a pattern"
    ),
    ("shoal.remote._space_codec", "_box", "dynamic dtype: space.dtype"): OWN,
    ("shoal.remote._space_codec", "_discrete", "dynamic dtype: space.dtype"): OWN,
    ("shoal.remote._space_codec", "_multi_discrete", "dynamic dtype: space.dtype"): OWN,
}
"""By module, function and finding: why it does not execute received data."""


def test_all_modules_are_checked():
    assert REACHABLE.keys() >= {*modules_of(PACKAGE), *HELPERS}
    for module in (
        *("_wire", "_value_codec", "_messages", "_space_codec", "_handshake", "_error_codec"),
        *("_body_format", "_channel", "_request_handler", "_device", "_pool", "_rpc_allowlist"),
        *("_server", "_transports.websocket", "bam._messages", "bam._encoding"),
        "bam._transports.rosbridge",
    ):
        assert f"shoal.remote.{module}" in REACHABLE


@pytest.mark.parametrize("module", sorted(REACHABLE))
def test_module_cannot_execute_received_data(module):
    wrong = [
        f"{module}:{finding.line}: {finding.what} in {finding.function or 'the module'}"
        for finding in find_execution(REACHABLE[module])
        if (module, finding.function, finding.what) not in ALLOWED
    ]
    assert not wrong, "\n".join(wrong)


def test_allowlist_has_no_stale_entries():
    actual = {
        (module, finding.function, finding.what)
        for module, source in REACHABLE.items()
        for finding in find_execution(source)
    }
    assert ALLOWED.keys() <= actual, ALLOWED.keys() - actual


# The finder itself

BAD = {
    "import pickle": "import pickle",
    "import pickle under another name": "import pickle as harmless",
    "from pickle": "from pickle import loads as read",
    "import in a function": "def f():\n    import marshal",
    "import of a submodule": "import importlib.util",
    "import from a submodule": "from concurrent.futures import process",
    "import of a package's module": "from numpy import ctypeslib",
    "a relative import": "from . import values",
    "import * from os": "from os import *",
    **{
        f"import {module}": f"import {module}"
        for module in (
            *("marshal", "shelve", "cloudpickle", "ctypes", "subprocess", "builtins", "importlib"),
            *("multiprocessing", "runpy", "code", "copyreg", "dill", "yaml"),
        )
    },
    "eval": "eval(text)",
    "exec": "exec(text)",
    "compile": "compile(text, 'x', 'exec')",
    "__import__": "__import__(name)",
    "eval that is not called": "read = eval",
    "eval as an argument": "list(map(eval, texts))",
    "eval as a default": "def f(read=eval):\n    return read",
    "eval as a decorator": "@eval\ndef f(): ...",
    "eval of builtins": "__builtins__['eval'](text)",
    "eval of a frame": "frame.eval(text)",
    "globals": "globals()[name]()",
    "os.system": "import os\nos.system(text)",
    "os.system under another name": "import os as harmless\nharmless.system(text)",
    "os.system that is not called": "import os\nrun = os.system",
    "from os": "from os import system",
    "os.popen": "import os\nos.popen(text)",
    "os.execv": "import os\nos.execv(path, [])",
    "os.execlp": "from os import execlp as harmless",
    "os.spawnl": "import os\nos.spawnl(os.P_WAIT, path)",
    "os.posix_spawn": "import os\nos.posix_spawn(path, [], {})",
    "the os of another module": "import asyncio\nasyncio.create_subprocess_shell(text)",
    "sys.modules": "import sys\nsys.modules[name]",
    "getattr": "def f(message):\n    return getattr(thing, message.name)",
    "getattr of a variable": "getattr(thing, name)",
    "getattr of a formatted string": "getattr(thing, f'_{name}')",
    "getattr of a banned name": "getattr(thing, '__globals__')",
    "getattr of eval": "getattr(thing, 'eval')",
    "getattr under another name": "reach = getattr",
    "getattr as an argument": "list(map(getattr, things, names))",
    "hasattr": "hasattr(thing, name)",
    "setattr": "setattr(thing, name, value)",
    "delattr": "delattr(thing, name)",
    "vars": "vars(thing)[name]",
    "__dict__": "thing.__dict__[name]",
    "__getattribute__": "thing.__getattribute__(name)",
    "attrgetter": "import operator\noperator.attrgetter(name)(thing)",
    "methodcaller": "from operator import methodcaller",
    "an environment's attribute": "env.get_wrapper_attr(name)",
    "an environment's attribute by keyword": "env.get_wrapper_attr(name=name)",
    "setting an environment's attribute": "env.set_wrapper_attr(name, 1)",
    "subclasses": "().__class__.__base__.__subclasses__()",
    "globals of a function": "f.__globals__",
    "a dynamic class": "type(name, (), {})",
    "a dynamic function": "import types\ntypes.FunctionType(code, {})",
    "pickles of NumPy": "import numpy as np\nnp.load(file, allow_pickle=True)",
    "a file of NumPy": "import numpy as np\nnp.load(file)",
    "allow_pickle of something": "read(file, allow_pickle=flag)",
    "bytes as objects": "import numpy as np\nnp.frombuffer(data, object)",
    "bytes as objects by code": "import numpy as np\nnp.frombuffer(data, dtype='O')",
    "a view as objects": "array.view('O')",
    "a dtype from a message": "import numpy as np\nnp.dtype(message.code)",
    "loads": "msgpack.loads(data)",
}


@pytest.mark.parametrize("what", BAD)
def test_finder_finds_execution(what):
    assert find_execution(BAD[what]), BAD[what]


@pytest.mark.parametrize("what", [what for what in BAD if "import *" not in BAD[what]])
def test_finder_finds_execution_in_any_position(what):
    hidden = "\n".join(f"            {line}" for line in BAD[what].splitlines())
    source = f"class Reader:\n    def read(self):\n        async def inner():\n{hidden}\n"
    assert {finding.function.partition(".inner")[0] for finding in find_execution(source)} == {
        "Reader.read"
    }


GOOD = {
    "a literal name": "getattr(thing, 'close', None)",
    "a pattern": "import re\nre.compile('x')",
    "JSON": "import json\njson.loads(text)",
    "a descriptor": "import os\nos.close(os.memfd_create('x'))",
    "type of an object": "type(thing)",
    "a literal dtype": "import numpy as np\nnp.dtype('<f8')",
    "bytes as numbers": "import numpy as np\nnp.frombuffer(data, np.uint8)",
    "a list of objects": "import numpy as np\nnp.empty(3, object)",
    "an index": "from operator import index",
    "a word in a string": "'eval(exec)'",
    "a field of that name": "Feedback(executed=True)",
}


@pytest.mark.parametrize("what", GOOD)
def test_finder_ignores_harmless_code(what):
    assert not find_execution(GOOD[what]), GOOD[what]
