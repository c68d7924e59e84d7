#!/bin/bash
# Layout, likely bugs, scripts and man pages, each by its own tool: lint.sh FOLDER, a build whose compile_commands.json is read
# clang-tidy sees the rooms and programs without LibTorch: a file with LibTorch's headers takes it minutes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "$1")
status=0
fail() {
  echo "lint: $1" >&2
  status=1
}

echo "Layout (clang-format)"
git ls-files -z -- '*.h' '*.cpp' | xargs -0 -r clang-format --dry-run -Werror || fail "make format lays the files above out"

echo "Sources (clang-tidy)"
# The compiler's own options are not all clang's.
run-clang-tidy -quiet -p "$build" -j "$(nproc)" -extra-arg=-Wno-unknown-warning-option "^$PWD/(lib/(base|store|text|formats|architecture|maps|plot|regression)/|tools/((noether|common|tokenize|init|bifurcate)\.cpp|bifurcate/))" \
  2>/dev/null | sed 's/\x1b\[[0-9;]*m//g' >"$build/tidy.log" || { grep -E 'error:|warning:' "$build/tidy.log" | sort -u; fail "clang-tidy, in full in $build/tidy.log"; }

echo "Scripts (shellcheck)"
git grep -lzE '^#!/bin/(ba)?sh|^#!/usr/bin/env bash' -- ':!*.md' | xargs -0 -r shellcheck || fail "shellcheck"
git ls-files -z -- '*.bash' | xargs -0 -r shellcheck --shell=bash || fail "shellcheck"

echo "Man pages (mandoc)"
git ls-files -z -- 'man/*.[1-8]' | xargs -0 -r mandoc -T lint -W warning || fail "mandoc"

[ $status -ne 0 ] || echo "Nothing to say"
exit $status
