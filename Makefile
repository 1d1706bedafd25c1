# `make demo` and `make test` need nothing but make and Python >= 3.11.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help $(VENV) demo quick test test-all test-plain test-torch test-paths campaign mutants faults packages sanitize lint format docs docs-text bench papers gpu-check clean

help:
	@echo "make demo     train, evaluate, save and load a model on the shipped data, with a plot"
	@echo "make quick    run the contracts, and one fit of each estimator, in a minute"
	@echo "make test     run the test suite       (make test ARGS='-k falkon' for a part of it)"
	@echo "make test-all the same with the slow tests, as before a merge"
	@echo "make test-plain   run what concerns engines without compiled tiles"
	@echo "make test-torch   run what concerns devices and tensors, with torch installed"
	@echo "make test-paths   run the suite with the code paths of other processors, one after the other"
	@echo "make packages build sdist and wheel, and test them in empty environments"
	@echo "make sanitize     run the compiled tiles under ASan and UBSan (needs a C++ compiler, CMake)"
	@echo "make campaign     random fits of all kinds against dense answers, for an hour"
	@echo "make mutants  deliberate errors, one after the other: which does the suite notice?"
	@echo "make lint     ruff, mypy, import-linter, wording"
	@echo "make format   rewrite the sources in the project's format"
	@echo "make docs     build the site into build/docs; docs-text: without running the gallery's pictures"
	@echo "make bench    run the benchmarks       (make bench ARGS=--help lists them)"
	@echo "make papers   figures, tables and theorems of five papers (make papers ARGS='falkon --quick')"
	@echo "make faults       kill fits, damage files, fill disks, and count what is not right"
	@echo "make gpu-check    contracts and benchmarks on the GPU of this machine"
	@echo "make clean    remove the environment, caches and build products"

$(VENV): $(STAMP)

# A lone `pip install` keeps what is there when the pins have not changed.
$(STAMP): pyproject.toml constraints.txt $(wildcard src/native/*)
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: $(PYTHON) not found; install Python 3.11 or newer, or set PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "make: gramian needs Python 3.11 or newer, and $(PYTHON) is not; try make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned dependencies into $(VENV) (some minutes the first time)"
	@$(PIP) install -c constraints.txt -e '.[plots,dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/python examples/demo.py

quick: $(STAMP)
	@OMP_NUM_THREADS=1 $(PYTEST) -m "not slow" tests/contracts tests/test_problems.py \
	  tests/solvers/test_loop.py $(ARGS)

# Without compiled tiles what tests them would be skipped: that must be meant.
# There are as many processes as cores: more threads would only wait for each other.
test: CHOSEN := -m "not slow"
test test-all: $(STAMP)
	@test "$$GRAMIAN_NATIVE" = 0 || $(BIN)/python -c 'import gramian.engines._native' || { \
	  echo "make: gramian has no compiled tiles; see the build's log, or set GRAMIAN_NATIVE=0" >&2; exit 1; }
	@OMP_NUM_THREADS=1 $(PYTEST) $(CHOSEN) $(ARGS)

# What an installation without a C++ compiler has, beside the one that has compiled tiles: its own
# gramian, the other packages of $(VENV). These tests look at engines and use the one that is there.
PURE := build/pure
test-plain: $(STAMP)
	@test -x $(PURE)/bin/pip || $(PYTHON) -m venv $(PURE)
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > $$($(PURE)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/others.pth
	@GRAMIAN_NATIVE=0 $(PURE)/bin/python -m pip --disable-pip-version-check --quiet \
	  install --no-deps --force-reinstall .
	@OMP_NUM_THREADS=1 $(PURE)/bin/python -m pytest -n logical --maxprocesses 8 --dist worksteal \
	  tests/contracts/test_operator.py tests/cli/test_commands.py tests/model/test_kernel_model.py $(ARGS)

# What an installation with torch and triton has, the extra gpu: tensors that users pass, engines of
# devices, on a simulated one, and programs for GPUs, interpreted. The other packages are in $(VENV).
TORCH := build/torch
test-torch: $(STAMP)
	@test -x $(TORCH)/bin/pip || $(PYTHON) -m venv $(TORCH)
	@$(TORCH)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt torch triton
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > $$($(TORCH)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/others.pth
	@OMP_NUM_THREADS=1 $(TORCH)/bin/python -m pytest -n logical --maxprocesses 8 --dist worksteal \
	  tests/_arrays tests/engines tests/contracts/test_engine.py tests/contracts/test_gradients.py \
	  tests/contracts/test_rows.py tests/estimators/test_refusals.py tests/metric/test_objectives.py \
	  tests/project/test_gpu_benchmark.py tests/project/test_docstrings.py \
  tests/project/test_site.py -k "not examples_print" $(ARGS)

# What older processors and more threads compute: our tiles, and the code paths of OpenBLAS.
AVX2 := GRAMIAN_TEST_TILES=avx2 OPENBLAS_CORETYPE=Haswell
PLAIN := GRAMIAN_TEST_TILES=portable OPENBLAS_CORETYPE=Prescott
test-paths: $(STAMP)
	@echo "AVX2" && OMP_NUM_THREADS=1 $(AVX2) $(PYTEST) $(ARGS)
	@echo "without vectors" && OMP_NUM_THREADS=1 $(PLAIN) $(PYTEST) $(ARGS)
	@echo "two threads" && OMP_NUM_THREADS=2 $(PYTEST) $(ARGS)

# Each fit follows from its number: make campaign ARGS="--seed 1234" repeats one alone.
campaign: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python tests/campaign $(ARGS)

# In a copy of the tree: yours is not touched.
mutants: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python tests/mutants $(ARGS)

# Build the sdist and the wheel into dist, and test them in environments of their own.
packages:
	@$(PYTHON) tests/packages $(ARGS)

sanitize:
	@cmake -S src/native -B build/sanitize -DGRAMIAN_SANITIZE=ON >/dev/null
	@cmake --build build/sanitize --parallel
	@build/sanitize/sanitize
	@build/sanitize/fuzz $(or $(SEED),0) $(or $(CASES),10000)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m benchmarks.wording

format: $(STAMP)
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# Sphinx and its friends come on first use, and gramian, which is there, is not built again. Links to other projects: make docs ONLINE=1.
DOCS_STAMP := $(VENV)/.docs-installed
$(DOCS_STAMP): $(STAMP)
	@echo "Installing what builds the site into $(VENV)"
	@$(BIN)/python -c 'import tomllib; \
	  extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	  print(*[name for name in extras["docs"] if not name.startswith("gramian")], sep="\n")' \
	  > $@.txt
	@$(PIP) install -c constraints.txt -r $@.txt
	@touch $@

docs: $(DOCS_STAMP)
	@OMP_NUM_THREADS=1 ONLINE=$(ONLINE) $(BIN)/python docs/build_site.py
	@echo "the site is in build/docs: open build/docs/index.html"

docs-text: $(DOCS_STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python docs/build_site.py --text

bench: $(STAMP)
	@$(BIN)/python -m benchmarks $(ARGS)

papers: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks papers $(ARGS)

faults: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks faults $(ARGS)

gpu-check: $(STAMP)
	@$(BIN)/python -m benchmarks gpu $(ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
