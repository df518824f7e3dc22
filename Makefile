# People call `make run`, `make test`, `make check`.  Everything else is a part of these.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
BESIDE := -n 2 --dist loadscope # two processes, of which one has all tests that measure: tests/conftest.py

.PHONY: help run test test-nvme check lint types unit bench calibrate calibrate-requests calibrate-gate calibrate-devices pictures clean
help: ## show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

run: $(VENV)/.run ## set up, measure the disk under results/ with suite quick, write the report (ARGS="..." for options)
	$(BIN)/kvbench run $(ARGS)

test: $(VENV)/.dev ## set up, run all tests but those on emulated NVMe drives
	$(BIN)/python -m pytest $(BESIDE) -m "not vm"

test-nvme: $(VENV)/.dev ## kvbench on emulated NVMe drives in virtual machines (a quarter of an hour, root, tests/nvme_vm/vm.sh deps)
	$(BIN)/python -m pytest -m vm tests/nvme_vm

check: lint types test ## ruff, mypy --strict and all tests

lint: $(VENV)/.dev ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy --strict
	$(BIN)/mypy

unit: $(VENV)/.dev ## the fast tests only: no fio, no devices, no browser
	$(BIN)/python -m pytest $(BESIDE) -m "not fio and not blockdev and not slow and not vm and not browser"

bench: $(VENV)/.dev ## print ratios: kvbench against plain fio, report speed (nothing else may run)
	$(BIN)/python -m tests.bench

calibrate: calibrate-requests calibrate-gate calibrate-devices ## is the instrument right? all three parts (nothing else may run)

calibrate-requests: $(VENV)/.dev ## the request time of vllm-block over that of a program that reads blocks
	$(BIN)/python -m tests.bench requests

calibrate-gate: $(VENV)/.dev ## a throttled device against itself, twenty times, through the gate (10 minutes, root)
	$(BIN)/python -m tests.bench same-device

calibrate-devices: $(VENV)/.dev ## measure devices of known latency in a virtual machine (installs QEMU by apt)
	bash tests/nvme_vm/vm.sh deps
	$(BIN)/python -m tests.bench devices

pictures: $(VENV)/.dev ## photograph the stored example for the README (needs Debian's chromium)
	$(BIN)/python -m tests.pictures

clean: ## remove the virtual environment and caches; results stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build *.egg-info

$(VENV)/.system: tests/setup.sh
	bash tests/setup.sh $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.system pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@
