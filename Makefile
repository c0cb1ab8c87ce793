# Everything starts here, from a clean clone with Python 3.11+, make and a C compiler:
#   make demo    sets everything up and runs the main job
#   make test    sets everything up and passes the tests
# Set PYTHON to use another interpreter than python3.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
CASES  ?= 200

VENV     := .venv
BIN      := $(VENV)/bin
TOOLS    := .venv-tools
UV       := $(TOOLS)/bin/uv
MIN_VENV := .venv-spark-min

# A user's own uv configuration must not change what we install.
export UV_NO_CONFIG := 1
export PYTHONUNBUFFERED := 1

KERNEL_SOURCES := $(wildcard src/cepheid/kernel/match.py)
INSTALL = CEPHEID_BUILD_CHECKED=1 CEPHEID_REQUIRE_COMPILED=1 \
          $(UV) pip install --quiet --no-build-isolation --no-deps --editable . --python

.PHONY: help setup
help:
	@sed -n 's/^#   make/  make/p' Makefile

setup: $(VENV)/.installed

# uv, pinned by hash, in an environment of its own; pip comes with Python and serves only for this.
$(TOOLS)/.stamp: requirements/tools.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cepheid needs Python 3.11 or later; set PYTHON=")'
	@echo "setup: the installer"
	@$(PYTHON) -m venv --clear $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-user --require-hashes \
		--only-binary :all: -r requirements/tools.txt
	@touch $@

$(VENV)/.requirements: requirements/dev.txt $(TOOLS)/.stamp
	@echo "setup: the pinned dependencies"
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON))" $(VENV)
	@$(UV) pip sync --quiet --require-hashes --python $(BIN)/python requirements/dev.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.requirements pyproject.toml setup.py $(KERNEL_SOURCES)
	@echo "setup: the package, with its kernel compiled"
	@$(INSTALL) $(BIN)/python
	@touch $@
