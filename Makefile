# Everything this project does, by name. Each target sets up what it needs on first use:
# an environment in .venv/X.Y, one for each Python version, with the pins of requirements.txt.
# It needs a POSIX shell and GNU make 3.81 or newer.

SHELL = /bin/sh
.DEFAULT_GOAL := help

# A name on the path may be a shim that does not start (pyenv's), so each candidate is executed.
ifdef PYTHON
candidates = "$(PYTHON)"
else
candidates = python3.13 python3 python
endif
probe = import sys; v = sys.version_info; print("%d.%d" % v[:2], "yes" if v >= (3, 12) else "no")
found := $(shell for p in $(candidates); do \
	set -- "$$p" $$("$$p" -c '$(probe)' 2>/dev/null); \
	[ "$$3" != yes ] || { echo "$$2 $$1"; break; }; done)
version := $(firstword $(found))
interpreter := $(or $(PYTHON),$(lastword $(found)))

venv := .venv/$(version)
python := $(venv)/bin/python
# An environment records absolute paths: one that was moved with its checkout is set up again.
ready := $(venv)/ready
ifneq ($(shell cat $(ready) 2>/dev/null),$(CURDIR))
.PHONY: $(ready)
endif

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help
help: ## Print this list
	@echo "Usage: make TARGET   or, with a Python of your choice: make PYTHON=/path/to/python TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-10s %s\n", $$1, $$2 }'

# -E reads every page anew: Sphinx repeats no warning about a page that it thinks unchanged, and it
# does not see that a docstring or a result did.
.PHONY: html
html: $(ready) ## Run every example, and build the site; any warning is an error
	"$(python)" -m sphinxext.examples
	"$(python)" -m sphinx -E -W --keep-going -n -T -b html -d _build/doctrees . _build/html
	@echo "Open _build/html/index.html in a browser, or run: make serve"

.PHONY: serve
serve: html ## Serve the site at http://localhost:8000 (make serve PORT=8001)
	"$(python)" -m http.server --bind 127.0.0.1 --directory _build/html $(or $(PORT),8000)

.PHONY: doctest
doctest: $(ready) ## Run every example of the pages, README.md and the docstrings
	"$(python)" -m sphinxext.examples

# In `test` and `lint` every command runs, so that one failure does not hide another.
# tests/pages runs the same examples as `doctest`: once is enough.
.PHONY: test
test: $(ready) ## Run all tests, then every example
	"$(python)" -m pytest -n auto --dist worksteal --ignore=tests/pages; tests=$$?; \
	"$(python)" -m sphinxext.examples && exit $$tests

.PHONY: lint
lint: $(ready) ## Check style, format and types
	"$(python)" -m ruff check .; style=$$?; \
	"$(python)" -m ruff format --check .; format=$$?; \
	"$(python)" -m mypy && exit $$((style + format))

.PHONY: bench
bench: $(ready) ## Run the benchmarks
	"$(python)" -m devicearray bench --output benchmarks/results
	"$(python)" -m benchmarks.loops

# Environments of their own: .venv/jax-X.Y for each release, with the pins of requirements.txt but
# for JAX's.
.PHONY: versions
versions: $(ready) ## Test on the newest releases of JAX, or on some: make versions JAX="0.12 0.11"
	"$(python)" -m versions $(JAX)

.PHONY: clean
clean: ## Remove what was built, but not the environments
	rm -rf _build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis jupyter_execute
	find . -name .venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove what was built, and the environments
	rm -rf .venv

.PHONY: lock
lock: ## Pin the newest versions of all dependencies in requirements.txt (needs uv)
	$(or $(UV),uv) pip compile pyproject.toml --all-extras \
	    --group build --group docs --group lint --group test \
	    --universal --python-version 3.12 --no-python-downloads --upgrade \
	    --no-annotate --no-emit-index-url --custom-compile-command "make lock" \
	    --output-file requirements.txt

# `ready` is written last: an interrupted set-up does not count, and the next one starts afresh.
$(ready): requirements.txt pyproject.toml
ifeq ($(version),)
	@echo "Python 3.13 is needed (3.12 or newer works), and none was found." >&2
	@for p in $(candidates); do \
	    v=$$("$$p" -c 'import sys; print(sys.version.split()[0])' 2>/dev/null) || v="does not start"; \
	    echo "  $$p: $$v" >&2; done
	@echo "If you have one elsewhere, name it: make PYTHON=/path/to/python3.13 $(or $(firstword $(MAKECMDGOALS)),html)" >&2
	@exit 1
else
	@echo "Setting up $(venv), once; this takes a few minutes."
	rm -f $(ready)
	"$(interpreter)" -m venv --clear $(venv)
	"$(python)" -m pip install -r requirements.txt
	"$(python)" -m pip install --no-build-isolation --no-deps --editable .
	@printf '%s\n' "$(CURDIR)" > $(ready)
endif
