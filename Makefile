# Every target sets up what it needs: a fresh machine wants Python (3.11 or later), make and git, nothing more.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: reproduce test pytest quick docs test-gpu test-torch torture lint bench examples scoreboard scoreboard-data pictures venv lock release-check clean

reproduce: venv  ## the main job: train, measure, draw; the results land in results/
	$(BIN)/scb reproduce --shipped docs/tables

test: .venv/ready  ## what CI runs
	$(MAKE) --no-print-directory -j 2 lint pytest  # pyright takes one core, and as long as a tenth of the tests

pytest: venv .venv/examples  ## all tests; three processes, because tests that start commands wait a quarter of their time
	$(BIN)/pytest -n 3 --dist worksteal

quick: venv .venv/examples  ## the tests without the slow ones, which are named at the end
	$(BIN)/pytest -n 3 --dist worksteal -m "not slow"

test-gpu: venv  ## the engine on an NVIDIA GPU against the processor's (needs CuPy: the extra cuda12 or cuda13)
	$(BIN)/pytest tests/gpu_checks.py -s

torture: venv  ## all attacks of tests/torture, by the thousand; goes on behind results/torture.csv
	PYTHONPATH=tests $(BIN)/python -m torture $(TORTURE)

test-torch: venv  ## the tests of scb.torch, in an environment of their own that has PyTorch, too
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/pip install --quiet --require-hashes -r requirements.lock
	.venv-torch/bin/pip install --quiet torch==2.13.0
	.venv-torch/bin/pip install --quiet --no-build-isolation --no-deps --editable .
	.venv-torch/bin/pytest tests/pytorch/test_torch.py tests/paper/test_transformers.py tests/project/test_docstrings.py

docs: venv .venv/docs  ## the site, built offline into docs/_build/html; a warning or a broken link is an error
	$(BIN)/python -m sphinx -b html -j 2 -W --keep-going docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

lint: .venv/ready  ## ruff and pyright
	$(BIN)/ruff check src tests examples benchmarks docs
	$(BIN)/ruff format --check src tests examples benchmarks docs
	$(BIN)/pyright

bench: venv  ## time our code against what one would otherwise write
	$(BIN)/scb bench --baselines benchmarks/step_baselines.py

examples: venv .venv/examples  ## three worked examples on real data; figures and tables of docs/explanation/examples.md are made anew
	$(BIN)/python examples/paradise_lost.py
	$(BIN)/python examples/kalevala.py
	$(BIN)/python examples/seattle_rain.py
	$(BIN)/python benchmarks/pages.py paradise_lost kalevala seattle_rain

scoreboard: scoreboard-data  ## outside problems and outside estimators: run what is missing, write docs/explanation/scoreboard.md
	$(PYTHON) -m venv .venv-scoreboard
	.venv-scoreboard/bin/pip install --quiet --require-hashes -r requirements.lock
	.venv-scoreboard/bin/pip install --quiet -r benchmarks/scoreboard/requirements.txt
	.venv-scoreboard/bin/pip install --quiet --no-build-isolation --no-deps --editable .
	.venv-scoreboard/bin/python benchmarks/scoreboard --jobs 2

scoreboard-data: venv  ## what the scoreboard reads, from packages that are not installed (45 MB); one file more comes from R
	mkdir -p benchmarks/scoreboard/downloads
	cd benchmarks/scoreboard/downloads && test -e brotli-*.tar.gz || ../../../$(BIN)/pip download --quiet --no-deps --no-binary :all: brotli==1.2.1
	cd benchmarks/scoreboard/downloads && test -e biopython-*.tar.gz || ../../../$(BIN)/pip download --quiet --no-deps --no-binary :all: biopython==1.88
	cd benchmarks/scoreboard/downloads && test -e music21-*.whl || ../../../$(BIN)/pip download --quiet --no-deps music21==10.5.1
	@test -e benchmarks/scoreboard/downloads/tempdata.csv || echo "for Brasilia, in R: write.csv(hdMTD::tempdata, \"benchmarks/scoreboard/downloads/tempdata.csv\", row.names = FALSE)"

pictures: venv  ## the pictures of the first page: one sample, drawn, and three findings from results on disk
	$(BIN)/python -m scb.picture docs/images
	$(BIN)/python benchmarks/landing.py

venv: .venv/kernels  ## the environment, exactly as in requirements.lock, and compiled kernels

.venv/kernels: .venv/ready $(wildcard src/scb/kernels/*.py src/scb/kernels/*/*.py)
	rm -rf src/scb/kernels/__pycache__ src/scb/kernels/*/__pycache__  # Numba does not see edits in imported modules
	$(BIN)/python -m scb.kernels
	touch $@

.venv/ready: requirements.lock pyproject.toml
	@echo "Setting up .venv: about 900 MB, some minutes of downloading and unpacking. This happens once."
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

.venv/examples: .venv/ready examples/requirements.lock
	$(BIN)/pip install --quiet --no-deps --require-hashes -r examples/requirements.lock  # only their files are read
	touch $@

.venv/docs: .venv/ready requirements-docs.lock
	$(BIN)/pip install --quiet --require-hashes -r requirements-docs.lock  # the versions of requirements.lock, and Sphinx
	touch $@

release-check:  ## rehearse a release of what is committed: dist/ gets the files, each is installed into an empty environment and tried
	rm -rf dist .release
	git clone --quiet . .release/clone
	$(PYTHON) -m venv .release/tools
	.release/tools/bin/pip install --quiet --require-hashes -r requirements-release.lock
	.release/tools/bin/sp-repo-review .release/clone
	.release/tools/bin/zizmor --offline --quiet .release/clone/.github
	.release/tools/bin/python -m build --outdir dist .release/clone
	.release/tools/bin/twine check --strict dist/*
	.release/tools/bin/check-wheel-contents dist/*.whl
	set -e; for file in dist/*; do \
		$(PYTHON) -m venv --clear .release/empty; \
		.release/empty/bin/pip install --quiet $$file; \
		.release/empty/bin/python tests/smoke.py; \
	done

lock: venv  ## renew the lock files from pyproject.toml (asks for uv)
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --extra all --group dev pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --extra all --group docs -c requirements.lock pyproject.toml -o requirements-docs.lock
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --group release -c requirements.lock -o requirements-release.lock

clean:
	rm -rf .venv .venv-torch .venv-scoreboard benchmarks/scoreboard/downloads .release dist results docs/_build docs/learn docs/reference/api docs/reference/api.md docs/reference/cli.md
