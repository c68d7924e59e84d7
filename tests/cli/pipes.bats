# The programs together, through real pipes on small real text: noether's own manual pages and notes.
# bats file_tags=torch
bats_require_minimum_version 1.5.0

setup_file() {
  set -o pipefail
  cd "$BATS_FILE_TMPDIR"
  for page in "$BATS_TEST_DIRNAME"/../../man/*.[157] "$BATS_TEST_DIRNAME"/../../lib/README.md; do
    cat "$page"
    echo '<|endoftext|>'
  done > text.txt
  noether tokenize train -q --vocab-size 320 text.txt -o bpe.h5
  noether tokenize encode -q -t bpe.h5 --split 0.8 text.txt -o train.h5 --valid-output valid.h5
}
setup() {
  set -o pipefail
  cd "$BATS_FILE_TMPDIR"
  export SOURCE_DATE_EPOCH=0
}
small=(--layers 1 --heads 2 --width 32 --context 32)

loss_of() { # of the last row of a table of eval
  awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") column = i } END { print $column }'
}

@test "a whole experiment is one line, and the model learns" {
  noether init gpt2 "${small[@]}" -t bpe.h5 > start.h5
  before=$(noether eval loss start.h5 valid.h5 | loss_of)
  after=$(noether init gpt2 "${small[@]}" -t bpe.h5 |
    noether train -q - train.h5 --optimizer adamw --lr 3e-3 --steps 60 --batch 8 | noether eval loss - valid.h5 | loss_of)
  # A fresh model is near ln 320 = 5.77; sixty steps find at least how frequent the tokens are.
  awk -v before="$before" -v after="$after" 'BEGIN { exit !(before > 5.6 && before < 5.9 && after < before - 0.5) }'
}

@test "files and pipes carry the same bytes" {
  noether init gpt2 "${small[@]}" -t bpe.h5 -o a.h5
  noether train -q a.h5 train.h5 --steps 3 --batch 2 -o b.h5
  noether train -q - train.h5 --steps 3 --batch 2 < a.h5 > c.h5
  noether train -q <(cat a.h5) train.h5 --steps 3 --batch 2 > d.h5
  mkfifo e
  cat a.h5 > e &
  noether train -q e train.h5 --steps 3 --batch 2 | cat > e.h5
  digest() { h5dump -a /noether_digest "$1" | grep -o '"[0-9a-f]\{32\}"'; }
  for file in c d e; do [ "$(digest b.h5)" = "$(digest $file.h5)" ]; done
}

@test "zstd frames pass through every stage" {
  noether init gpt2 "${small[@]}" -t bpe.h5 -z | noether train -q - train.h5 --steps 2 --batch 2 -z |
    noether eval loss -q - valid.h5 > rows.tsv
  [ "$(wc -l < rows.tsv)" -eq 2 ]
  zstd -q -c train.h5 > train.h5.zst
  noether init gpt2 "${small[@]}" -t bpe.h5 | noether train -q - train.h5.zst --steps 2 --batch 2 | noether eval loss -q - valid.h5 > again.tsv
  cut -f 1-9 rows.tsv | tail -n 1 > one
  cut -f 1-9 again.tsv | tail -n 1 > other
  cmp one other
}

@test "checkpoints of a run come one after another, and each gets its row" {
  noether init gpt2 "${small[@]}" -t bpe.h5 | noether train -q - train.h5 --steps 6 --batch 2 --emit-every 2 |
    noether eval loss -q - valid.h5 > rows.tsv
  [ "$(awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "step") c = i } NR > 1 { print $c }' rows.tsv | paste -sd,)" = 2,4,6 ]
}

@test "several checkpoints into a file are refused: readers would see the first only" {
  noether init gpt2 "${small[@]}" -t bpe.h5 -o start.h5
  run -2 --separate-stderr noether train start.h5 train.h5 --steps 4 --emit-every 2 -o out.h5
  [[ "$stderr" == *"--emit-every needs a pipe"* ]]
  [ ! -e out.h5 ]
}

@test "a failure travels down the pipe even without pipefail" {
  set +o pipefail
  run -1 --separate-stderr bash -c 'noether init gpt3 2> first | noether train - train.h5 --steps 2 2> second | noether eval loss - valid.h5'
  [[ "$stderr" == "noether eval: stdin: empty; did the program before this one fail?" ]]
  [[ "$(cat second)" == "noether train: stdin: empty; did the program before this one fail?" ]]
}

@test "a stream that is cut short is an error with both lengths, wherever it is cut" {
  noether init gpt2 "${small[@]}" -t bpe.h5 -o start.h5
  size=$(stat -c %s start.h5)
  for length in 1 7 8 20 47 48 100 1000 50000 $((size - 1)); do
    head -c $length start.h5 > cut.h5
    run -1 --separate-stderr bash -c 'noether eval loss - valid.h5 < cut.h5'
    [ -z "$output" ]
    [[ "$stderr" =~ ^"noether eval: stdin: " ]]
    [ "$length" -lt 48 ] || [ "$stderr" = "noether eval: stdin: cut short: expected $size bytes, got $length" ]
    run -1 --separate-stderr noether eval loss cut.h5 valid.h5
    [ "$length" -lt 48 ] || [ "$stderr" = "noether eval: cut.h5: cut short: expected $size bytes, got $length" ]
  done
}

@test "a stream that ends between two checkpoints is an error too" {
  noether init gpt2 "${small[@]}" -t bpe.h5 -o start.h5
  # What arrives before the writer dies: the first of three checkpoints, whole.
  noether train -q start.h5 train.h5 --steps 3 --batch 2 --emit-every 1 | cat > all.h5
  length=$(python3 -c 'import sys; print(int.from_bytes(open("all.h5", "rb").read(36)[28:36], "little"))' 2>/dev/null ||
    od -A n -t u8 -j 28 -N 8 all.h5 | tr -d ' ')
  run -1 --separate-stderr bash -c "head -c $length all.h5 | noether eval loss - valid.h5"
  [[ "$stderr" == "noether eval: stdin: "* ]]
}

@test "a wrong named input stops a pipeline before the work" {
  run -1 --separate-stderr bash -c 'noether init gpt2 -t bpe.h5 2> /dev/null | noether eval loss - missing.h5'
  [ "$stderr" = "noether eval: missing.h5: no such file" ]
}

@test "a reader that dies is noticed at the next step" {
  noether init gpt2 "${small[@]}" -t bpe.h5 -o start.h5
  run -1 --separate-stderr bash -c 'set -o pipefail; noether train start.h5 train.h5 --steps 100000 --batch 2 | true'
  [[ "$stderr" == *"noether train: stdout: nobody reads it any more: stopped at step "* ]]
}

@test "a closed pipe ends a program silently, as all of Unix" {
  for _ in $(seq 50); do cat text.txt; done | noether tokenize encode -q -t bpe.h5 -o long.h5 # more than a pipe holds
  run -141 --separate-stderr bash -c 'set -o pipefail; noether tokenize decode long.h5 | head -c 10 > /dev/null'
  [ -z "$stderr" ]
}

@test "a checkpoint needs nothing else to write text" {
  run -0 --separate-stderr noether init gpt2 "${small[@]}" -t bpe.h5 -o alone.h5
  mkdir -p elsewhere && cp alone.h5 elsewhere && cd elsewhere
  run -0 --separate-stderr noether eval generate alone.h5 --prompt "The program" --tokens 5
  [[ "$output" == "The program"* ]]
}
