# What a user of `noether tokenize` sees.
bats_require_minimum_version 1.5.0
setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
  export SOURCE_DATE_EPOCH=0
  printf 'The cat sat on the mat.\nThe cat sat.\n<|endoftext|>\nA second text, with the cat.\n<|endoftext|>\n\nIt'"'"'s the third \xff one\n' >text
}
digest() { h5dump -a /noether_digest "$1" | grep -o '"[0-9a-f]\{32\}"'; }

@test "text to a tokenizer, to tokens and back, through pipes and files, byte for byte" {
  noether tokenize train --vocab-size 300 text >bpe.h5
  noether tokenize encode -t bpe.h5 text >tokens.h5
  noether tokenize decode tokens.h5 | cmp - text
  noether tokenize encode -t bpe.h5 <text | noether tokenize decode | cmp - text
  noether tokenize encode -t tokens.h5 -z3 text | noether tokenize decode -o back
  cmp back text
  run -0 h5dump -H -d /tokens tokens.h5
  [[ "$output" == *H5T_STD_U16LE* ]]
  run -0 h5dump -d /documents tokens.h5
  [[ "$output" == *"( 4 ) / ( 4 )"* ]]
}

@test "texts that begin, end and are filled with separators come back as they were" {
  noether tokenize train --vocab-size 257 text -o bpe.h5
  for text in '<|endoftext|>\n' '<|endoftext|>\n<|endoftext|>\n\n<|endoftext|>\n\n\n<|endoftext|>\nx' 'a\n<|endoftext|>\n' \
    'a <|endoftext|>\n<|endoftext|> \n' 'a\r\n<|endoftext|>\r\nb' '\n' '\0\n'; do
    printf "$text" >odd
    noether tokenize encode -q -t bpe.h5 odd | noether tokenize decode | cmp - odd
  done
}

@test "the same tokenizer from a file, stdin and zstd, on any number of threads" {
  zstd -q text -o text.zst
  noether tokenize train --vocab-size 300 text -o a.h5
  noether tokenize train --vocab-size 300 <text >b.h5
  noether tokenize train --vocab-size 300 -j 3 text.zst -o c.h5
  [ "$(digest a.h5)" = "$(digest b.h5)" ]
  [ "$(digest a.h5)" = "$(digest c.h5)" ]
  noether tokenize train --vocab-size 300 --pre-tokenizer llama3 text -o d.h5
  [ "$(digest a.h5)" != "$(digest d.h5)" ]
  cp a.h5 first.h5
  noether tokenize train --vocab-size 300 text -o a.h5
  cmp a.h5 first.h5
}

@test "tokens are the same on 1 and on 3 threads" {
  for i in {1..3000}; do cat text; printf '<|endoftext|>\n'; done >long
  noether tokenize train --vocab-size 300 long -o bpe.h5
  noether tokenize encode -q -j 1 -t bpe.h5 long -o a.h5
  noether tokenize encode -q -j 3 -t bpe.h5 long -o b.h5
  [ "$(digest a.h5)" = "$(digest b.h5)" ]
  noether tokenize decode b.h5 | cmp - long
}

@test "a text too small for the vocabulary: it is smaller, and this is said" {
  run -0 --separate-stderr noether tokenize train --vocab-size 4096 text -o bpe.h5
  [[ "$stderr" =~ ^"tokenize: the vocabulary is "[0-9]+", not 4096: no pair of tokens is left that occurs twice"$ ]]
}

@test "--ids prints a document a line, and decode reads that" {
  noether tokenize train --vocab-size 257 text -o bpe.h5
  printf 'ab\n<|endoftext|>\n<|endoftext|>\nc' >small
  run -0 --separate-stderr noether tokenize encode -t bpe.h5 --ids small
  [ "$output" = $'97 98\n\n99' ]
  [ -z "$stderr" ]
  noether tokenize encode -t bpe.h5 --ids small | noether tokenize decode --ids -t bpe.h5 | cmp - small
  noether tokenize encode -t bpe.h5 --ids text | noether tokenize decode --ids -t bpe.h5 | cmp - text
  run -0 --separate-stderr noether tokenize encode -t bpe.h5 --ids --one-document small
  [ "${#lines[@]}" -eq 1 ]
}

