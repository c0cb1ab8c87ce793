# Everything starts here, from a clean clone with Python 3.11+, make and a C compiler:
#   make demo    sets everything up and runs the main job
#   make demo-stream  the main job as a stream, replayed in disorder; checks that the matches are the same
#   make test    sets everything up and passes the tests
#   make setup   the environment in .venv, with the kernel compiled
#   make check   lint, types, tests
#   make format  format the sources
#   make test-all        the tests with 2,000 random patterns per mode instead of 60; keeps a record, which ONLY=guards renews in part
#   make setup-browser  whether a Chromium is found for the tests of the workbench's page, else how to get one
#   make test-spark-3.5  the tests of all methods with Spark 3.5; test-spark-4.0, -4.1, -4.2 too (`make test` has the newest); TESTS= names others
#   make test-spark-versions  the same with each of them; keeps a record
#   make sanitize        the random tests outside Spark with kernels built with the address and undefined-behaviour sanitizers; keeps a record, which ONLY=guards renews in part
#   make random          65,000 random patterns that compare events, or with negation or THEN, in every way, against the definition; keeps a record, which ONLY=TIMED renews in part
#   make kills   kill the driver and the workers of a stream 25 times each, and count what is lost or doubled; keeps a record
#   make cluster-test  a stream on a standalone cluster on this machine, whose executors, workers and driver are killed, whose tasks run twice, and whose workers lack memory; keeps a record
#   make kafka-test  from topic to topic with a Kafka broker whose jars Maven brings, on Spark 4.2: repeats, late events, idle partitions, Avro
#   make delta-test  from a Delta table to Delta tables, whose jars Maven brings, on Spark 4.2: the sink, foreachBatch, MERGE; micro-batches that come again
#   make bench   the benchmarks; their records are in benchmarks/record
#   make bench-peers  Cepheid beside other engines, each in an environment of its own (set PYTHON313 for CORE's)
#   make bench-paper  the experiments of the paper "Foundations of Complex Event Processing", and their plots
#   make readme  the README's blocks, in an empty environment, with the built wheel
#   make docs    the documentation site, in out/site (`python -m http.server -d out/site`, or open index.html)
#   make requirements    compile requirements/*.in anew
#   make tables  the tables of the grammars anew, after a change of grammar.lark or match_recognize.lark
#   make clean   remove what was built (distclean: the environments too)
# Set PYTHON to use another interpreter than python3.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
CASES  ?= 60

VENV     := .venv
BIN      := $(VENV)/bin
TOOLS    := .venv-tools
UV       := $(TOOLS)/bin/uv
DOCS_VENV := .venv-docs
SANITIZED := .venv-sanitize

# A user's own uv configuration must not change what we install.
export UV_NO_CONFIG := 1
export PYTHONUNBUFFERED := 1

# What the cache has is neither fetched nor built again, however old the registry calls it: the build of a Spark takes 1.4 GB.
CACHED = cached() { "$$@" --offline 2> /dev/null || "$$@"; }; cached
SYNC   = $(CACHED) $(UV) pip sync --quiet --require-hashes --python

