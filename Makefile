# The usual commands; CMakeLists.txt is what builds. Every target may be repeated, and does little when little is to be done.
#
# BUILD=FOLDER        where to build: build
# BUILD_TYPE=Debug    as CMake takes it: Release
# SANITIZE=...        address,undefined: in build-sanitize, and without LibTorch unless TORCH=ON
# TORCH=OFF           leave out what needs LibTorch: train, eval, align
# WERROR=ON           warnings are errors
# JOBS=N              compilers at a time: one a core

BUILD_TYPE ?= Release
SANITIZE ?=
TORCH ?= $(if $(SANITIZE),OFF,ON)
WERROR ?= OFF
BUILD ?= $(if $(SANITIZE),build-sanitize,build)
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
DESTDIR ?=

deps := share/noether/deps
options := -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DNOETHER_SANITIZE=$(SANITIZE) -DNOETHER_TORCH=$(TORCH) -DNOETHER_WERROR=$(WERROR)
sources := git ls-files -- '*.h' '*.cpp'

build: ## Build everything into build/ (the default)
	@command -v cmake >/dev/null && command -v ninja >/dev/null || { echo "cmake or ninja is missing: make deps installs them" >&2; exit 1; }
	@if [ ! -e $(BUILD)/build.ninja ] || [ "$$(cat $(BUILD)/options 2>/dev/null)" != "$(options)" ]; then \
	  cmake -S . -B $(BUILD) -G Ninja $(options) && echo "$(options)" >$(BUILD)/options; \
	fi
	@ninja -C $(BUILD) -j $(JOBS)

deps: ## Install what is missing: Debian packages, and LibTorch into .deps/
	@$(deps)/install.sh build $(if $(LIBTORCH)$(Torch_DIR)$(filter OFF,$(TORCH)),,libtorch)
ifneq ($(TORCH),OFF)
	@$(deps)/libtorch.sh .deps
endif

deps-test deps-demo deps-bench deps-check: deps-%: deps
	@$(deps)/install.sh $*

test: deps-test ## Install what is missing, build, and run every test
	@$(MAKE) --no-print-directory build
	@tests/run.sh $(BUILD)

demo: deps-demo ## Train two small models on real text and compare them (TEXT=FILE: on your own)
	@$(MAKE) --no-print-directory build
	@PATH="$(abspath $(BUILD))/bin:$$PATH" share/noether/demo/demo.sh demo $(TEXT)

bench: deps-bench ## Compare speed with other programs (BENCH="train-b encode": only these)
	@$(MAKE) --no-print-directory build
	@tests/bench/run.sh $(BUILD) $(BENCH)

install: build ## Install under PREFIX (/usr/local), within DESTDIR when it is set
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

format: ## Lay out the sources by .clang-format
	@$(sources) | xargs -r clang-format -i

lint: deps-check ## Check layout, sources, scripts and man pages
	@$(MAKE) --no-print-directory build
	@tests/lint.sh $(BUILD)

test-fresh: ## Run `make demo` and `make test` in a bare Debian 12 (needs root and debootstrap)
	@tests/fresh.sh

clean: ## Remove what was built, and demo/; LibTorch stays in .deps/
	@rm -rf build build-* demo

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@awk '/^# [A-Z_]+=/ { sub(/^# /, "     "); print }' $(firstword $(MAKEFILE_LIST))

.PHONY: build deps deps-test deps-demo deps-bench deps-check test demo bench install format lint test-fresh clean help
.DEFAULT_GOAL := build
