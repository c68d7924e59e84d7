#!/bin/bash
# Runs every test of a build and says how many there were: run.sh FOLDER
# GoogleTest under ctest, then BATS on the programs. Both run to the end whatever fails. A build without LibTorch has no train, eval
# and align: the BATS files that say `bats file_tags=torch`, and tests that say `bats test_tags=torch`, are left out then, and that is said.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "$1")
reports=$build/reports
rm -rf "$reports"
mkdir -p "$reports"
status=0

GTEST_OUTPUT="xml:$reports/" ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(nproc)" || status=1

export NOETHER_BUILD=$build
choice=()
if [ ! -x "$build/libexec/noether/train" ]; then
  choice=(--filter-tags '!torch')
  echo "This build has no LibTorch: tests of train, eval and align are left out"
fi
bats "${choice[@]}" --report-formatter tap --output "$reports" tests/cli || status=1

# GoogleTest writes one file an executable, with a line a test; BATS one line a test.
count() { cat "$reports"/*.xml "$reports"/report.tap 2>/dev/null | grep -cE "$1"; }
reasons=$(cat "$reports"/*.xml "$reports"/report.tap 2>/dev/null |
  sed -nE 's/.*<skipped message="[^"]*&#x0A;([^"&]*).*/\1/p; s/^ok .* # skip ?(.*)/\1/p' | sort | uniq -c)
failed=$(cat "$reports"/*.xml 2>/dev/null | sed -nE 's/^<testsuites .*failures="([0-9]+)".*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
failed=$((failed + $(count '^not ok ')))
skipped=$(count '<skipped |^ok .* # skip')
tests=$(count '<testcase .*status="run"|^(not )?ok ')
[ -z "$reasons" ] || echo "$reasons"
echo "$((tests - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] || status=1
exit $status
