# What a user of `noether align` sees.
# bats file_tags=torch
bats_require_minimum_version 1.5.0

# A vocabulary, a text in it, and small models: symmetric, broken, and broken with RoPE; one of them trained a little.
setup_file() {
  set -o pipefail
  cd "$BATS_FILE_TMPDIR"
  for i in $(seq 60); do
    printf 'In the %d. year the king spoke to the people of the land, and They heard him; but he Went away.\n' "$i"
  done > text.txt
  noether tokenize train -q --vocab-size 340 text.txt > bpe.h5
  noether tokenize encode -q --documents line -t bpe.h5 text.txt > tokens.h5
  shape="--layers 2 --heads 4 --width 32 --context 32 -t bpe.h5"
  # shellcheck disable=SC2086 # words
  {
    noether init gpt2 $shape > symmetric.h5
    noether init gpt2 $shape --break qv > start.h5
    noether init llama $shape --kv-heads 2 --break q --seed 4 > rope.h5
    noether init gpt2 $shape --break q --seed 9 > another.h5
  }
  noether train -q start.h5 tokens.h5 --optimizer ecd --f0 0 --steps 6 --batch 4 -o model.h5
}

setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
  ln -s "$BATS_FILE_TMPDIR"/*.h5 .
}

column() { awk -F'\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i; next } { print $at }'; }

@test "tokens: the ends of each head's list, in order, and the same for any number of threads" {
  noether align tokens model.h5 --top 3 > table.tsv
  [ "$(head -1 table.tsv | tr '\t' ' ')" = "layer head end rank id token alignment amplification" ]
  [ "$(wc -l < table.tsv)" -eq $((1 + 2 * 4 * 2 * 3)) ]
  [ "$(column rank < table.tsv | head -6 | xargs)" = "1 2 3 1 2 3" ]
  column alignment < table.tsv | awk 'NR % 6 == 1 { last = $1; next } NR % 6 == 2 || NR % 6 == 3 { if ($1 > last) exit 1; last = $1 }'
  noether align tokens model.h5 --top 3 -j 1 > one.tsv
  noether align tokens model.h5 --top 3 -j 3 > three.tsv
  cmp one.tsv three.tsv
  noether align tokens - --layer 1 --head 2 --top 2 --json < model.h5 > rows.jsonl
  [ "$(wc -l < rows.jsonl)" -eq 4 ]
  [[ "$(head -1 rows.jsonl)" == '{"layer":1,"head":2,"end":"top","rank":1,'* ]]
}

@test "tokens: in a text, with the attention that they get" {
  noether align tokens rope.h5 --text tokens.h5 --limit 500 --layer 0 --head 0 --top 400 --min-count 1 > table.tsv
  # All tokens that occur are in the list: they get all of the attention, and occur 500 times.
  awk -F'\t' '$3 == "top" { attention += $10; even += $11; count += $9 } END { exit !(attention > 0.9999 && attention < 1.0001 && even > 0.9999 && even < 1.0001 && count == 500) }' table.tsv
  run -1 --separate-stderr noether align tokens rope.h5 --text tokens.h5 --limit 20 --min-count 15
  [ "$stderr" = "noether align: tokens.h5: no token occurs 15 times in the 20 that were read" ]
}

@test "a model without biases wants a direction, and takes the mean query or a file" {
  run -1 --separate-stderr noether align tokens symmetric.h5
  [ "$stderr" = "noether align: symmetric.h5: has no symmetry-breaking query bias; give --direction mean-query, or a file of directions" ]
  [ -z "$output" ]
  run -2 --separate-stderr noether align tokens symmetric.h5 --direction mean-query
  [[ "$stderr" == *"--direction mean-query needs --text TOKENS"* ]]
  noether align enrich -q symmetric.h5 --direction mean-query --text tokens.h5 --top 20 --null 2 | grep -c structural > count
  seq 8 > direction
  noether align positions symmetric.h5 --direction direction > table.tsv
  [ "$(wc -l < table.tsv)" -eq 9 ]
  seq 7 > short
  run -1 --separate-stderr noether align positions symmetric.h5 --direction short
  [ "$stderr" = "noether align: short: expected 8 numbers (a direction for all heads), 4 x 8 (one a head) or 2 x 4 x 8 (one a head and layer), found 7" ]
}

@test "positions: a row a head, or a profile a layer" {
  noether align positions rope.h5 --profile > profile.tsv
  [ "$(wc -l < profile.tsv)" -eq $((1 + 2 * 32)) ]
  noether align positions model.h5 | column recency | awk '{ if ($1 < -1 || $1 > 1) exit 1 }'
  # Biases of 0.5 in each of a head's 8 components.
  noether align positions start.h5 | column direction_norm | awk '{ if (($1 - 0.5 * sqrt(8)) ^ 2 > 1e-8) exit 1 }'
}

@test "enrich: counts that are possible, a user's classes, and only what is significant" {
  printf 'royal\t\xe2\x90\xa3king\nroyal\t\xe2\x90\xa3people\n' > classes.tsv
  noether align enrich model.h5 --top 50 --null 3 --classes classes.tsv > table.tsv 2> words
  [ "$(grep -c royal table.tsv)" -eq 16 ]
  awk -F'\t' 'NR > 1 && ($6 > 50 || $6 > $5 || $9 > 1 || $10 < $9 - 1e-9) { exit 1 }' table.tsv
  grep -qE '^align: semantic alignment score -?[0-9.]+ \(standard error [0-9.]+ over 8 heads\)$' words
  noether align enrich -q model.h5 --top 50 --significant 1e-6 | column q | awk '{ if ($1 > 1e-6) exit 1 }'
  printf 'royal king\n' > bad.tsv
  run -1 --separate-stderr noether align enrich model.h5 --classes bad.tsv
  # shellcheck disable=SC2016 # backticks, as they are printed
  [ "$stderr" = 'noether align: bad.tsv:1: expected CLASS, a tab, and a token as `noether tokenize show` shows it' ]
}

@test "score: a row for each checkpoint" {
  noether align score start.h5 model.h5 --top 30 --null 5 > table.tsv
  [ "$(column checkpoint < table.tsv | xargs)" = "start.h5 model.h5" ]
  awk -F'\t' 'NR > 1 { d = $2 - $4 - $5; if (d < -1e-3 || d > 1e-3) exit 1 }' table.tsv # its two parts
}

@test "compare: a checkpoint with itself agrees in everything" {
  noether align compare model.h5 model.h5 --top 5 > table.tsv
  [ "$(column correlation < table.tsv | sort -u)" = 1 ]
  [ "$(column overlap < table.tsv | sort -u)" = 5 ]
  [ "$(column best_a < table.tsv)" = "$(column best_b < table.tsv)" ]
  noether align compare start.h5 model.h5 | column correlation | awk '{ if ($1 >= 1) exit 1 }'
}

@test "correlate: the correlations of the figures that it writes" {
  noether align correlate start.h5 model.h5 rope.h5 another.h5 --valid tokens.h5 --scores scores.tsv --top 30 --null 0 > table.tsv
  [ "$(column x < table.tsv | xargs)" = "alignment_score alignment_score puzzle_loss" ]
  [ "$(column checkpoints < table.tsv | sort -u)" = 4 ]
  awk -F'\t' 'NR > 1 { n++; x += $2; y += $3; xx += $2 * $2; yy += $3 * $3; xy += $2 * $3 }
    END { printf "%.3f\n", (n * xy - x * y) / sqrt((n * xx - x * x) * (n * yy - y * y)) }' scores.tsv > mine
  column pearson < table.tsv | awk 'NR == 1 { printf "%.3f\n", $1 }' | diff - mine
  noether align score model.h5 --top 30 --null 0 | column score > alone
  awk -F'\t' '$1 == "model.h5" { printf "%.4g\n", $2 }' scores.tsv > beside
  awk '{ printf "%.4g\n", $1 }' alone | diff - beside
  run -2 --separate-stderr noether align correlate start.h5 model.h5
  [ -n "$stderr" ]
}

@test "momentum and balance: of each checkpoint of a run" {
  noether train -q start.h5 tokens.h5 --optimizer sgdm --steps 4 --batch 4 --emit-every 2 | noether align momentum - > table.tsv
  [ "$(column step < table.tsv | sort -u | xargs)" = "2 4" ]
  [ "$(wc -l < table.tsv)" -eq $((1 + 2 * 2 * 4)) ]
  noether align balance start.h5 model.h5 > table.tsv
  [ "$(awk -F'\t' '$1 == "start.h5" { print $7 + $8 }' table.tsv | sort -u)" = 0 ]
  awk -F'\t' '$1 == "model.h5" && $7 + $8 == 0 { exit 1 }' table.tsv
  run -1 --separate-stderr noether align momentum start.h5
  [ "$stderr" = "noether align: start.h5: no optimizer state in it, and so no momentum (a fresh checkpoint has none)" ]
}

@test "the numbers of train --record are those of align" {
  noether train -q start.h5 tokens.h5 --optimizer ecd --f0 0 --steps 6 --batch 4 -o again.h5 \
    --record momentum,balance,norms,logits --record-every 3 --record-log record.tsv
  [ "$(head -1 record.tsv | tr '\t' ' ')" = "step quantity layer head value" ]
  [ "$(column step < record.tsv | sort -u | xargs)" = "3 6" ]
  awk -F'\t' '$1 == 6 && $2 == "L_QK" { printf "%.5g\n", $5 }' record.tsv > recorded
  noether align momentum again.h5 | column L_QK | awk '{ printf "%.5g\n", $1 }' | diff - recorded
  awk -F'\t' '$1 == 6 && $2 == "drift_VO" { printf "%.5g\n", $5 }' record.tsv > recorded
  noether align balance start.h5 again.h5 | awk -F'\t' '$1 == "again.h5" { printf "%.5g\n", $8 }' | diff - recorded
}

@test "pictures: a file of the kind that its name says" {
  command -v gnuplot || skip "no gnuplot"
  noether align tokens model.h5 --plot heads.png > /dev/null
  [ "$(head -c 4 heads.png | tail -c 3)" = PNG ]
  [ "$(wc -c < heads.png)" -gt 3000 ]
  noether align positions model.h5 --plot profile.svg > /dev/null
  grep -q 'layer 1' profile.svg
  noether align enrich -q model.h5 --top 20 --plot classes.pdf > /dev/null
  [ "$(head -c 4 classes.pdf)" = %PDF ]
  run -2 --separate-stderr noether align tokens model.h5 --plot heads.jpg
  [ "$stderr" = "noether align: heads.jpg: expected a picture's name, which ends in .png, .svg or .pdf, or -" ]
}

@test "wrong input: one line, and nothing on stdout" {
  run -2 --separate-stderr noether align tokens model.h5 --head 4
  [ "$stderr" = "noether align: --head 4: the heads of model.h5 are 0 to 3" ]
  run -2 --separate-stderr noether align tokens model.h5 --layer 2
  [ "$stderr" = "noether align: --layer 2: the layers of model.h5 are 0 to 1" ]
  run -1 --separate-stderr noether align enrich model.h5 --top 200
  [[ "$stderr" == "noether align: model.h5: --top 200 is more than half of the vocabulary of "* ]]
  noether init gpt2 --layers 2 --heads 4 --width 32 --context 32 -t bpe.h5 --break q --q-mean 0 > zero.h5
  run -1 --separate-stderr noether align tokens zero.h5
  [ "$stderr" = "noether align: zero.h5: the direction of layer 0, head 0 is zero (a bias without a mean prefers nothing)" ]
  run -1 --separate-stderr noether align tokens tokens.h5
  [ "$stderr" = "noether align: tokens.h5: expected a checkpoint, found a tokens file" ]
  run -2 --separate-stderr noether align tokens model.h5 --limit 5
  [ "$stderr" = "noether align: --limit has no effect without --text" ]
  [ -z "$output" ]
}
