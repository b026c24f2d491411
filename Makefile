# Every target sets up the virtual environments that it needs. An environment is rebuilt when its
# constraints change, the package when its sources change.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OLDEST := .venv-oldest
SANITIZED := .venv-sanitized

SOURCES := CMakeLists.txt pyproject.toml $(shell find native src -type f ! -name '*.so' ! -name '*.pyc' ! -name _native.pyi)
NATIVE  := $(shell find native benchmarks/native tests -name '*.cpp' -o -name '*.c' -o -name '*.h')
PYTHON_FILES := src tests benchmarks examples docs/building

# Tests that depend on the versions of Gymnasium and NumPy, and those of RLlib, which pins Gymnasium.
TESTS_OF_VERSIONS := tests/spaces tests/legacy tests/guides tests/wrapper_core \
	tests/vector/test_against_gymnasium.py tests/vector/test_wrappers.py tests/vector/wrappers \
	tests/vector/test_infos.py tests/vector/test_statistics.py \
	tests/sb3/test_against_sb3.py tests/sb3/test_wrappers.py tests/kernels/test_against_gymnasium.py \
	tests/rllib

# The include options for the native sources.
HEADERS = $$($(BIN)/python -c 'import nanobind, numpy, sysconfig; print(*(f"-isystem {path}" for path in (sysconfig.get_path("include"), numpy.get_include(), nanobind.include_dir())))')

PIP := -m pip --disable-pip-version-check install --quiet

.PHONY: demo test test-slow bench browser lint lint-python lint-types lint-native format docs clean

demo: $(VENV)/installed.stamp
	$(BIN)/python -m benchmarks demo

test:
	$(MAKE) --no-print-directory -j 2 browser lint $(OLDEST)/installed.stamp
	SHOAL_REQUIRE_BROWSER=$$($(HAS_BROWSER) && echo 1) \
	$(BIN)/python -m pytest -n 2 -m "not slow" --pyargs shoal tests
	$(OLDEST)/bin/python -m pytest -n 2 -m "not slow" -q $(TESTS_OF_VERSIONS)

test-slow: $(VENV)/installed.stamp $(SANITIZED)/installed.stamp
	$(BIN)/python -m pytest -m slow tests
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	$(SANITIZED)/bin/python -m pytest -m "not slow" -q -p no:cacheprovider --timeout 600 tests

bench: $(VENV)/installed.stamp
	$(BIN)/python -m benchmarks run

HAS_BROWSER = command -v chromium > /dev/null && command -v chromedriver > /dev/null

# The tests of the live page need a browser: install that of Debian if this needs no password.
browser:
	@$(HAS_BROWSER) \
	|| { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get -qq update \
	&& DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes chromium chromium-driver > /dev/null; } \
	|| echo "Skipping the tests of the live page: install the packages chromium and chromium-driver."

lint: lint-types lint-native lint-python

# The types of the native module are generated when it is built.
lint-types: $(VENV)/installed.stamp
	cp $$($(call site_packages,$(VENV)))/shoal/_native.pyi src/shoal/
	$(BIN)/mypy

lint-native: $(VENV)/tools.stamp
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(CXX) -std=c++17 -fsyntax-only -Wno-psabi -Wall -Wextra -Werror $(HEADERS) $(filter native/%.cpp,$(NATIVE))

lint-python: $(VENV)/tools.stamp
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)

format: $(VENV)/tools.stamp
	$(BIN)/ruff check --fix $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	$(BIN)/clang-format -i $(NATIVE)

docs: $(VENV)/installed.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "build/docs/index.html"

clean:
	rm -rf build $(VENV) $(OLDEST) $(SANITIZED) .venv-peer-*

# One environment per set of versions, each with stamps of its prerequisites. All use one wheel:
# a wheel that was compiled with the newest NumPy must run with the oldest.

BUILD_NEEDS = $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")')

# $(call site_packages,FOLDER): print the folder of the packages of an environment.
site_packages = $(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'

# $(call environment,FOLDER,CONSTRAINTS): create an environment in which Shoal can be built.
define environment
	test -d $(1) || $(PYTHON) -m venv $(1)
	echo "$(BUILD_NEEDS)" | $(1)/bin/python $(PIP) -c $(2) -r /dev/stdin
endef

$(VENV)/build.stamp: constraints.txt pyproject.toml
	$(call environment,$(VENV),constraints.txt)
	@touch $@

# All dependencies, and Shoal without its native part, which is built at the same time.
$(VENV)/tools.stamp: $(VENV)/build.stamp
	$(BIN)/python $(PIP) -c constraints.txt --no-build-isolation --config-settings=wheel.cmake=false ".[dev]"
	@touch $@

build/wheel.stamp: $(VENV)/build.stamp $(SOURCES)
	rm -rf build/wheel
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheel .
	@touch $@

$(VENV)/installed.stamp: $(VENV)/tools.stamp build/wheel.stamp
	$(BIN)/python $(PIP) --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

# Only packages with other versions are installed; the rest is found in the first environment.
$(OLDEST)/installed.stamp: $(VENV)/installed.stamp constraints-oldest.txt
	grep -v $$(sed 's/==.*/==/; s/^/-e ^/' constraints-oldest.txt) constraints.txt | cat - constraints-oldest.txt > build/constraints-oldest.txt
	test -d $(OLDEST) || $(PYTHON) -m venv $(OLDEST)
	$(call site_packages,$(VENV)) > $$($(call site_packages,$(OLDEST)))/newest.pth
	$(OLDEST)/bin/python $(PIP) -c build/constraints-oldest.txt "$$(echo build/wheel/*.whl)[test,rllib]"
	$(OLDEST)/bin/python $(PIP) --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

$(SANITIZED)/installed.stamp: constraints.txt $(SOURCES)
	$(call environment,$(SANITIZED),constraints.txt)
	$(SANITIZED)/bin/python $(PIP) -c constraints.txt --no-build-isolation --config-settings=build-dir=build/sanitized --config-settings=cmake.define.SHOAL_SANITIZE=ON --config-settings=install.strip=false ".[test]"
	@touch $@