@test "documents as lines, files and JSON" {
  noether tokenize train --vocab-size 257 text -o bpe.h5
  printf 'a\n\nb' >x
  printf '{"text": "c\\nd", "id": 1}\n{"text": "", "body": "e"}\n' >y
  run -0 noether tokenize encode -t bpe.h5 --ids --documents line x
  [ "$output" = $'97\n\n98' ]
  run -0 noether tokenize encode -t bpe.h5 --ids --documents file x x
  [ "$output" = $'97 10 10 98\n97 10 10 98' ]
  run -0 noether tokenize encode -t bpe.h5 --ids --documents jsonl y
  [ "${lines[0]}" = '99 10 100' ]
  run -1 --separate-stderr noether tokenize encode -t bpe.h5 --ids --field body y
  [ "$stderr" = "noether tokenize: y:1: no field body (found: text, id)" ]
  noether tokenize encode -q -t bpe.h5 --documents line x | noether tokenize decode --documents line >back
  [ "$(cat back)" = "$(cat x)" ]
  run -0 noether tokenize encode -t bpe.h5 --ids --separator b x
  [ "$output" = '97 10' ]
}

@test "special spellings are plain text unless asked for" {
  noether tokenize train --vocab-size 258 --special '<|user|>' text -o bpe.h5
  run -0 noether tokenize encode -t bpe.h5 --ids --special <<<'<|user|>a<|endoftext|>'
  [ "$output" = "257 97 256 10" ]
  run -0 noether tokenize encode -t bpe.h5 --ids <<<'<|user|>'
  [ "$output" = "60 124 117 115 101 114 124 62 10" ]
}

@test "--split holds out whole documents, the same ones for the same seed" {
  for i in {1..200}; do printf 'document %s\n<|endoftext|>\n' "$i"; done >many
  noether tokenize train --vocab-size 270 many -o bpe.h5
  noether tokenize encode -t bpe.h5 --split 0.9 many -o train.h5 --valid-output valid.h5
  noether tokenize decode train.h5 >train
  noether tokenize decode valid.h5 >valid
  sort <(grep document train valid -h) | cmp - <(grep document many | sort)
  held=$(grep -c document valid)
  [ "$held" -ge 8 ]   # 20 expected, of a binomial with a deviation of 4.2
  [ "$held" -le 32 ]
  noether tokenize encode -q -j 3 -t bpe.h5 --split 0.9 many -o again.h5 --valid-output valid2.h5
  [ "$(digest valid.h5)" = "$(digest valid2.h5)" ]
  noether tokenize encode -q -t bpe.h5 --split 0.9 --seed 1 many -o again.h5 --valid-output valid3.h5
  [ "$(digest valid.h5)" != "$(digest valid3.h5)" ]
  run -1 --separate-stderr noether tokenize encode -t bpe.h5 --split 0.9 text -o none.h5 --valid-output none2.h5
  [[ "$stderr" == "noether tokenize: all 3 documents went to --"* ]]
  [ ! -e none.h5 ] && [ ! -e none2.h5 ]
}

@test "show: the vocabulary, and the way a text is cut" {
  noether tokenize train --vocab-size 258 text -o bpe.h5
  run -0 --separate-stderr noether tokenize show bpe.h5
  [ "${#lines[@]}" -eq 259 ]
  [ "${lines[0]}" = $'id\tkind\ttoken\thex\tleft\tright' ]
  [ "${lines[11]}" = $'10\tbyte\t\\n\t0a\t\t' ]
  [ "${lines[257]}" = $'256\tmerge\tat\t6174\t97\t116' ]
  [ "${lines[258]}" = $'257\tspecial\t<|endoftext|>\t3c7c656e646f66746578747c3e\t\t' ]
  [[ "$stderr" == "tokenize: 258 tokens, 1 merges, 1 special; cut as by gpt2; digest "* ]]
  run -0 --separate-stderr noether tokenize show bpe.h5 --text 'a cat' --json
  [ "${lines[2]}" = '{"byte":2,"begins":"","id":99,"token":"c","hex":"63"}' ]
  [ "${lines[3]}" = '{"byte":3,"begins":"","id":256,"token":"at","hex":"6174"}' ]
}

@test "provenance names each step and its inputs" {
  noether tokenize train --vocab-size 257 text -o bpe.h5
  noether tokenize encode -q -t bpe.h5 text -o tokens.h5
  run -0 h5dump -d /provenance tokens.h5
  [[ "$output" == *'"arguments":["train","--vocab-size","257","text"'* ]]
  [[ "$output" == *'"kind":"tokenizer"'* ]]
}

@test "a megabyte of one character, of blanks and of joiners is encoded, and comes back" {
  noether tokenize train --vocab-size 300 text -o bpe.h5
  for unit in 'a' ' ' '\n' '^' '\xe2\x80\x8d'; do
    printf "$unit%.0s" {1..100000} >run
    for i in {1..10}; do cat run; done >hostile
    noether tokenize encode -q -t bpe.h5 --one-document hostile | noether tokenize decode | cmp - hostile
  done
}

