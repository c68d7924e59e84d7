# The recipes of share/noether/recipes, at a size of seconds.
# bats file_tags=torch
bats_require_minimum_version 1.5.0

setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
  local line
  while read -r line; do
    [ -n "$line" ] && echo "$line" || echo '<|endoftext|>'
  done < /usr/share/common-licenses/GPL-3 > corpus.txt
}
recipe() {
  make -f "$BATS_TEST_DIRNAME/../../share/noether/recipes/symmetry-breaking.mk" TEXT=corpus.txt OUT=out VOCAB=300 STEPS=4 SAVE=2 BATCH=2 \
    THREADS=1 MODEL="gpt2 --layers 1 --heads 2 --width 16 --context 16" ACTIVATIONS=gelu "$@"
}

@test "symmetry-breaking: a row for each optimizer and mode, means over seeds; what is done is not done again" {
  recipe out/table.tsv OPTIMIZERS="ecd sgdm" MODES="none qv0" 2> /dev/null
  [ "$(cut -f 1-5 out/table.tsv | tr '\t\n' ' |')" = "optimizer mode activation settings seeds|ecd none gelu  2|ecd qv0 gelu  2|sgdm none gelu  2|sgdm qv0 gelu  2|" ]
  # The mean of two seeds, and half of what lies between them.
  loss() { awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "loss") at = i; next } { print $at }' "out/runs/ecd-none-gelu-$1.loss.tsv"; }
  awk -v a="$(loss 1)" -v b="$(loss 2)" -F '\t' 'function near(x, y) { return x - y < 1e-4 && y - x < 1e-4 }
    NR == 2 { d = a > b ? a - b : b - a; exit !(near($6, (a + b) / 2) && near($7, d / 2)) }' out/table.tsv
  run -0 recipe out/table.tsv OPTIMIZERS="ecd sgdm" MODES="none qv0"
  [[ "$output" == *"up to date"* ]]
  # Puzzles of all, preferences of those that have any.
  recipe out/puzzles.tsv out/alignment.tsv out/correlation.tsv OPTIMIZERS="ecd sgdm" MODES="none qv0" 2> /dev/null
  [ "$(cut -f 1-4 out/puzzles.tsv | tr '\t\n' ' |')" = "optimizer mode activation seeds|ecd none gelu 2|ecd qv0 gelu 2|sgdm none gelu 2|sgdm qv0 gelu 2|" ]
  [ "$(wc -l < out/alignment.tsv)" -eq 5 ]
  [ "$(cut -f 3 out/correlation.tsv | xargs)" = "checkpoints 4 4 4" ]
}

@test "symmetry-breaking: a sweep lists the best first, and a setting of the sweep replaces the usual one" {
  recipe out/sweep.tsv OPTIMIZERS=sgdm MODES=none SEEDS=1 LRS="0.001 0.1" 2> log
  [ "$(wc -l < out/sweep.tsv)" = 3 ]
  [[ "$(sed -n 2p out/sweep.tsv)" == *"lr=0.1"* ]]
  cut -f 6 out/sweep.tsv | sed 1d | sort -gc
}

@test "symmetry-breaking: without a text it says what is missing" {
  run -2 make -f "$BATS_TEST_DIRNAME/../../share/noether/recipes/symmetry-breaking.mk" OUT=out
  [[ "$output" == *"TEXT=FILE: the text to train on"* ]]
}

two_factor() {
  make -s -f "$BATS_TEST_DIRNAME/../../share/noether/recipes/two-factor.mk" OUT=out SIZE=200 STEPS=1000 THREADS=1 "$@"
}

@test "two-factor: every closed form is met within what the measurement may be off" {
  two_factor out/claims.tsv
  # Five standard errors; what has none is a ratio that is still on its way to Feigenbaum's.
  awk -F '\t' 'NR > 1 && $3 != "" { ++n; by = $6 == "" ? 1e-3 : 5 * $6; if ($5 > by || $5 < -by) { print; exit 1 } } END { if (n < 50) exit 1 }' out/claims.tsv
  [ "$(awk -F '\t' '/change the/ { print $4 }' out/claims.tsv)" = 0 ]
  # Where noise is large the balanced line repels; batches of two mend that.
  awk -F '\t' '/nu 1.6 or/ { print ($4 > 0 ? "repels" : "attracts") }' out/claims.tsv | uniq -c | xargs | grep -q '^1 repels .* attracts$'
}

@test "two-factor: figures in the form that is asked for" {
  command -v gnuplot > /dev/null || skip "gnuplot is not here"
  two_factor out/courses.svg out/escape.svg FORM=svg BATCHES="1 4"
  grep -q '</svg>' out/courses.svg
  grep -q '</svg>' out/escape.svg
}

@test "two-factor: a model trained at each step does what the map does; its phases begin where the map's do" {
  command -v gnuplot > /dev/null || skip "gnuplot is not here"
  two_factor out/model.svg out/model/begin-one-factors-catapult.tsv FORM=svg MUS="0.43 0.93 1.13 2.09" MATRIX_MUS=0.03 TRAIN_STEPS=500
  grep -q '</svg>' out/model.svg
  [ "$(awk -F '\t' '$1 == "one" { print $4 }' out/model.tsv | xargs)" = "monotone catapult periodic divergent" ]
  [ "$(awk -F '\t' '$2 == "factors" && $4 == $7 && $5 == $8' out/model.tsv | wc -l)" = 8 ]
  awk '{ d = $1 - (2 * sqrt(2) - 2); exit !(d < 2 * $2 && d > -2 * $2 && $2 < 1e-3) }' out/model/begin-one-factors-catapult.tsv
}

@test "two-factor: of runs with random batches some diverge" {
  two_factor out/model/escapes-1.tsv RUNS=5
  [ "$(cat out/model/escapes-1.tsv)" -ge 2 ] # 92 %
}
