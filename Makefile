# Two commands matter: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
DATA ?= ../shared/data
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test docs soak steady lint setup bench-paper bench-suites bench-default bench-short bench-generated bench-violations bench-calibration bench-missing bench-case bench-speed bench-scale bench-profile bench-sensitivity mutants readme clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "causalformer needs Python 3.11 or newer: make PYTHON=python3.11")'
	@$(PYTHON) -m venv .venv || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/causalformer demo --out demo-results

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest
	$(MAKE) docs

# The documentation, with every script of the gallery run; needs no network. Open build/docs/index.html
docs: $(READY)
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going \
	  --doctree-dir build/doctrees docs build/docs

# Kills, full disks, damaged files and strange frames, for longer: make soak SOAK="--seconds 3600"
SOAK ?= --rounds 25 --examples 1000
soak: $(READY)
	PYTHONPATH=tests $(BIN)/python -m soak $(SOAK)

# Every number that decides at half and at twice: whether the tests notice.
mutants: $(READY)
	PYTHONPATH=tests $(BIN)/python -m mutants

# The tests in the browser, again and again beside four busy loops: make steady ROUNDS=5
ROUNDS ?= 20
steady: $(READY)
	@trap 'kill $$busy' EXIT; trap 'exit 1' INT TERM; \
	for i in 1 2 3 4; do $(BIN)/python -c 'while True: pass' & busy="$$busy $$!"; done; \
	for i in $$(seq $(ROUNDS)); do \
	  echo "round $$i of $(ROUNDS)"; \
	  $(BIN)/python -m pytest --quiet \
	    tests/report/test_in_browser.py tests/app/test_app_in_browser.py || exit 1; \
	done

# Every method on the paper's data, the paper's tables and figures; results are committed under benchmarks/.
bench-paper: $(READY)
	$(BIN)/causalformer bench --suite paper --data $(DATA) --methods paper --seed 0,1,2,3,4 --n-jobs 2 --out benchmarks/paper
	$(BIN)/causalformer bench $(DATA)/fmri --methods paper-variants --seed 0,1,2 --orientation as-published --n-jobs 2 --out benchmarks/paper
	$(BIN)/causalformer bench --suite paper --data $(DATA) --n-jobs 2 --out benchmarks/paper
	$(BIN)/python -m causalformer.bench.published_runs --data $(DATA) --reference $(DATA)/../reference --out benchmarks/paper

# Every method on drawn systems, over sizes, and the case study of sea surface temperatures.
bench-suites: $(READY)
	$(BIN)/causalformer bench --suite generated --n-jobs 2 --out benchmarks/drawn
	$(BIN)/causalformer bench --suite scaling --out benchmarks/scaling
	$(BIN)/causalformer bench --suite sst --data $(DATA) --out benchmarks/sst

# The default method, one configuration, three seeds.
bench-default: $(READY)
	$(BIN)/causalformer bench $(addprefix $(DATA)/,diamond mediator v_structure fork lorenz96 fmri) \
	  --methods default --seed 0,1,2 --n-jobs 2 --out benchmarks/default

bench-short: $(READY)
	$(BIN)/causalformer bench $(addprefix $(DATA)/,diamond mediator v_structure fork lorenz96) \
	  --methods default --rows 500 --n-jobs 2 --out benchmarks/short

# Calibration, hidden drivers and the number of lags, on systems that were drawn for it.
bench-missing: $(READY)
	$(BIN)/python -m causalformer.bench.missing --data $(DATA) --out benchmarks/missing

bench-generated: $(READY)
	$(BIN)/python -m causalformer.bench.generated --out benchmarks/generated
	$(BIN)/python -m causalformer.bench.generated --out benchmarks/generated-more \
	  --repeats 64 --family "linear, student" --family "strong memory" --family lorenz

# Systems that violate assumptions, from not at all to severely; goes on where it was stopped.
bench-violations: $(READY)
	$(BIN)/causalformer bench --suite violations --seed-set report --n-jobs 2 --out benchmarks/violations

# The p-values of pairs without an effect, in ten families.
bench-calibration: $(READY)
	$(BIN)/python -m causalformer.bench.calibration --n-jobs 2 --out benchmarks/calibration

# The paper's case study fMRI-15 over 50 seeds, beside seeds of the published implementation.
bench-case: $(READY)
	$(BIN)/python -m causalformer.bench.case_study --data $(DATA) --reference $(DATA)/../reference --n-jobs 2 --out benchmarks/case-study

# Every number that decides at half and at twice: what becomes of graphs; goes on where it was stopped.
bench-sensitivity: $(READY)
	$(BIN)/python -m causalformer.bench.sensitivity --out benchmarks/sensitivity

readme: $(READY)
	$(BIN)/python -m causalformer.bench.readme README.md benchmarks

bench-speed: $(READY)
	$(BIN)/python -m causalformer.bench.speed --data $(DATA) --out benchmarks/speed

# Time, memory and accuracy up to 1000 series and a million slots; SCALE="--part limits" for a part of it.
SCALE ?=
bench-scale: $(READY)
	$(BIN)/python -m causalformer.bench.scale --data $(DATA) --out benchmarks/scale $(SCALE)
	$(BIN)/python -m causalformer.bench.cluster --out benchmarks/scale

bench-profile: $(READY)
	$(BIN)/python -m causalformer.bench.profile --out benchmarks/profile

clean:
	rm -rf .venv demo-results