@test "a misuse ends with 2 and one line that says what to do" {
  noether tokenize train --vocab-size 257 text -o bpe.h5
  check() {
    run -2 --separate-stderr noether tokenize "${@:2}"
    [ -z "$output" ]
    [ "$stderr" = "noether tokenize: $1" ]
  }
  check "unknown subcommand encod (did you mean encode?)" encod
  check "expected a subcommand: train, encode, decode or show"
  check "unknown option --vocabsize (did you mean --vocab-size?)" train --vocabsize 300 text
  check "--separator has no effect with --documents line" train --documents line --separator x text
  check "--field has no effect with --documents file" train --documents file --field x text
  check "--documents has no effect with --one-document" encode -t bpe.h5 --one-document --documents line text
  check "--split needs --valid-output" encode -t bpe.h5 --split 0.5 text
  check "--seed has no effect without --split" encode -t bpe.h5 --seed 3 text
  check "--zstd has no effect with --ids" encode -t bpe.h5 --ids -z3 text
  check "the tokenizer and the text cannot both be stdin" encode -t - -
  check "stdin (-) can be read only once" train - -
  check "-t has no effect without --ids: tokens carry their tokenizer" decode -t bpe.h5 tokens.h5
  check "--special has no effect without --text" show bpe.h5 --special
  check "special tokens must be different, and not empty" train --special '<|endoftext|>' text
}

@test "wrong input ends with 1 and one line that names the file, and nothing is left behind" {
  noether tokenize train --vocab-size 257 text -o bpe.h5
  : >empty
  head -c 300 bpe.h5 >cut.h5
  printf '\x1f\x8b\x08' >gz
  check() {
    run -1 --separate-stderr noether tokenize "${@:2}" -o out
    [ -z "$output" ]
    [ "$stderr" = "noether tokenize: $1" ]
    [ ! -e out ]
  }
  check "none: no such file" train text none
  check "empty: empty" train text empty
  check ".: is a folder" train .
  check "bpe.h5: expected text, found an HDF5 file" train bpe.h5
  check "gz: expected text, plain or in zstd, found gzip: zcat unpacks it" train gz
  check "none.h5: no such file" encode -t none.h5 text
  check "bpe.h5: expected a tokens file, found a tokenizer" decode bpe.h5
  check "stdin:2: expected a token id, found x" decode --ids -t bpe.h5 < <(printf '1\n2 x\n')
  check "stdin:1: token 257 is beyond the vocabulary of 257" decode --ids -t bpe.h5 < <(echo 257)
  run -1 --separate-stderr noether tokenize encode -t cut.h5 text
  [[ "$stderr" == "noether tokenize: cut.h5: cut short: "* ]]
  run -1 --separate-stderr bash -c 'true | noether tokenize train'
  [ "$stderr" = "noether tokenize: stdin: empty; did the program before this one fail?" ]
  run -1 --separate-stderr noether tokenize train text -o nowhere/bpe.h5
  [[ "$stderr" == "noether tokenize: nowhere/bpe.h5: "* ]]
}

@test "/dev/full, /dev/null, a FIFO, a closed pipe, a terminal" {
  noether tokenize train --vocab-size 300 text -o bpe.h5
  noether tokenize encode -q -t bpe.h5 text -o tokens.h5
  for line in 'train --vocab-size 300 text' 'encode -t bpe.h5 text' 'encode -t bpe.h5 --ids text' 'decode tokens.h5' 'show bpe.h5'; do
    run -1 --separate-stderr bash -c "noether tokenize $line -q > /dev/full"
    [ "$stderr" = "noether tokenize: stdout: no space left on device" ]
    noether tokenize $line -q -o /dev/null
    [ -c /dev/null ]
  done
  mkfifo fifo
  noether tokenize encode -q -t bpe.h5 text -o fifo &
  noether tokenize decode <fifo | cmp - text
  wait
  run -0 bash -c 'set +o pipefail; noether tokenize show bpe.h5 -q | head -n 1; exit "${PIPESTATUS[1]}"'
  [ "${#lines[@]}" -eq 1 ]
  run -2 script -qec 'noether tokenize train text' /dev/null
  [[ "$output" == *"stdout is a terminal"* ]]
}

@test "--help teaches with an example, and no LibTorch is loaded" {
  for command in '' train encode decode show; do
    run -0 --separate-stderr noether tokenize $command --help
    [[ "$output" == *"Example: noether tokenize "* ]]
    [ -z "$stderr" ]
  done
  run -0 ldd "$NOETHER_BUILD/libexec/noether/tokenize"
  [[ "$output" != *torch* ]]
}
