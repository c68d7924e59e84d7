# Wrong input, for every program: one line on stderr that names the file, what was expected and what was found; exit status 1; nothing on
# stdout and nothing half-written.
# bats file_tags=torch
bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  yes 'it was the best of times, it was the worst of times' | head -n 200 > text.txt
  noether tokenize train -q --vocab-size 280 text.txt -o bpe.h5 2> /dev/null
  noether tokenize train -q --vocab-size 270 text.txt -o other-bpe.h5 2> /dev/null
  noether tokenize encode -q -t bpe.h5 text.txt -o tokens.h5
  noether tokenize encode -q -t other-bpe.h5 text.txt -o other-tokens.h5
  noether init gpt2 --layers 1 --heads 1 --width 8 --context 16 -t bpe.h5 -o model.h5
  : > empty.h5
  head -c 2000 model.h5 > cut.h5
  head -c 5000 /dev/urandom > garbage.h5
  printf 'PK\003\004 and more' > archive.h5
  echo '{"not": "ours"}' > text.h5
  mkdir -p folder
}
setup() { cd "$BATS_FILE_TMPDIR"; }

# check STATUS MESSAGE PROGRAM ARGUMENTS...: one line, nothing on stdout.
check() {
  local status=$1 message=$2
  shift 2
  run "-$status" --separate-stderr noether "$@"
  [ -z "$output" ] || { echo "on stdout: $output"; return 1; }
  [ "${#stderr_lines[@]}" -eq 1 ] || { echo "not one line: $stderr"; return 1; }
  # shellcheck disable=SC2053 # a pattern
  [[ "$stderr" == "noether $1: "$message ]] || { echo "got: $stderr"; return 1; }
}

# Every program that reads a checkpoint, with FILE in its place.
with_checkpoint() {
  check "$1" "$2" eval loss "$3" tokens.h5
  check "$1" "$2" eval generate "$3" --prompt it
  check "$1" "$2" train "$3" tokens.h5 --steps 1 -o out.h5
  [ ! -e out.h5 ]
}
with_tokens() {
  check "$1" "$2" eval loss model.h5 "$3"
  check "$1" "$2" train model.h5 "$3" --steps 1 -o out.h5
  check "$1" "$2" tokenize decode "$3"
  [ ! -e out.h5 ]
}

@test "a missing file" {
  with_checkpoint 1 "missing.h5: no such file*" missing.h5
  with_tokens 1 "missing.h5: no such file*" missing.h5
  check 1 "missing.h5: no such file*" init gpt2 -t missing.h5
  check 1 "missing.txt: no such file*" tokenize train missing.txt
}

@test "a folder" {
  with_checkpoint 1 "folder: *a folder*" folder
  with_tokens 1 "folder: *a folder*" folder
}

@test "an empty file" {
  with_checkpoint 1 "empty.h5: empty*" empty.h5
  with_tokens 1 "empty.h5: empty*" empty.h5
}

@test "a file cut short" {
  size=$(stat -c %s model.h5)
  with_checkpoint 1 "cut.h5: cut short: expected $size bytes, got 2000" cut.h5
}

@test "garbage, and other formats by their looks" {
  with_checkpoint 1 "garbage.h5: neither HDF5 nor zstd*" garbage.h5
  with_tokens 1 "garbage.h5: neither HDF5 nor zstd*" garbage.h5
  with_checkpoint 1 "archive.h5: neither HDF5 nor zstd (starts with PK: a zip archive*" archive.h5
  with_checkpoint 1 "text.h5: neither HDF5 nor zstd*" text.h5
}

@test "a file of another kind" {
  with_checkpoint 1 "tokens.h5: expected a checkpoint, found a tokens file*" tokens.h5
  with_tokens 1 "model.h5: expected a tokens file, found a checkpoint*" model.h5
}

@test "tokens of another tokenizer" {
  check 1 "other-tokens.h5: *tokenizer*" train model.h5 other-tokens.h5 --steps 1 -o out.h5
  check 1 "other-tokens.h5: *tokenizer*" eval loss model.h5 other-tokens.h5
  [ ! -e out.h5 ]
}

@test "context longer than the data, or than the model's" {
  echo 'it was' | noether tokenize encode -q -t bpe.h5 -o short.h5
  check 1 "short.h5: *" train -q model.h5 short.h5 --steps 1 -o out.h5
  check 2 "--context*" train model.h5 tokens.h5 --steps 1 --context 17 -o out.h5
  [ ! -e out.h5 ]
}

@test "numbers that are none" {
  check 2 "--lr: expected a finite number above 0, found nan" train model.h5 tokens.h5 --steps 1 --lr nan
  check 2 "--lr: expected a finite number above 0, found -1" train model.h5 tokens.h5 --steps 1 --lr=-1
  check 2 "--temperature: expected a finite number*found inf" eval generate model.h5 --temperature inf
}

@test "unknown options and subcommands suggest the nearest" {
  check 2 "unknown option --step (did you mean --steps?)" train model.h5 tokens.h5 --step 1
  check 2 "--lr is given 2 times" train model.h5 tokens.h5 --steps 1 --lr 1 --lr 2
  check 2 "unknown option --promt (did you mean --prompt?)" eval generate model.h5 --promt x
  check 2 "unknown subcommand generat (did you mean generate?)" eval generat
  check 2 "unknown subcommand encod (did you mean encode?)" tokenize encod
  run -2 --separate-stderr noether trian
  [ "$stderr" = "noether: no program trian (did you mean train?)" ]
}

@test "a full disk: said, and nothing is lost" {
  check 1 "/dev/full: no space left on device" train -q model.h5 tokens.h5 --steps 1 -o /dev/full
  check 1 "/dev/full: no space left on device" tokenize encode -q -t bpe.h5 text.txt -o /dev/full
  run -1 --separate-stderr bash -c 'noether eval loss -q model.h5 tokens.h5 > /dev/full'
  [ "$stderr" = "noether eval: stdout: no space left on device" ]
}

@test "a device that is not there" {
  check 1 "--device cuda: *" train model.h5 tokens.h5 --steps 1 --device cuda -o out.h5
}

@test "two programs that write the same file: the last one wins, whole" {
  for seed in 1 2 3 4; do noether init gpt2 --layers 1 --width 64 --vocab-size 5000 --seed $seed -o same.h5 & done
  wait
  run -0 h5dump -n same.h5
  [ "$(ls | grep -c 'same.h5')" -eq 1 ] # and no temporary file is left
}

@test "--help ends with 0 on stdout, whatever else is given" {
  for program in tokenize init train eval; do
    run -0 --separate-stderr noether $program --help
    [[ "$output" == *"Example: noether $program"* ]]
    [ -z "$stderr" ]
  done
}
