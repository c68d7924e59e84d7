# Each program's manual page and its --help name the same options: one that is documented exists, one that exists is documented.
bats_require_minimum_version 1.5.0
setup() { set -o pipefail; }
pages=$BATS_TEST_DIRNAME/../../man

# Long options in a page: those that head an entry.
documented() {
  awk '/^\.T[PQ]/ { head = 1; next } head { print; head = 0 }' "$pages/noether-$1.1" | sed 's/\\-/-/g' |
    grep -oE -- '--[a-z][a-z0-9-]*' | sort -u
}

# Long options in the help of a program and of its subcommands: the first column.
offered() {
  local program=$1 subcommand
  shift
  {
    noether "$program" --help
    for subcommand in "$@"; do noether "$program" "$subcommand" --help; done
  } | sed -nE 's/^  +(-.*)/\1/p' | sed 's/  .*//' | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u
}

check() {
  documented "$1" > "$BATS_TEST_TMPDIR/page"
  offered "$@" > "$BATS_TEST_TMPDIR/help"
  [ "$(wc -l < "$BATS_TEST_TMPDIR/help")" -gt 5 ] # or two empty lists would agree
  diff "$BATS_TEST_TMPDIR/page" "$BATS_TEST_TMPDIR/help" ||
    { echo "< in man/noether-$1.1 alone, > in noether $1 --help alone"; return 1; }
}

@test "tokenize: manual page and --help agree" { check tokenize train encode decode show; }
@test "init: manual page and --help agree" { check init; }
@test "bifurcate: manual page and --help agree" { check bifurcate orbit lyapunov phases diagram switching classify basins prompts; }
# bats test_tags=torch
@test "train: manual page and --help agree" { check train; }
# bats test_tags=torch
@test "eval: manual page and --help agree" { check eval loss generate sharpness puzzles choices last-word; }

# bats test_tags=torch
@test "align: manual page and --help agree" { check align tokens positions enrich score compare correlate momentum balance; }

@test "every page has the sections that readers look for" {
  for page in "$pages"/noether-*.1; do
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS "INPUT AND OUTPUT" EXAMPLES "EXIT STATUS" "SEE ALSO"; do
      grep -q "^.SH \"\?$section" "$page" || { echo "$page: no section $section"; return 1; }
    done
  done
}