KERNEL_SOURCES := $(filter-out %/__init__.py %/_source_hash.py,$(wildcard src/cepheid/kernel/*.py))
INSTALL = CEPHEID_BUILD_CHECKED=1 CEPHEID_REQUIRE_COMPILED=1 \
          $(UV) pip install --quiet --no-build-isolation --no-deps --editable . --python

.PHONY: help setup demo demo-stream test test-connect test-all test-spark-versions sanitize random kills cluster-test kafka-test delta-test check lint format types compiled setup-browser bench bench-peers bench-paper readme docs \
        requirements tables clean distclean
help:
	@sed -n 's/^#   make/  make/p' Makefile

# Says which Java Spark will use; everything before it is done once, and again only when its sources change.
setup: $(VENV)/.installed
	@if test -f src/cepheid/spark/session.py; then $(BIN)/python -m cepheid.spark.session; fi

# The tests of the workbench's page need one, and are skipped without; no package of Python brings it.
setup-browser:
	@for name in "$$CEPHEID_CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable chrome; do \
		if test -n "$$name" && command -v "$$name"; then exit 0; fi; \
	done; \
	echo "no Chromium is on the PATH. Debian, Ubuntu: apt-get install chromium; Fedora: dnf install chromium; macOS: brew install --cask chromium."; \
	echo "Or set CEPHEID_CHROMIUM to the path of a Chrome or Edge."; exit 1

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
	@$(SYNC) $(BIN)/python requirements/dev.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.requirements pyproject.toml setup.py $(KERNEL_SOURCES)
	@echo "setup: the package; its kernel is compiled from C, once, in one to three minutes"
	@$(INSTALL) $(BIN)/python
	@touch $@

# ---------------------------------------------------------------------------------------------------------- running

demo: setup
	@$(BIN)/python examples/flights.py

demo-stream: setup
	@$(BIN)/python examples/flights_stream.py

# A pass without the compiled kernel would be no pass.
compiled: setup
	@CEPHEID_REQUIRE_COMPILED=1 $(BIN)/python -m pytest --quiet --no-header tests/test_packaging.py

# Spark Connect cannot share a process with a classic session. Exit status 5: there is nothing to run.
test-connect: compiled
	@CEPHEID_CASES=$(CASES) $(BIN)/python -m pytest tests/spark -m connect || test $$? -eq 5

# The tests in parts, the longest first, and three processes, one more than the cores that they are for: Spark's part is the longest, waits now and then,
# and goes first, the others take what it leaves. The process that is free takes the next part. What they said comes at the end, so that the output ends
# with pytest's own line.
PARTS           := spark engine guards tasks properties others pages connect
IN_spark        := tests/spark -m "not connect and not tasks"
IN_tasks        := tests/spark -m tasks
IN_guards       := $(wildcard tests/engine/test_guarded*.py)
IN_engine       := tests/engine $(patsubst %,--ignore=%,$(IN_guards))
IN_properties   := tests/properties
IN_pages        := tests/cli tests/docs tests/notebook tests/play tests/why_not
IN_others       := $(patsubst %,--ignore=%,tests/spark tests/engine $(IN_properties) $(IN_pages))

test-%:
	@CEPHEID_CASES=$(CASES) CEPHEID_REQUIRE_COMPILED=1 $(BIN)/python -m pytest --durations 12 $(IN_$*)

test: compiled
	@mkdir -p out; rm -f out/test-*.log; \
	status=0; printf '%s\n' $(PARTS) | xargs -P 3 -I PART sh -c \
		'test PART = spark && low=0 || low=5; nice -n $$low $(MAKE) --no-print-directory test-PART > out/test-PART.log 2>&1; status=$$?; echo "PART: $$(tail -n 1 out/test-PART.log)"; exit $$status' || status=$$?; \
	cat $(PARTS:%=out/test-%.log); exit $$status

# Leaves its result, with the seed, in benchmarks/record/tests.json.
test-all:
	@$(MAKE) --no-print-directory test-connect CASES=2000
	@$(BIN)/python benchmarks/record_tests.py --cases 2000 $(if $(ONLY),--parts $(ONLY))

lint: $(VENV)/.installed
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

format: $(VENV)/.installed
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

types: $(VENV)/.installed
	@$(BIN)/mypy

check: lint types
	@$(MAKE) --no-print-directory test

BENCHMARKS := $(filter-out %/bench_peers.py %/bench_paper.py,$(wildcard benchmarks/bench_*.py))

bench: setup
	@for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python "$$script"; done

# Each peer has an environment of its own, which nothing else imports.
PEERS     := benchmarks/peers
PYTHON313 ?= 3.13

$(PEERS)/.venv-%/.installed: $(PEERS)/%/requirements.txt $(TOOLS)/.stamp
	@echo "setup: the environment of $*"
	@test -x $(@D)/bin/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON))" $(@D)
	@$(SYNC) $(@D)/bin/python $<
	@touch $@

# The wheels of CORE are for CPython 3.13 alone: without one its cases are recorded as absent.
$(PEERS)/.venv-core/bin/python: | $(TOOLS)/.stamp
	@$(UV) venv --quiet --python "$(PYTHON313)" $(@D)/.. || echo "bench-peers: no CPython 3.13 (set PYTHON313=), so no CORE"

# Esper has no package for Python: Maven brings the jars that its pom.xml names.
$(PEERS)/.venv-esper/.installed: $(PEERS)/esper/pom.xml
	@echo "setup: the jars of esper"
	@mkdir -p $(@D) && cp $< $(@D)/pom.xml
	@mvn -q -f $(@D)/pom.xml dependency:copy-dependencies -DoutputDirectory=jars && touch $@ || echo "bench-peers: no Maven, or no jars, so no Esper"

bench-peers: setup $(PEERS)/.venv-esper/.installed $(PEERS)/.venv-core/bin/python $(foreach peer,flink pandas_match_recognize siddhi plots,$(PEERS)/.venv-$(peer)/.installed)
	@if test -x $(PEERS)/.venv-core/bin/python; then $(MAKE) --no-print-directory $(PEERS)/.venv-core/.installed; fi
	@$(BIN)/python benchmarks/bench_peers.py
	@$(PEERS)/.venv-plots/bin/python $(PEERS)/plots/draw.py

bench-paper: setup $(PEERS)/.venv-plots/.installed
	@$(BIN)/python benchmarks/bench_paper.py
	@$(PEERS)/.venv-plots/bin/python $(PEERS)/plots/draw.py

readme: $(VENV)/.installed
	@$(BIN)/python scripts/readme.py --uv $(UV)

# An environment of its own: the builder reads the sources, and needs nothing of ours installed.
$(DOCS_VENV)/.installed: requirements/docs.txt $(TOOLS)/.stamp
	@echo "setup: the builder of the documentation site"
	@test -x $(DOCS_VENV)/bin/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON))" $(DOCS_VENV)
	@$(SYNC) $(DOCS_VENV)/bin/python requirements/docs.txt
	@touch $@

docs: $(DOCS_VENV)/.installed
	@$(DOCS_VENV)/bin/python scripts/website.py --zensical $(DOCS_VENV)/bin/zensical

# An environment for each older Spark, which reads the package from src: its kernel is compiled there once for all. The newest Spark is in VENV.
SPARK_VENV := .venv-spark
$(SPARK_VENV)-%/.installed: requirements/spark-%.txt $(VENV)/.installed
	@echo "setup: the environment with Spark $*"
	@test -x $(@D)/bin/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON))" $(@D)
	@$(SYNC) $(@D)/bin/python $<
	@$(@D)/bin/python -c 'import site, sys; print(sys.argv[1], file=open(site.getsitepackages()[0] + "/cepheid-sources.pth", "w"))' $(CURDIR)/src
	@touch $@

# The Python side of older Sparks leaves sockets to the garbage collector, and warns of what newer packages call old. Exit status 5: nothing to run.
TESTS := tests/spark/test_versions.py
OLD_PYTEST = $(SPARK_VENV)-$*/bin/python -m pytest -W "ignore:unclosed:ResourceWarning" -W "ignore::DeprecationWarning" -W "ignore::FutureWarning"
OLD_SPARKS := 3.5 4.0 4.1 4.2
.PRECIOUS: $(OLD_SPARKS:%=$(SPARK_VENV)-%/.installed)

$(OLD_SPARKS:%=test-spark-%): test-spark-%: $(SPARK_VENV)-%/.installed
	@CEPHEID_CASES=$(CASES) $(OLD_PYTEST) $(TESTS) -m "not connect"
	@test $* = 3.5 || $(OLD_PYTEST) $(TESTS) -m connect || test $$? -eq 5

test-spark-versions: compiled $(OLD_SPARKS:%=$(SPARK_VENV)-%/.installed)
	@$(BIN)/python benchmarks/record_spark_versions.py

random: setup
	@$(BIN)/python benchmarks/record_random.py $(if $(ONLY),--fragments $(ONLY))

kills: setup
	@$(BIN)/python benchmarks/record_kills.py

# The environment that docs/spark.md sends to a cluster, made of the wheel: without Spark, which the cluster has.
CLUSTER := out/cluster
$(CLUSTER)/environment.tar.gz: $(VENV)/.installed
	@echo "setup: an environment to send to a cluster"
	@rm -rf $(CLUSTER) && mkdir -p $(CLUSTER)
	@CEPHEID_REQUIRE_COMPILED=1 $(BIN)/python -m build --wheel --no-isolation -o $(CLUSTER) . > $(CLUSTER)/build.log
	@$(UV) venv --quiet --seed --python "$$(command -v $(PYTHON))" $(CLUSTER)/environment
	@$(UV) pip install --quiet --python $(CLUSTER)/environment/bin/python "$$(echo $(CLUSTER)/*.whl)[spark-cluster]" venv-pack setuptools
	@$(CLUSTER)/environment/bin/venv-pack --quiet -p $(CLUSTER)/environment -o $@

cluster-test: $(CLUSTER)/environment.tar.gz
	@$(BIN)/python benchmarks/record_cluster.py --archive $<

# The newest Spark whose connector Maven has. Scala, Hadoop and what else is there comes with Spark.
KAFKA := out/kafka
WITH_SPARK := -DincludeScope=runtime -DexcludeGroupIds=org.scala-lang,org.apache.hadoop,org.slf4j,org.lz4,at.yawk.lz4,org.xerial.snappy -DexcludeArtifactIds=spark-tags_2.13
$(KAFKA)/.installed: tests/kafka/broker.xml tests/kafka/connector.xml
	@echo "setup: the jars of Kafka and of Spark's connector"
	@mkdir -p $(@D) && cp $^ $(@D)
	@mvn -q -f $(@D)/broker.xml dependency:copy-dependencies -DoutputDirectory=broker
	@mvn -q -f $(@D)/connector.xml dependency:copy-dependencies -DoutputDirectory=connector $(WITH_SPARK)
	@touch $@

kafka-test: compiled $(KAFKA)/.installed $(SPARK_VENV)-4.2/.installed
	@CEPHEID_KAFKA=$(CURDIR)/$(KAFKA) $(SPARK_VENV)-4.2/bin/python -m pytest -W "ignore:unclosed:ResourceWarning" -W "ignore::DeprecationWarning" -W "ignore::FutureWarning" tests/kafka

DELTA := out/delta
$(DELTA)/.installed: tests/delta/delta.xml
	@echo "setup: the jars of Delta Lake"
	@mkdir -p $(@D) && cp $^ $(@D)
	@mvn -q -f $(@D)/delta.xml dependency:copy-dependencies -DoutputDirectory=. $(WITH_SPARK)
	@touch $@

delta-test: compiled $(DELTA)/.installed $(SPARK_VENV)-4.2/.installed
	@CEPHEID_DELTA=$(CURDIR)/$(DELTA) $(SPARK_VENV)-4.2/bin/python -m pytest -W "ignore:unclosed:ResourceWarning" -W "ignore::DeprecationWarning" -W "ignore::FutureWarning" tests/delta

# An environment of its own too. GCC: its sanitizers' libraries must be there before Python's own; leaks are not looked for, Python keeps what it likes.
$(SANITIZED)/.installed: requirements/dev.txt $(TOOLS)/.stamp pyproject.toml setup.py $(shell find src -name '*.py')
	@echo "setup: the package, with sanitized kernels"
	@test -x $(SANITIZED)/bin/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON))" $(SANITIZED)
	@$(SYNC) $(SANITIZED)/bin/python requirements/dev.txt
	@CEPHEID_SANITIZE=1 CEPHEID_BUILD_CHECKED=1 CEPHEID_REQUIRE_COMPILED=1 \
		$(UV) pip install --quiet --no-build-isolation --no-deps --reinstall --no-cache . --python $(SANITIZED)/bin/python
	@touch $@

sanitize: $(SANITIZED)/.installed
	@export LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so) $$(gcc -print-file-name=libstdc++.so.6)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc; \
	$(SANITIZED)/bin/python scripts/sanitized.py && $(SANITIZED)/bin/python benchmarks/record_tests.py --cases $(CASES) --name sanitize $(if $(ONLY),--parts $(ONLY))

# ------------------------------------------------------------------------------------------------------ maintenance

# No header and no index address: the files say nothing about the machine that made them.
requirements: $(TOOLS)/.stamp
	@for name in tools dev $(OLD_SPARKS:%=spark-%) docs; do \
		$(UV) pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --no-header \
			--no-emit-index-url --no-emit-find-links -o requirements/$$name.txt requirements/$$name.in; \
	done

tables: setup
	@$(BIN)/python scripts/tables.py

clean:
	@rm -rf build dist out src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	@rm -f src/cepheid/kernel/*.so src/cepheid/kernel/*.pyd src/cepheid/kernel/_source_hash.py $(VENV)/.installed
	@find src tests scripts examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	@rm -rf $(VENV) $(TOOLS) $(SPARK_VENV)-* $(DOCS_VENV) $(SANITIZED) $(PEERS)/.venv-* $(PEERS)/.data
