# Sets everything up on a machine with only Python 3.10 or newer and make.
#   make demo    install, then check a small buggy training script
#   make test    install with the development tools, then run the fast tests
#   make bench-gold    bugs that people marked in real files (CORPUS=)
#   make bench-probe    the proof of the probe: faults found, clean programs (EXAMPLES=, NANOGPT=)
#   make bench-recall    how many planted bugs the check finds
#   make bench-trainers    run the reference trainers in full, write the table of their targets
.PHONY: demo test test-slow lint bench bench-gold bench-labels bench-probe bench-recall bench-trainers clean

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

$(VENV)/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.developing: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.probing: $(VENV)/.developing
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,probe]' \
		matplotlib scikit-learn webdataset \
		accelerate lightning mlflow-skinny safetensors six tensorboard transformers wandb
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/trainlint check --no-cache --exit-zero tests/demo/train.py

test: $(VENV)/.developing
	$(BIN)/python -m pytest

# One thread each: two tests at a time on two cores.
test-slow: $(VENV)/.probing
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow -n 2

lint: $(VENV)/.developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench-recall: $(VENV)/.developing
	$(BIN)/python -m tests.bench.recall

bench-labels: $(VENV)/.developing
	$(BIN)/python -m tests.bench.labels $(CORPUS)

bench: $(VENV)/.developing
	$(BIN)/python -m tests.bench.speed

bench-probe: $(VENV)/.probing
	$(BIN)/python tests/runtime/bench_probe.py \
		$(if $(EXAMPLES),--examples $(EXAMPLES)) $(if $(NANOGPT),--nanogpt $(NANOGPT))

bench-trainers: $(VENV)/.probing
	$(BIN)/python -m tests.reference_trainers.measured

# CORPUS: a folder with the marked files, see `python -m tests.bench.gold --help`.
bench-gold: $(VENV)/.developing
	$(BIN)/python -m tests.bench.gold --corpus $(or $(CORPUS),.bench/corpus)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .trainlint_cache
