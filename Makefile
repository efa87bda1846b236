# From a fresh clone, `make test` and `make example` do everything: find a Python, make .venv,
# install the package and its tools there, run. `make` alone lists the targets.

PY    := .venv/bin/python
STAMP := .venv/.installed
ARGS  :=

# Some forty processes of the tests load the same modules: the first compiles them for all.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help .venv example test test-all exactness benchmark docs links pages gallery notebook dist lint style types format clean

help:
	@echo "make example   run examples/admissions.py"
	@echo "make test      lint, then run the tests       (ARGS='-k word' is passed on to pytest)"
	@echo "make test-all  the same, and the tests that take long: more samplers, pages of docs/, examples, benchmarks"
	@echo "make exactness the tests of exactness for longer; writes docs/evidence/exactness.md (half an hour)"
	@echo "make benchmark speed beside peers; writes docs/performance.md and evidence (half an hour, on an idle machine)"
	@echo "make docs      the documentation as HTML, in docs/_build, with the tutorials run (ten minutes)"
	@echo "make links     whether the documentation's links to other sites still lead there"
	@echo "make pages     run the code of docs/, write what it prints below it, and save its figures (ten minutes)"
	@echo "make gallery   make the figures of docs/ anew (half an hour)"
	@echo "make notebook  run the notebook for PyMC's gallery of examples, in examples/gallery"
	@echo "make dist      the wheel and the source distribution, checked, in dist"
	@echo "make lint      ruff check, ruff format --check, mypy, import-linter"
	@echo "make format    let ruff format the code and fix what it can"
	@echo "make .venv     only make .venv and install    (the others do so where it is missing)"
	@echo "make clean     remove .venv, caches and output"
	@echo
	@echo "PYTHON=/path/to/python says which Python .venv is made with; 'make clean' before changing it."

example: $(STAMP)
	$(PY) examples/admissions.py

# mypy takes half a minute of one core where nothing is cached: it runs beside the tests.
test: style
	sh .ci/beside "make types" $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not long" $(ARGS)

test-all: style
	sh .ci/beside "make types" $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

exactness: $(STAMP)
	$(PY) -m tests.exactness_table

benchmark: $(STAMP)
	$(PY) -m pip install -q --disable-pip-version-check -e ".[benchmarks]"
	$(PY) -m benchmarks.run

docs: $(STAMP)
	$(PY) -m pip install -q --disable-pip-version-check -e ".[docs]"
	rm -rf docs/api
	$(PY) -m sphinx -n -W --keep-going -b html docs docs/_build

links: $(STAMP)
	$(PY) -m pip install -q --disable-pip-version-check -e ".[docs]"
	$(PY) -m sphinx -b linkcheck -D run_tutorials=0 docs docs/_build/links

pages: $(STAMP)
	$(PY) docs/pages.py

gallery: $(STAMP)
	$(PY) docs/make_gallery.py

notebook: $(STAMP)
	$(PY) -m pip install -q --disable-pip-version-check -e ".[notebook]"
	$(PY) examples/gallery/run.py

dist: $(STAMP)
	$(PY) -m pip install -q --disable-pip-version-check -e ".[release]"
	rm -rf dist
	$(PY) -m build
	$(PY) -m twine check --strict dist/*
	$(PY) .ci/check_dist.py dist

lint: style types

style: $(STAMP)
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: $(STAMP)
	$(PY) -m mypy
	.venv/bin/lint-imports --no-cache

format: $(STAMP)
	$(PY) -m ruff format
	$(PY) -m ruff check --fix

.venv: $(STAMP)

# The stamp is written last, so an interrupted installation is taken up again at the next call.
# A .venv that has a working pip is kept; one that has not is made anew.
# Half of the time would go into bytecode of what is never imported (--no-compile).
$(STAMP): pyproject.toml $(PY)
	@$(PY) -m pip --version >/dev/null 2>&1 || { \
		python=$$(sh .ci/find-python) && \
		echo "Making .venv with $$python" && \
		"$$python" -m venv --clear .venv; }
	@echo "Installing into .venv (the first time takes a minute or more)"
	@$(PY) -m pip install -q --no-compile --disable-pip-version-check -e ".[dev]"
	@touch $@

# No recipe: where this file is missing (or links to a Python that is gone), the stamp is out of date.
$(PY):

clean:
	rm -rf .venv .venv-libraries .mypy_cache .pytest_cache .ruff_cache build dist docs/_build docs/api examples/output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
