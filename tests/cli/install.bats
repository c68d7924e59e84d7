# An installed noether needs neither the tree that it was built from nor the place that it was installed to.
bats_require_minimum_version 1.5.0

setup_file() {
  export PREFIX=$BATS_FILE_TMPDIR/moved
  cmake --install "$NOETHER_BUILD" --prefix "$BATS_FILE_TMPDIR/prefix" >"$BATS_FILE_TMPDIR/log"
  mv "$BATS_FILE_TMPDIR/prefix" "$PREFIX"
}

setup() { set -o pipefail; cd "$BATS_TEST_TMPDIR"; }

@test "install: programs, pages and shared files are in their places" {
  [ -x "$PREFIX/bin/noether" ]
  [ -x "$PREFIX/libexec/noether/tokenize" ]
  [ -f "$PREFIX/share/noether/plot/loss.gp" ]
  [ -f "$PREFIX/share/noether/puzzles.jsonl" ]
  for page in "$BATS_TEST_DIRNAME"/../../man/*.1; do
    [ -f "$PREFIX/share/man/man1/$(basename "$page")" ]
  done
}

@test "install: all libraries are the system's, or in the prefix" {
  source=$(realpath "$BATS_TEST_DIRNAME/../..")
  for program in "$PREFIX"/bin/noether "$PREFIX"/libexec/noether/*; do
    run -0 ldd "$program"
    [[ "$output" != *"not found"* ]]
    [[ "$output" != *"$source"* ]]
    [[ "$output" != *"$NOETHER_BUILD"* ]]
  done
  # The ways by which they are found are relative.
  paths=$(readelf -d "$PREFIX"/libexec/noether/* | sed -nE 's/.*R(UN)?PATH.*\[(.*)\]/\2/p' | sort -u)
  [ "$paths" = '$ORIGIN/../../lib/noether' ]
}

@test "install: runs from where it was moved to" {
  run -0 env -i PATH=/usr/bin:/bin "$PREFIX/bin/noether" tokenize --help
  [[ "$output" == *"noether tokenize"* ]]
}

@test "install: programs that do not need LibTorch know nothing of it" {
  for program in tokenize init bifurcate; do
    run -0 ldd "$PREFIX/libexec/noether/$program"
    [[ "$output" != *torch* ]]
  done
}

# bats test_tags=torch
@test "install: LibTorch's libraries come along" {
  run -0 ldd "$PREFIX/libexec/noether/train"
  library=$(awk '$1 == "libtorch_cpu.so" { print $3 }' <<<"$output")
  [ "$(realpath "$library")" = "$(realpath "$PREFIX/lib/noether/libtorch_cpu.so")" ]
  run -0 env -i PATH=/usr/bin:/bin "$PREFIX/bin/noether" train --help
}

# bats test_tags=torch
@test "install: the puzzles are found beside the programs" {
  noether() { env -i PATH=/usr/bin:/bin "$PREFIX/bin/noether" "$@"; }
  noether tokenize train -q --vocab-size 300 "$BATS_TEST_DIRNAME/../../LICENSE" > bpe.h5
  noether init gpt2 --layers 1 --heads 1 --width 8 --context 64 -t bpe.h5 > model.h5
  [ "$(noether eval puzzles model.h5 -q | wc -l)" = 29 ]
}
