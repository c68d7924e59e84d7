# What a user of `noether train` sees.
# bats file_tags=torch
bats_require_minimum_version 1.5.0

# Real text, its tokens, and two small models: made once, for all tests.
setup_file() {
  set -o pipefail
  cd "$BATS_FILE_TMPDIR"
  cp /usr/share/common-licenses/GPL-3 text.txt
  head -c 9000 /usr/share/common-licenses/Apache-2.0 > other.txt
  noether tokenize train --vocab-size 320 text.txt > bpe.h5
  noether tokenize train --vocab-size 300 other.txt > other-bpe.h5
  noether tokenize encode -t bpe.h5 text.txt > tokens.h5
  noether tokenize encode -t bpe.h5 other.txt > valid.h5
  noether tokenize encode -t other-bpe.h5 other.txt > foreign.h5
  printf 'short' | noether tokenize encode -t bpe.h5 - > short.h5
  noether init gpt2 --layers 1 --heads 2 --width 16 --context 16 -t bpe.h5 > start.h5
  noether init gpt2 --layers 1 --heads 2 --width 16 --context 16 -t bpe.h5 --break qv --activation prelu > broken.h5
}

setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
  ln -s "$BATS_FILE_TMPDIR"/*.h5 .
}

train() { noether train -j 1 "$@"; }
digest() { h5dump -a /noether_digest "$1" | grep -o '"[0-9a-f]\{32\}"'; }
# A checkpoint's own account of itself, as JSON.
state() { h5dump -d /training "$1" | sed -n 's/^ *(0): "\(.*\)"$/\1/p'; }
step() { state "$1" | grep -o '"step":[0-9]*' | cut -d: -f2; }
# The column of this name from a table with a header on stdin, without the header.
column() { awk -F'\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i; next } { print $at }'; }

@test "a pipeline trains, and the loss goes down at every checkpoint that it emits" {
  train broken.h5 tokens.h5 --steps 90 --lr 3e-3 --emit-every 30 --no-optimizer-state -q | noether eval loss - valid.h5 -j 1 > rows.tsv
  [ "$(column step < rows.tsv | xargs)" = "30 60 90" ]
  column loss < rows.tsv | awk 'NR > 1 && $1 >= last { exit 1 } { last = $1 }'
}

@test "every optimizer learns, with stdin as the checkpoint and stdout as the output" {
  for options in "adamw --lr 3e-3" "sgdm" "ecd" "ecd --per-tensor --nu 0.05" "ecdsep" "ecdsep --eta 2 --delta-energy 0.5 --nu 0.05" \
    "soap --lr 3e-3" "soap --lr 3e-3 --first-step apply --precondition-vocabulary --precondition-every 3"; do
    train - tokens.h5 --steps 80 --optimizer $options --log log.tsv -q < start.h5 > model.h5
    [ "$(step model.h5)" = 80 ]
    column smoothed_loss < log.tsv | awk 'NR == 1 { first = $1 } END { if ($1 > first - 0.2) exit 1 }'
  done
}

@test "200 steps are 100 + 100, to the bit, whatever is drawn and scheduled" {
  for options in "--optimizer adamw --order shuffle" "--optimizer ecd --nu 0.1 --accumulate 2 --batch 5" "--optimizer sgdm --warmup 150 --clip 1" \
    "--optimizer ecdsep --nu 0.1 --delta-energy 0.2" "--optimizer soap --lr 1e-3 --precondition-every 7"; do
    train broken.h5 tokens.h5 --steps 200 $options -q -o whole.h5
    train broken.h5 tokens.h5 --steps 100 $options -q -o half.h5
    [ "$(digest half.h5)" != "$(digest whole.h5)" ]
    # What was given at first is in the checkpoint.
    train half.h5 tokens.h5 --steps 200 -q -o rest.h5
    [ "$(digest rest.h5)" = "$(digest whole.h5)" ]
  done
}

@test "every part that init can give a model trains, and resumes to the bit" {
  for parts in "--experts 3 --break qv --bias-directions 2" "--experts 4 --experts-per-token 1 --gated-mlp --norm rms" \
    "--qk-norm --break qkv --learned-bias --bias-per head --position rope --rope-fraction 0.5"; do
    noether init gpt2 --layers 2 --heads 2 --width 16 --context 16 -t bpe.h5 $parts -o parts.h5
    train parts.h5 tokens.h5 --steps 60 --lr 3e-3 --log log.tsv -q -o whole.h5
    column smoothed_loss < log.tsv | awk 'NR == 1 { first = $1 } END { if ($1 > first - 0.2) exit 1 }'
    train parts.h5 tokens.h5 --steps 25 --lr 3e-3 -q -o part.h5
    train part.h5 tokens.h5 --steps 60 -q -o rest.h5
    [ "$(digest rest.h5)" = "$(digest whole.h5)" ]
    run -0 noether eval loss whole.h5 valid.h5 -j 1
  done
}

@test "soap turns each expert by itself, and resumes to the bit" {
  noether init gpt2 --layers 1 --heads 2 --width 16 --context 16 -t bpe.h5 --experts 3 -o experts.h5
  train experts.h5 tokens.h5 --steps 30 --optimizer soap --lr 3e-3 -q -o whole.h5
  run -0 h5dump -H -d /optimizer/left/layers/0/mlp/W_up/2 whole.h5
  [[ "$output" == *"( 65, 64 )"* ]] # hidden features
  train experts.h5 tokens.h5 --steps 14 --optimizer soap --lr 3e-3 -q -o part.h5
  train part.h5 tokens.h5 --steps 30 -q -o rest.h5
  [ "$(digest rest.h5)" = "$(digest whole.h5)" ]
}

@test "emitting on the way changes nothing: the last of a stream is the checkpoint that one file would be" {
  options=(--steps 40 --lr 1e-3 --schedule cosine --warmup 5 -q)
  train start.h5 tokens.h5 "${options[@]}" -o whole.h5
  train start.h5 tokens.h5 "${options[@]}" --emit-every 20 | cat > stream
  # HDF5 states its own length, at byte 28.
  length=$(od -An -t u8 -j 28 -N 8 stream | tr -d ' ')
  head -c "$length" stream > middle.h5
  tail -c "+$((length + 1))" stream > last.h5
  [ "$(step middle.h5)" = 20 ]
  [ "$(digest last.h5)" = "$(digest whole.h5)" ]
  # The first of two says that another follows: alone it is half a stream.
  run -1 --separate-stderr train middle.h5 tokens.h5 --steps 40 -q -o rest.h5
  [[ "$stderr" == "noether train: middle.h5"* ]]
}

@test "killed twenty times at random moments, the same line comes to the same bits" {
  train broken.h5 tokens.h5 --steps 240 --optimizer ecd --nu 0.1 --schedule cosine -q -o whole.h5 --log whole.tsv
  line=(broken.h5 tokens.h5 --steps 240 --optimizer ecd --nu 0.1 --schedule cosine --save-every 4 -q -o model.h5 --log log.tsv)
  RANDOM=7
  for kill in $(seq 20); do
    before=$(stat -c %i model.h5 2> /dev/null || true)
    noether train -j 1 "${line[@]}" 3>&- &
    pid=$!
    # Half of them as soon as a save was seen, the others whenever it happens to be.
    if [ $((kill % 2)) = 0 ]; then
      for _ in $(seq 1000); do
        [ "$(stat -c %i model.h5 2> /dev/null || true)" = "$before" ] || break
        sleep 0.01
      done
      sleep "0.0$((RANDOM % 50 + 10))"
    else
      sleep "0.$((RANDOM % 800 + 100))"
    fi
    kill -9 "$pid" 2> /dev/null || true
    wait "$pid" || true
    # The file is whole, whenever the kill came.
    [ ! -e model.h5 ] || h5dump -d /training model.h5 > /dev/null
  done
  train "${line[@]}"
  [ "$(digest model.h5)" = "$(digest whole.h5)" ]
  # The log is the same too, but for the time that it took.
  cmp <(cut -f 1-6 log.tsv) <(cut -f 1-6 whole.tsv)
}

@test "a signal stops it after the step, saves, ends with 75, and the same line goes on" {
  train start.h5 tokens.h5 --steps 20000 -q -o whole.h5 --dry-run > /dev/null # warms the disk's cache
  for signal in TERM INT USR1; do
    rm -f model.h5 log.tsv
    line=(start.h5 tokens.h5 --steps 20000 -o model.h5 --log log.tsv)
    # A background job of a script ignores SIGINT unless told otherwise.
    env --default-signal=INT noether train -j 1 "${line[@]}" 2> messages 3>&- &
    pid=$!
    for _ in $(seq 1000); do
      [ "$(cat log.tsv 2> /dev/null | wc -l)" -lt 5 ] || break
      sleep 0.01
    done
    kill -"$signal" "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" = 75 ]
    at=$(step model.h5)
    [ "$(tail -1 messages)" = "noether train: stopped by SIG$signal at step $at of 20000; saved: the same line goes on from model.h5" ]
    [ "$(tail -1 log.tsv | cut -f 1)" = "$at" ]
  done
  # A shorter run with the constant rate passes the same points: it ends as it would have without the stop.
  short=$((at + 10))
  train start.h5 tokens.h5 --steps "$short" -o model.h5 --log log.tsv 2> messages
  [ "$(head -1 messages)" = "train: model.h5 is at step $at of this run: going on from there" ]
  train start.h5 tokens.h5 --steps "$short" -q -o whole.h5
  [ "$(digest model.h5)" = "$(digest whole.h5)" ]
  cp model.h5 before.h5
  run -0 --separate-stderr train start.h5 tokens.h5 --steps "$short" -o model.h5
  [ "${stderr_lines[1]}" = "train: step $short of $short: already done" ]
  cmp model.h5 before.h5
}

@test "other settings on resume are said; another optimizer begins with a fresh state" {
  train start.h5 tokens.h5 --steps 3 --lr 1e-3 -q -o a.h5
  run -0 --separate-stderr train a.h5 tokens.h5 --steps 5 --lr 1e-4 -o b.h5
  [ "${stderr_lines[0]}" = "train: from step 3 on: --lr 0.0001 (was 0.001)" ]
  run -0 --separate-stderr train a.h5 tokens.h5 --steps 5 --optimizer sgdm -o b.h5
  [[ "${stderr_lines[0]}" == "train: from step 3 on: --optimizer sgdm (was adamw), --lr 0.03 (was 0.001)"* ]]
  [ "${stderr_lines[1]}" = "train: the optimizer was adamw: sgdm begins with a fresh state" ]
  run -0 --separate-stderr train a.h5 tokens.h5 valid.h5 --steps 5 -o b.h5
  [ "${stderr_lines[0]}" = "train: from step 3 on: other token files" ]
  rm b.h5
  train start.h5 tokens.h5 --steps 3 --schedule cosine -q -o a.h5
  run -0 --separate-stderr train a.h5 tokens.h5 --steps 6 -o b.h5
  [ "${stderr_lines[0]}" = "train: from step 3 on: --steps 6 (was 3)" ]
  [[ "${stderr_lines[1]}" == *"learning rate 0.0001 cosine to 0.1 of the rate at step 6" ]]
  train start.h5 tokens.h5 --steps 3 --no-optimizer-state -q > a.h5
  run -0 --separate-stderr train a.h5 tokens.h5 --steps 5 -o b.h5
  [ "${stderr_lines[0]}" = "train: a.h5: no optimizer state in it: adamw begins with a fresh one" ]
  run -0 --separate-stderr train a.h5 tokens.h5 --new-run --steps 2 -o b.h5
  [ "$(step b.h5)" = 2 ]
}

@test "a diverging run ends with 3, names step and tensor, and keeps the last good checkpoint" {
  run -3 --separate-stderr train start.h5 tokens.h5 --optimizer sgdm --lr 1e30 --steps 50 --save-every 1 -q -o model.h5
  [[ "$stderr" =~ ^"noether train: step 2: the loss is nan; the first tensor that is not finite: the gradient of embedding/tokens; model.h5 holds step 1"$ ]]
  [ "$(step model.h5)" = 1 ]
  run -3 --separate-stderr train start.h5 tokens.h5 --optimizer sgdm --lr 1e30 --steps 50 -q -o other.h5
  [[ "$stderr" == *"; nothing had been saved" ]]
  [ ! -e other.h5 ]
}

@test "groups: optimizers by the parameters' names, kept in the checkpoint, resumed" {
  line=(--optimizer ecd --f0 0 --group 'embedding/*:optimizer=adamw,lr=1e-3' --group '*W_up:optimizer=soap' --batch 4)
  run -0 --separate-stderr train start.h5 tokens.h5 "${line[@]}" --steps 6 -o whole.h5
  [[ "$stderr" == *"; embedding/*: adamw, learning rate 0.001; *W_up: soap, learning rate 0.0003"* ]]
  h5dump -n whole.h5 > names
  grep -q /optimizer/second_moment/embedding/tokens names
  [ "$(grep -c /optimizer/second_moment/layers/0/attention names)" -eq 0 ]
  train start.h5 tokens.h5 "${line[@]}" --steps 3 -q -o half.h5
  train half.h5 tokens.h5 --steps 6 -q -o half.h5
  h5diff whole.h5 half.h5 /parameters /parameters
  run -2 --separate-stderr train start.h5 tokens.h5 --group 'embeding/*:lr=1' --steps 1 -o x.h5
  [[ "$stderr" == "noether train: --group embeding/*: no parameter's name matches, or an earlier group has them all"* ]]
  [ ! -e x.h5 ]
}

@test "--f0 auto follows the loss down; a fixed one that is near is said once" {
  run -0 --separate-stderr train start.h5 tokens.h5 --optimizer ecd --f0 auto --f0-fraction 0.1 --lr 3 --steps 40 -v -o auto.h5
  [ "$(grep -cE '^train: step [0-9]+: F0 is [0-9.]+ from here on$' <<< "$stderr")" -ge 2 ]
  [ "$(h5dump -d /training auto.h5 | grep -c floors)" -ge 1 ]
  run --separate-stderr train start.h5 tokens.h5 --optimizer ecd --f0 5 --steps 500 -o near.h5
  [ "$(grep -c 'is near F0 = 5, where steps grow' <<< "$stderr")" -eq 1 ]
}

@test "ECD at its floor ends with 3 and says what to do; what it had come to is saved" {
  run -3 --separate-stderr train start.h5 tokens.h5 --optimizer ecd --f0 5 --steps 500 -q -o model.h5
  [[ "$stderr" =~ ^"noether train: step "([0-9]+)": the loss, "[0-9.]+", has come down to F0 = 5: nothing is left to descend; go on with a smaller --f0; model.h5 holds step "([0-9]+)$ ]]
  [ $((BASH_REMATCH[1] - 1)) = "${BASH_REMATCH[2]}" ]
  at=$(step model.h5)
  train model.h5 tokens.h5 --f0 1 --steps $((at + 3)) -q -o model.h5
  [ "$(step model.h5)" = $((at + 3)) ]
}

@test "a wrong input ends with 1 and one line, before stdin is read, and leaves no output" {
  mkfifo never
  exec 9<> never # a stdin on which nothing ever comes
  check() {
    run -1 --separate-stderr timeout 30 noether train -j 1 "${@:2}" --steps 3 -o out.h5 <&9
    [ -z "$output" ]
    [ "$stderr" = "noether train: $1" ]
    [ ! -e out.h5 ]
  }
  head -c 5000 start.h5 > cut.h5
  check "missing.h5: no such file" - missing.h5
  check "start.h5: expected a tokens file, found a checkpoint" - start.h5
  check "start.h5: expected a tokens file, found a checkpoint" - tokens.h5 --valid start.h5
  check "tokens.h5: expected a checkpoint, found a tokens file" tokens.h5 -
  check "cut.h5: cut short: expected $(stat -Lc %s start.h5) bytes, got 5000" cut.h5 -
  check "short.h5: $(h5dump -H -d /tokens short.h5 | grep -o '( [0-9]* ) /' | tr -dc 0-9) tokens, fewer than the 17 that a context of 16 needs (see --context)" start.h5 short.h5
  digest_of() { h5dump -a /tokenizer/digest "$1" | grep -o '"[0-9a-f]\{32\}"' | tr -d '"'; }
  check "foreign.h5: its tokens were made by tokenizer $(digest_of foreign.h5), start.h5 has $(digest_of start.h5)" start.h5 foreign.h5
  check "--device cuda: this build computes on the CPU only (no CUDA kernels in it)" start.h5 tokens.h5 --device cuda
  exec 9<&-
  run -1 --separate-stderr train - tokens.h5 --steps 3 -o out.h5 < /dev/null
  [ "$stderr" = "noether train: stdin: empty; did the program before this one fail?" ]
}

@test "a misuse ends with 2 and one line that says what to do" {
  check() {
    run -2 --separate-stderr train start.h5 tokens.h5 "${@:2}"
    [ -z "$output" ]
    [ "$stderr" = "noether train: $1" ]
  }
  check "give --steps N: how many steps the run is to have" -o out.h5
  check "unknown option --step (did you mean --steps?)" --step 3
  check "--lr: expected a finite number above 0, found nan" --steps 3 --lr nan
  check "--eta has no effect with --optimizer adamw" --steps 3 --eta 10 -o out.h5
  check "--optimizer: expected adamw, sgdm, ecd, ecdsep, soap, found adam (did you mean adamw?)" --steps 3 --optimizer adam
  check "--weights has no effect with one token file" --steps 3 --weights 1 -o out.h5
  check "--context 17: the model's is 16" --steps 3 --context 17 -o out.h5
  check "--save-every has no effect without -o FILE: there is nothing to replace in stdout" --steps 3 --save-every 1
  check "--emit-every needs a pipe: of several checkpoints in the file out.h5 readers would see the first only" --steps 3 --emit-every 1 -o out.h5
  check "--no-optimizer-state has no effect with -o FILE, which must be able to go on" --steps 3 --no-optimizer-state -o out.h5
  check "--log -: stdout is the checkpoint's; name a file" --steps 3 --log - -o out.h5
  check "--valid-every has no effect without --valid" --steps 3 --valid-every 1
  check "--json has no effect without --dry-run" --steps 3 --json
  check "--device: expected cpu or cuda, found tpu" --steps 3 --device tpu
  run -2 --separate-stderr train - - --steps 3
  [ "$stderr" = "noether train: only one input can be stdin (-)" ]
  train start.h5 tokens.h5 --steps 3 -q -o a.h5
  run -2 --separate-stderr train a.h5 tokens.h5 --steps 2
  [ "$stderr" = "noether train: --steps 2: a.h5 is at step 3 already; --steps counts from the beginning of the run" ]
  run -2 bash -c 'noether train start.h5 tokens.h5 --steps 3 --emit-every 1 > out.h5'
  [[ "$output" == *"needs a pipe"* ]]
}

@test "only a checkpoint is replaced by training, and only a log by a log" {
  cp "$BATS_FILE_TMPDIR/text.txt" essay.txt
  run -1 --separate-stderr train start.h5 tokens.h5 --steps 3 -o essay.txt
  [[ "$stderr" == "noether train: essay.txt: neither HDF5 nor zstd"*"; only a checkpoint is replaced by training: remove it, or name another file with -o" ]]
  run -1 --separate-stderr train start.h5 tokens.h5 --steps 3 --log essay.txt -o out.h5
  [[ "$stderr" == "noether train: essay.txt: not the log of a training run"* ]]
  cmp essay.txt "$BATS_FILE_TMPDIR/text.txt"
  train start.h5 tokens.h5 --steps 3 -q -o model.h5
  run -0 --separate-stderr train start.h5 tokens.h5 --steps 3 --lr 1 -o model.h5
  [ "${stderr_lines[0]}" = "train: model.h5 holds something else, not a step of this run: it will be replaced" ]
}

@test "outputs: a FIFO, a full disk, a missing folder, a reader that is gone, a terminal" {
  mkfifo pipe
  cat pipe > through.h5 3>&- &
  train start.h5 tokens.h5 --steps 3 -q -o pipe
  wait
  [ "$(step through.h5)" = 3 ]
  run -1 --separate-stderr train start.h5 tokens.h5 --steps 3 -q -o /dev/full
  [ "$stderr" = "noether train: /dev/full: no space left on device" ]
  run -1 bash -c 'noether train -j 1 start.h5 tokens.h5 --steps 3 -q > /dev/full'
  run -1 --separate-stderr train start.h5 tokens.h5 --steps 3 -q -o missing/model.h5
  [[ "$stderr" == "noether train: missing/model.h5: no such "* ]]
  run -0 bash -c 'noether train -j 1 start.h5 tokens.h5 --steps 20000 -q 2> messages | true; echo ${PIPESTATUS[0]}'
  [ "$output" = 1 ]
  [[ "$(cat messages)" =~ ^"noether train: stdout: nobody reads it any more: stopped at step "[0-9]+" of 20000, nothing was saved (-o FILE with --save-every would)"$ ]]
  run -2 script -qec 'noether train start.h5 tokens.h5 --steps 3' /dev/null
  [[ "$output" == *"stdout is a terminal"* ]]
}

@test "--valid measures at its steps and at the end; the log has a row for each step" {
  train start.h5 tokens.h5 --steps 5 --valid valid.h5 --valid-every 2 --log log.tsv -o model.h5 2> messages
  [ "$(column step < log.tsv | xargs)" = "1 2 3 4 5" ]
  [ "$(column tokens < log.tsv | xargs)" = "128 256 384 512 640" ]
  [ "$(awk -F'\t' 'NR > 1 && $9 != "" { print $1 }' log.tsv | xargs)" = "2 4 5" ]
  [ "$(grep -c 'validation loss' messages)" = 3 ]
  # What eval says of it: valid.h5 is short enough to be validated whole, but for the rest after the last window.
  noether eval loss model.h5 valid.h5 --prefix none -j 1 | column loss > evaluated
  awk -v ours="$(tail -1 log.tsv | cut -f 9)" '{ d = ours - $1; if (d < -0.02 || d > 0.02) exit 1 }' evaluated
  run -0 h5dump -d /history/loss model.h5
  [[ "$output" == *"( 5 ) / ( 5 )"* ]]
}

@test "several token files with weights; a shuffled pass counts every token once" {
  train start.h5 tokens.h5 valid.h5 --weights 0.7,0.3 --order shuffle --steps 4 -q -o a.h5
  # As many windows as make one pass: every token but the first of the file has been predicted once.
  tokens=$(h5dump -H -d /tokens valid.h5 | grep -o '( [0-9]* ) /' | tr -dc 0-9)
  windows=$(((tokens - 1 + 15) / 16))
  train start.h5 valid.h5 --order shuffle --batch "$windows" --steps 1 -q -o b.h5
  [[ "$(state b.h5)" == *"\"tokens\":$((tokens - 1)),"* ]]
}

@test "words go to stderr, a line at a time where it is no terminal; -q says nothing" {
  train start.h5 tokens.h5 --steps 3 > model.h5 2> messages
  [[ "$(head -1 messages)" == "train: gpt2, "*" parameters, steps 0 to 3, 8 x 16 tokens each, adamw, learning rate 0.0001 constant" ]]
  [[ "$(tail -1 messages)" =~ ^"train: step 3/3  loss "[0-9.]+"  "[0-9.k]+" tokens/s"$ ]]
  [ -z "$(tr -dc '\r' < messages)" ]
  train start.h5 tokens.h5 --steps 3 -q -o quiet.h5 2> messages
  [ ! -s messages ]
  run -0 script -qec 'noether train -j 1 start.h5 tokens.h5 --steps 3 -o terminal.h5' /dev/null
  [[ "$output" == *$'\r'"train: step 3/3  loss "* ]]
}

@test "--dry-run says what it would take, and writes nothing" {
  run -0 --separate-stderr train start.h5 tokens.h5 --steps 1000 --dry-run -o model.h5 --log log.tsv
  [ "${lines[0]}" = $'quantity\tvalue\tunit' ]
  [ "${lines[2]}" = $'steps\t1000\t' ]
  [[ "$output" == *$'\nduration\t'*$'\tseconds: '* ]]
  [[ "$output" == *$'\noptimizer state a parameter\t8\tbytes'* ]]
  run -0 --separate-stderr train start.h5 tokens.h5 --steps 1000 --dry-run --optimizer ecd
  [[ "$output" == *$'\noptimizer state a parameter\t4\tbytes'* ]]
  [ ! -e model.h5 ] && [ ! -e log.tsv ]
  # soap: two numbers a parameter, and n (n + 1) for each side but the vocabulary's: 8 sides of 16 (2 of them the positions'), 2 of 16 and 2 of 64
  # in the MLP, the embedding's 16.
  run -0 --separate-stderr train start.h5 tokens.h5 --steps 1000 --dry-run --optimizer soap
  parameters=$(awk '$1 == "parameters" { print $2 }' <<< "$output")
  bytes=$((8 * parameters + 4 * ((8 + 2 + 2 + 1) * 16 * 17 + 2 * 64 * 65)))
  [[ "$output" == *$'\noptimizer state\t'"$bytes"$'\tbytes'* ]]
  run -0 --separate-stderr train start.h5 tokens.h5 --steps 1000 --dry-run --json
  [[ "${lines[1]}" == '{"quantity":"steps","value":1000,'* ]]
}

@test "its record says what it was made from; h5dump opens it" {
  train start.h5 tokens.h5 --steps 3 -q -o model.h5 --seed 5
  run -0 h5dump -d /provenance model.h5
  [[ "$output" == *'"tool":"train"'*'"seed":5'* ]]
  [[ "$output" == *"$(digest start.h5 | tr -d '"')"* ]]
  run -0 h5dump -n model.h5
  [[ "$output" == *"/optimizer/second_moment/embedding/tokens"* ]]
}

@test "--loss-on completion: learns to answer, and goes on to the same bits" {
  printf '{"prompt": "The answer of %s is", "completion": " %s"}\n' one blue two red three green > answers.jsonl
  printf '{"kind": "answer", "prompt": "The answer of %s is", "expected": " %s"}\n' one blue two red three green > puzzles.jsonl
  noether init gpt2 --layers 1 --heads 2 --width 32 --context 32 -t bpe.h5 > fresh.h5
  line=(fresh.h5 answers.jsonl --loss-on completion --batch 3 --order shuffle --lr 1e-2)
  train "${line[@]}" --steps 80 --log log.tsv --valid answers.jsonl -q -o model.h5
  column loss < log.tsv | sed -n '1p;$p' | awk 'NR == 1 { first = $1 } END { if ($1 > first / 20) exit 1 }'
  column valid_loss < log.tsv | tail -1 | awk '{ if ($1 > 0.2) exit 1 }'
  [ "$(noether eval puzzles model.h5 puzzles.jsonl -q | column top1 | sort -u)" = 1 ]
  noether eval generate model.h5 --prompt 'The answer of two is' --temperature 0 --tokens 12 > text
  [ "$(cat text)" = "The answer of two is red" ] # and there it ends
  train "${line[@]}" --steps 30 -q -o half.h5
  train "${line[@]}" --steps 80 -q -o half.h5
  [ "$(digest half.h5)" = "$(digest model.h5)" ]
  train fresh.h5 - --loss-on completion --batch 3 --order shuffle --lr 1e-2 --steps 80 -q -o piped.h5 < answers.jsonl
  [ "$(digest piped.h5)" = "$(digest model.h5)" ]
  run -0 --separate-stderr train "${line[@]}" --steps 80 --dry-run
  [[ "$output" == *$'\nwindows in the data\t3\t'* ]]
}

@test "--loss-on completion: what does not fit is said with its line" {
  check() {
    run "-$1" --separate-stderr train "${@:3}" --steps 2 -o model.h5
    [[ "$stderr" == "noether train: "$2 ]]
    [ ! -e model.h5 ]
  }
  long=$(seq -s ' ' 30)
  printf '%s\n' '{"prompt": "a", "completion": "b"}' "{\"prompt\": \"$long\", \"completion\": \" b\"}" > prompts.jsonl
  printf '\n%s\n' "{\"prompt\": \"a\", \"completion\": \"$long\"}" > completions.jsonl
  printf '%s\n' '{"prompt": "a", "completion": "b"}' '{"prompt": "a"}' > wrong.jsonl
  run -0 --separate-stderr train start.h5 prompts.jsonl --loss-on completion --steps 2 -o told.h5
  [ "${stderr_lines[0]}" = "train: prompts.jsonl: 1 of 2 examples are longer than the context of 16, that of line 2 first: the beginnings of their prompts are left out" ]
  check 1 "completions.jsonl:2: a completion of * tokens is longer than the context of 16" start.h5 completions.jsonl --loss-on completion
  check 1 "wrong.jsonl:2: no field completion (found: prompt)" start.h5 wrong.jsonl --loss-on completion
  check 1 "tokens.h5: expected text, found an HDF5 file" start.h5 tokens.h5 --loss-on completion
  check 1 "prompts.jsonl: neither HDF5 nor zstd*" start.h5 prompts.jsonl
  check 1 "none.jsonl: no such file" start.h5 none.jsonl --loss-on completion
  check 2 "--loss-on: expected all, completion, found prompt" start.h5 prompts.jsonl --loss-on prompt
  noether init gpt2 --layers 1 --heads 1 --width 8 --context 8 --vocab-size 64 > mute.h5
  check 1 "mute.h5: it has no tokenizer to read prompts.jsonl with" mute.h5 prompts.jsonl --loss-on completion
}

@test "--help teaches with an example" {
  run -0 --separate-stderr noether train --help
  [[ "$output" == *"Example: noether train start.h5"* ]]
  [ -z "$stderr" ]
}
