# `make demo` and `make test` build their own environment from nothing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo stand-ins test test-long test-task test-oldest nightly coverage axe fonts pinned-chromium looks tasks site leaderboard lint lock-dev engine-env engine-test engine-nightly bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	tools/install.sh $(VENV) -e ".[dev]"
	touch $(STAMP)

# A small real model on sixty bundled rows, beside ceiling and baselines, with report and pages. See tools/demo.sh.
DEMO := .venv-demo
TORCH_CPU := https://download.pytorch.org/whl/cpu
demo: $(STAMP)
	@$(MAKE) --no-print-directory $(DEMO)/.installed && MAKE="$(MAKE)" tools/demo.sh $(DEMO)/bin || \
	  { [ -f $(DEMO)/.installed ] && exit 1; \
	    echo "torch and transformers cannot be installed here: stand-ins in place of a model"; \
	    $(MAKE) --no-print-directory stand-ins; }

$(DEMO)/.installed: pyproject.toml
	@echo "installs torch (200 MB from PyTorch's index, which holds it without CUDA; up to 3 GB from another),"
	@echo "transformers and what they need (100 MB) in $(DEMO); the model has 93 MB"
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --upgrade pip
	$(DEMO)/bin/python -m pip install -qq --retries 1 --timeout 20 --extra-index-url $(TORCH_CPU) torch==2.13.0
	$(DEMO)/bin/python -m pip install --quiet -e ".[demo]"
	touch $(DEMO)/.installed

# Every bundled task on its synthetic rows: the ceiling and a baseline.
stand-ins: $(STAMP)
	@for model in oracle random-label; do \
	  echo; echo "== $$model =="; \
	  $(BIN)/medtasks run --data sample --model $$model --output_path runs/demo-$$model \
	    --tasks bridge,medhelm,clinicbench,mlb 2>/dev/null || exit 1; \
	done

# What follows from the task files: variants and groups for lm-eval, the editors' schema.
tasks: $(STAMP)
	$(BIN)/medtasks dev build

test: $(STAMP)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 -m "not engine and not install and not nightly and not long"

# The pages in a browser, the authors' own code beside ours, kills at many moments: checks of a pull request.
test-long: $(STAMP)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 -m "long and not engine and not install and not nightly"

# One dataset folder, in less than a minute: make test-task TASK=medhelm_medqa
BY_DATASET := tests/test_all_tasks.py tests/answers tests/metrics/test_properties.py tests/registry \
  tests/results/test_statistics.py tests/rows/test_row_schemas.py tests/runner/test_lock.py tests/cli/test_preview.py
test-task: $(STAMP)
	$(BIN)/medtasks dev validate $(TASK)
	$(BIN)/medtasks dev lock --check $(TASK)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m "not nightly" --task $(TASK) $(BY_DATASET)

# `make test` with the oldest libraries that pyproject.toml allows. Packages of the tests are new.
OLDEST := .venv-oldest
test-oldest:
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet $(UV)
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST) --resolution lowest-direct -e .
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST) -e ".[dev]"
	HF_HUB_OFFLINE=1 $(OLDEST)/bin/python -m pytest -n 2 -m "not engine and not install and not nightly"

# All of both, and more: series of many hours, every place of a fault, other random examples each time.
nightly: $(STAMP) axe fonts pinned-chromium
	HF_HUB_OFFLINE=1 MEDTASKS_AXE=build/axe/axe.min.js \
	MEDTASKS_FONTS=build/fonts MEDTASKS_PINNED_CHROMIUM=build/chromium/chromium \
	  $(BIN)/python -m pytest -n 2 -m "not engine and not install" --hypothesis-profile=nightly

# Which lines `make test` and `make test-long` run; a table, and build/coverage for a browser.
coverage: $(STAMP)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 -m "not engine and not install and not nightly" \
	  --cov=medtasks_ext --cov-report=term:skip-covered --cov-report=html:build/coverage

# axe-core, for the browser tests that look for barriers: make axe test-long MEDTASKS_AXE=build/axe/axe.min.js
AXE := axe-core-4.14.1.tgz
AXE_SHA256 := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
axe: build/axe/axe.min.js
build/axe/axe.min.js: Makefile
	mkdir -p build/axe
	curl -fsSL --retry 2 -o build/axe/$(AXE) https://registry.npmjs.org/axe-core/-/$(AXE)
	echo "$(AXE_SHA256)  build/axe/$(AXE)" | sha256sum --check --quiet
	tar -xzmf build/axe/$(AXE) -C build/axe --strip-components=1 package/axe.min.js package/LICENSE

