"""Finds code in a source that could execute received data.

This includes modules that run code or deserialize objects, functions such as eval, processes, and
access to attributes by a name that is not a literal.
"""

import ast
from dataclasses import dataclass

MODULES = {
    *("pickle", "_pickle", "cPickle", "pickletools", "cloudpickle", "dill", "joblib", "marshal"),
    *("shelve", "dbm", "copyreg", "yaml", "jsonpickle", "numpy.ctypeslib", "ctypes", "_ctypes"),
    *("cffi", "importlib", "imp", "runpy", "pkgutil", "zipimport", "code", "codeop", "pdb", "bdb"),
    *("timeit", "builtins", "subprocess", "_posixsubprocess", "multiprocessing", "pty", "posix"),
    *("concurrent.futures.process", "asyncio.subprocess", "logging.config"),
}
"""Modules that must not be imported."""

NAMES = {"eval", "exec", "compile", "__import__", "__builtins__", "breakpoint", "globals", "locals"}
"""Built-in names."""

MEMBERS = {
    "os": ("system", "popen", "exec", "spawn", "posix_spawn", "startfile", "fork", "putenv"),
    "sys": ("modules", "meta_path", "path_hooks", "_getframe"),
    "numpy": ("load", "memmap", "fromfile", "fromregex", "genfromtxt", "loadtxt", "fromstring"),
    "asyncio": ("create_subprocess",),
    "inspect": ("getattr_static", "currentframe"),
    "operator": ("attrgetter", "methodcaller"),
    "types": ("FunctionType", "LambdaType", "CodeType", "new_class"),
}
"""Prefixes of names in these modules."""

ATTRIBUTES = {
    *(
        "__globals__",
        "__builtins__",
        "__code__",
        "__subclasses__",
        "__getattribute__",
        "__reduce__",
    ),
    *("__reduce_ex__", "__setstate__", "__import__", "__loader__", "__dict__", "import_module"),
    *("eval", "exec", "compile", "loads", "find_spec", "exec_module", "run_path", "allow_pickle"),
}
"""Attributes of any object, except those in `HARMLESS`."""

HARMLESS = {("json", "loads"), ("re", "compile")}
"""Attributes of modules that do not execute anything."""

REACHING = {
    **dict.fromkeys(("getattr", "setattr", "delattr", "hasattr"), 1),
    **dict.fromkeys(("get_wrapper_attr", "has_wrapper_attr", "set_wrapper_attr"), 0),
    **dict.fromkeys(("get_attribute", "has_attribute", "set_attribute", "call_method"), 1),
    **dict.fromkeys(("attrgetter", "methodcaller", "__getattr__", "__setattr__"), 0),
}
"""Functions that access an attribute, and the position of its name in their arguments."""


@dataclass(frozen=True)
class Finding:
    """A finding; ``function`` is the enclosing function, or empty."""

    function: str
    what: str
    line: int


def find_execution(source):
    """Return all findings in a source."""
    finder = _Finder()
    finder.visit(ast.parse(source))
    return finder.findings


class _Finder(ast.NodeVisitor):
    def __init__(self):
        self.findings = []
        self._inside = []
        self._modules = {}  # the modules that names refer to

    def _note(self, node, what):
        self.findings.append(Finding(".".join(self._inside), what, node.lineno))

    # Scopes

    def _enter(self, node):
        self._inside.append(node.name)
        self.generic_visit(node)
        self._inside.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _enter

    # Modules

    def visit_Import(self, node):
        for alias in node.names:
            self._check_module(node, alias.name)
            name = alias.asname or alias.name.partition(".")[0]
            self._modules[name] = alias.name if alias.asname else name

    def visit_ImportFrom(self, node):
        if node.level:
            self._note(node, "a relative import")  # its module would be unknown
        base = node.module or ""
        self._check_module(node, base)
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            if whole in MODULES:
                self._note(node, f"import {whole}")
            self._check_member(node, base, alias.name)
            self._modules[alias.asname or alias.name] = whole
            if alias.name == "*":
                self._note(node, f"import * from {base}")

    def _check_module(self, node, module):
        parts = module.split(".")
        if any(".".join(parts[:count]) in MODULES for count in range(1, len(parts) + 1)):
            self._note(node, f"import {module}")

    # Names and attributes

    def visit_Name(self, node):
        if node.id in NAMES:
            self._note(node, node.id)
        elif node.id in REACHING or node.id == "vars":
            self._note(node, f"{node.id} used as a value")

    def visit_Attribute(self, node):
        module = self._module_of(node.value)
        self._check_member(node, module, node.attr)
        if f"{module}.{node.attr}" in MODULES:
            self._note(node, f"{module}.{node.attr}")
        if node.attr in ATTRIBUTES and (module, node.attr) not in HARMLESS:
            self._note(node, f".{node.attr}")
        self.generic_visit(node)

    def _module_of(self, node):
        """Return the module that an expression refers to, according to the imports."""
        if isinstance(node, ast.Name):
            return self._modules.get(node.id, "")
        if isinstance(node, ast.Attribute):
            return f"{self._module_of(node.value)}.{node.attr}"
        return ""

    def _check_member(self, node, module, name):
        if any(name.startswith(each) for each in MEMBERS.get(module, ())):
            self._note(node, f"{module}.{name}")

    # Calls

    def visit_Call(self, node):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in REACHING:
            self._check_reaching(node, name)
        if name == "vars" and node.args:
            self._note(node, f"vars of {_text(node.args[0])}")
        if name == "type" and len(node.args) == 3:
            self._note(node, f"dynamic class: {_text(node.args[0])}")
        if name in ("dtype", "frombuffer", "astype", "view"):
            self._check_dtype(node, name)
        for keyword in node.keywords:
            if keyword.arg == "allow_pickle":
                self._note(node, "allow_pickle")
        is_looked_at = isinstance(node.func, ast.Name) and (name in REACHING or name == "vars")
        for part in ast.iter_child_nodes(node):
            if part is not node.func or not is_looked_at:
                self.visit(part)

    def _check_reaching(self, node, name):
        position = REACHING[name]
        candidates = [*node.args[position : position + 1], *(each.value for each in node.keywords)]
        key = candidates[0] if candidates else None
        is_written = isinstance(key, ast.Constant) and isinstance(key.value, str)
        if not is_written:
            self._note(node, f"{name} with variable name: {_text(key)}")
        elif key.value in NAMES | ATTRIBUTES:
            self._note(node, f"{name} of {key.value}")

    def _check_dtype(self, node, name):
        """Received bytes must never be interpreted as addresses of objects."""
        for argument in [*node.args, *(each.value for each in node.keywords)]:
            named = isinstance(argument, ast.Name) and argument.id == "object"
            if named or (isinstance(argument, ast.Constant) and argument.value in ("O", "|O")):
                self._note(node, f"{name} of objects")
        is_open = name == "dtype" and node.args and not isinstance(node.args[0], ast.Constant)
        if is_open and self._module_of(node.func).startswith("numpy"):
            self._note(node, f"dynamic dtype: {_text(node.args[0])}")


def _text(node):
    return "" if node is None else ast.unparse(node)