# The fonts of the pictures of pages that the nightly run compares; `make looks` takes these pictures anew.
FONTS := dejavu-fonts-ttf-2.37.3.tgz
FONTS_SHA256 := b7013ac58f9225250619db82cfb72e99c37ca8195f2b5a06a9e6a95bc5e1c84a
fonts: build/fonts/DejaVuSans.ttf
build/fonts/DejaVuSans.ttf: Makefile
	mkdir -p build/fonts
	curl -fsSL --retry 2 -o build/fonts/$(FONTS) https://registry.npmjs.org/dejavu-fonts-ttf/-/$(FONTS)
	echo "$(FONTS_SHA256)  build/fonts/$(FONTS)" | sha256sum --check --quiet
	tar -xzmf build/fonts/$(FONTS) -C build/fonts --strip-components=2 \
	  $(foreach name,Sans Sans-Bold SansMono SansMono-Bold,package/ttf/DejaVu$(name).ttf)
# Their browser: a headless Chromium from npm, packed with brotli, which node unpacks.
CHROMIUM := chromium-153.0.0.tgz
CHROMIUM_SHA256 := 20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0
pinned-chromium: build/chromium/chromium
build/chromium/chromium: Makefile
	mkdir -p build/chromium
	curl -fsSL --retry 2 -o build/chromium/$(CHROMIUM) https://registry.npmjs.org/@sparticuz/chromium/-/$(CHROMIUM)
	echo "$(CHROMIUM_SHA256)  build/chromium/$(CHROMIUM)" | sha256sum --check --quiet
	tar -xzmf build/chromium/$(CHROMIUM) -C build/chromium --strip-components=2 package/bin/chromium.br
	node -e 'const fs = require("fs"); fs.createReadStream("$@.br").pipe(require("zlib").createBrotliDecompress()).pipe(fs.createWriteStream("$@", {mode: 0o755}))'
	rm $@.br
looks: $(STAMP) fonts pinned-chromium
	rm -rf tests/browser/kept_looks
	HF_HUB_OFFLINE=1 MEDTASKS_LOOKS=keep MEDTASKS_FONTS=build/fonts MEDTASKS_PINNED_CHROMIUM=build/chromium/chromium \
	  $(BIN)/python -m pytest -n 0 tests/browser/test_looks.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/yamllint --strict .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/medtasks dev build --check
	$(BIN)/python tools/docs.py --check
	$(BIN)/python tools/budget.py
	$(BIN)/medtasks dev lock --check
	$(BIN)/pytest -q -n 0 tests/registry/test_wording.py

# The versions with which the tests last passed, for `pip install -r requirements/dev.txt`.
UV := uv==0.13.9
lock-dev: $(STAMP)
	$(BIN)/python -m pip install --quiet $(UV)
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --extra dev --universal --python-version 3.10 \
	  --custom-compile-command "make lock-dev" --output-file requirements/dev.txt

# The real vLLM engine on the CPU. torch first: a plain install would bring CUDA builds.
ENGINE ?= .venv-engine
engine-env: $(ENGINE)/.installed
$(ENGINE)/.installed: pyproject.toml benchmarks/make_engine_env.sh
	sh benchmarks/make_engine_env.sh $(PYTHON) $(ENGINE)
	touch $(ENGINE)/.installed

# lm-eval finds the copy that is installed, so that is made anew
engine-test: engine-env
	$(ENGINE)/bin/python -m pip install --quiet --no-deps --force-reinstall .
	HF_HUB_OFFLINE=1 $(ENGINE)/bin/python -m pytest -n 2 --dist loadfile -m "engine and not nightly" tests/engine

# More starts of the engine: Ray, replicas, a trained judge that is served, a ready file of each form; 10,000 drawn
# settings.
engine-nightly: engine-env
	$(ENGINE)/bin/python -m pip install --quiet --no-deps --force-reinstall .
	HF_HUB_OFFLINE=1 $(ENGINE)/bin/python -m pytest -m "engine and nightly" tests/engine
	MEDTASKS_DRAWS=10000 HF_HUB_OFFLINE=1 $(ENGINE)/bin/python -m pytest -m engine -k drawn tests/engine/test_harmless_settings.py

# The documentation as a site, in build/site.
site: $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[site]"
	$(BIN)/mkdocs build --strict --config-file docs/site/mkdocs.yml

# The leaderboard of published and submitted models, beside the documentation.
leaderboard: $(STAMP)
	$(BIN)/medtasks dev site -o build/site/leaderboard

bench: $(STAMP)
	$(BIN)/python benchmarks/run_all.py

clean:
	rm -rf $(VENV) $(ENGINE) build runs
