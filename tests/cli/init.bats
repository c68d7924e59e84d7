# What a user of `noether init` sees.
bats_require_minimum_version 1.5.0
setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
}
small=(--layers 1 --heads 1 --width 8 --context 8 --vocab-size 16)

@test "the same line gives the same bytes, on any number of threads; another seed gives others" {
  export SOURCE_DATE_EPOCH=0
  noether init gpt2 "${small[@]}" -o a.h5
  noether init gpt2 "${small[@]}" > b.h5
  noether init gpt2 "${small[@]}" -j 3 --seed 1 -o c.h5
  # Provenance holds the arguments, which differ: the content's digest does not.
  digest() { h5dump -a /noether_digest "$1" | grep -o '"[0-9a-f]\{32\}"'; }
  [ "$(digest a.h5)" = "$(digest b.h5)" ]
  [ "$(digest a.h5)" != "$(digest c.h5)" ]
  cp a.h5 first.h5
  noether init gpt2 "${small[@]}" -o a.h5
  cmp a.h5 first.h5
}

@test "h5dump opens it, and the names are those of the manual page" {
  noether init llama --layers 2 --heads 4 --kv-heads 2 --width 32 --vocab-size 16 -o llama.h5
  run -0 h5dump -n llama.h5
  for name in embedding/tokens layers/1/attention/W_Q layers/1/attention/W_O layers/1/mlp/W_gate head/norm_gain head/W_U; do
    [[ "$output" == *"/parameters/$name"* ]]
  done
  run -0 h5dump -H -d /parameters/layers/0/attention/W_K llama.h5
  [[ "$output" == *"( 2, 8, 32 )"* ]]
}

@test "--dry-run prints GPT-2's published count and makes nothing" {
  run -0 --separate-stderr noether init gpt2-124m --dry-run
  [[ "$output" == *$'total\t196\t124439808\t497759232\t'* ]]
  run -0 --separate-stderr noether init gpt2-124m --dry-run --json
  [[ "${lines[-1]}" == *'"parameters":124439808,'* ]]
  run -0 noether init gpt2 --dry-run -o none.h5
  [ ! -e none.h5 ]
}

@test "-z makes a zstd frame around the same file" {
  noether init gpt2 "${small[@]}" -z -o a.h5.zst
  zstd -dc a.h5.zst > a.h5
  run -0 h5dump -n a.h5
}

@test "names with underscores, and numbers as people write them, are taken" {
  noether init gpt2 --vocab_size 1k --kv_heads=1 --heads 2 --width 16 --layers 1 -o a.h5
  run -0 h5dump -H -d /parameters/embedding/tokens a.h5
  [[ "$output" == *"( 1000, 16 )"* ]]
}

@test "a misuse ends with 2 and one line that says what to do" {
  check() {
    run -2 --separate-stderr noether init "${@:2}"
    [ -z "$output" ]
    [ "$stderr" = "noether init: $1" ]
  }
  check "unknown option --layer (did you mean --layers?)" gpt2 --layer 3
  check "unknown architecture gpt3 (did you mean gpt2?)" gpt3
  check "3 heads do not divide a width of 128 (set --heads, or --head-width)" gpt2 --heads 3 --width 128
  check "--layers: expected a whole number from 1 to 16777216, found 0" gpt2 --layers 0
  check "--norm-epsilon: expected a finite number above 0 and at most 1, found nan" gpt2 --norm-epsilon nan
  check "--q-mean has no effect without --break q or qv" gpt2 --q-mean 0.5
  check "--rope-fraction has no effect without --position rope" gpt2 --rope-fraction 0.5
  check "--json has no effect without --dry-run" gpt2 --json
  check "--break: expected none, q, k, qk, v, qv, kv, qkv, found vq (did you mean q or v?)" gpt2 --break vq
  check "--q-mean: expected a number, FIRST:LAST or @FILE, found a:b" gpt2 --break q --q-mean a:b
  check "--bias-per has no effect without --break" gpt2 --bias-per head
  check "biases cannot be learned and taken from fixed directions at once" gpt2 --break q --learned-bias --bias-directions 2
  seq 3 > three
  check "the biases' distribution (q_bias): expected 1 number, 2 for a range, 8 for a head's components, found 3" \
    gpt2 "${small[@]}" --break q --q-mean @three -o none.h5
  [ ! -e none.h5 ]
}

@test "a mixture of experts has a router, and counts the operations of the experts that a token takes" {
  noether init gpt2 "${small[@]}" --experts 4 -o mixture.h5
  run -0 h5dump -H -d /parameters/layers/0/mlp/W_up mixture.h5
  [[ "$output" == *"( 4, 32, 8 )"* ]]
  # 2 (2 experts x 2 matrices x 8 x 32, and the router's 4 x 8) operations
  run -0 noether init gpt2 "${small[@]}" --experts 4 --dry-run
  [[ "$output" == *$'mlp\t5\t2240\t8960\t2112'* ]]
  run -2 --separate-stderr noether init gpt2 "${small[@]}" --experts 4 --experts-per-token 5
  [ "$stderr" = "noether init: --experts-per-token: expected 1 to 4, found 5" ]
  run -2 --separate-stderr noether init gpt2 "${small[@]}" --balance-loss 1
  [ "$stderr" = "noether init: --balance-loss has no effect without --experts" ]
}

@test "from: weights are kept, what is new is drawn, what would be lost is an error" {
  noether init gpt2 "${small[@]}" -o plain.h5
  run -0 --separate-stderr noether init from plain.h5 --break qv --v-mean 0 -o broken.h5
  [ -z "$stderr" ]
  h5diff plain.h5 broken.h5 /parameters
  h5dump -d /configuration broken.h5 | grep -q '"v_bias":{"means":\[0'
  run -0 --separate-stderr noether init from - --learned-bias --seed 3 -o learned.h5 < broken.h5
  [ "$stderr" = "init: 2 parameters are drawn afresh, layers/0/attention/break_Q the first" ]
  h5diff plain.h5 learned.h5 /parameters/layers/0/mlp
  # Its record goes on: three steps, the first the oldest.
  [ "$(h5dump -d /provenance learned.h5 | grep -o 'tool[^,]*init' | wc -l)" = 3 ]

  check() {
    run -2 --separate-stderr noether init "${@:2}" -o none.h5
    [ "$stderr" = "noether init: $1" ]
    [ ! -e none.h5 ]
  }
  check "plain.h5: embedding/tokens has shape [16, 8], and the options ask for [16, 16]" from plain.h5 --width 16
  check "plain.h5: embedding/positions has no place in what the options describe" from plain.h5 --position rope
  check "from: expected a model" from
  check "unexpected argument plain.h5" gpt2 plain.h5
}

# tests/golden/make_archives.py says what is in these.
@test "from: a PyTorch archive of the authors' layout is what it says, and can be changed" {
  golden=$BATS_TEST_DIRNAME/../golden/formats
  run -0 --separate-stderr noether init from "$golden/authors.pt" -o authors.h5
  [ -z "$stderr" ]
  run -0 h5dump -d /configuration authors.h5
  [[ "$output" == *'"activation":"prelu"'*'"break":"qk","q_bias":{"means":[0.5],"deviations":[0.05,0.15]}'* ]]
  noether init from "$golden/authors.pt" --break qv --v-mean 0 -o broken.h5
  h5diff authors.h5 broken.h5 /parameters
  # The record names what it was made from by its content: the same as a checkpoint's own digest.
  digest=$(h5dump -a /noether_digest authors.h5 | grep -o '[0-9a-f]\{32\}')
  h5dump -d /provenance broken.h5 | grep -q "$digest"
}

@test "from: an archive that would run a command is refused by the command's name, and nothing runs" {
  golden=$BATS_TEST_DIRNAME/../golden/formats
  run -1 --separate-stderr noether init from "$golden/call.pt" -o none.h5
  [ "$stderr" = "noether init: $golden/call.pt: asks for posix.system, which is neither a tensor nor plain data: refused" ]
  [ ! -e called ]
  [ ! -e none.h5 ]
}

@test "from: other programs' files cut short, or not models, are an error of one line" {
  golden=$BATS_TEST_DIRNAME/../golden/formats
  check() {
    run -1 --separate-stderr noether init from "${@:2}" -o none.h5
    [ "$stderr" = "noether init: $1" ]
    [ ! -e none.h5 ]
  }
  head -c 5000 "$golden/authors.pt" > cut.pt
  check "cut.pt: cut short: a zip archive without its directory, which comes last" cut.pt
  printf '\377\0\0\0\0\0\0\0{"a":' > cut.safetensors
  check "cut.safetensors: cut short: its header has 255 bytes, and 5 are there" cut.safetensors
  check "$golden/views.pt: none of the models that are known: GPT-2 or Llama of Hugging Face, Llama of Meta, or the symmetry-breaking authors' (its first tensor is list.0)" "$golden/views.pt"
  mkdir empty
  check "empty: a folder without model.safetensors, pytorch_model.bin, consolidated.00.pth, model.safetensors.index.json, pytorch_model.bin.index.json" empty
  run -2 --separate-stderr noether init from "$golden/authors.pt" --heads 4 -o none.h5
  [ "$stderr" = "noether init: $golden/authors.pt: --heads 4, and the file says 2" ]
}

@test "from: a folder of Hugging Face's, of another programs' making" {
  folder=$BATS_TEST_DIRNAME/../../../shared/data/golden
  [ -d "$folder" ] || skip "no ../shared"
  noether init from "$folder/llama-tiny-gqa" -o llama.h5
  h5diff llama.h5 "$BATS_TEST_DIRNAME/../golden/models/llama-tiny-gqa.h5" /parameters
  run -2 --separate-stderr noether init from "$folder/symmetry-symmetric/model.pt" -o none.h5
  [ "$stderr" = "noether init: $folder/symmetry-symmetric/model.pt: does not say how many heads it has (give --heads)" ]
  noether init from "$folder/symmetry-symmetric/model.pt" --heads 4 -o symmetric.h5
  h5diff symmetric.h5 "$BATS_TEST_DIRNAME/../golden/models/symmetry-symmetric.h5" /parameters
}

@test "binary is not written to a terminal" {
  run -2 script -qec 'noether init gpt2' /dev/null
  [[ "$output" == *"stdout is a terminal"* ]]
}

@test "a full disk is an error, and a named target keeps what it held" {
  run -1 --separate-stderr noether init gpt2 "${small[@]}" -o /dev/full
  [ "$stderr" = "noether init: /dev/full: no space left on device" ]
  run -1 bash -c 'noether init gpt2 > /dev/full'
}

@test "a missing folder is said before the work" {
  run -1 --separate-stderr noether init gpt2-1.3b -o missing/a.h5
  [[ "$stderr" == "noether init: missing/a.h5: no such "* ]]
}

@test "--help teaches with an example, and --version names the libraries" {
  run -0 --separate-stderr noether init --help
  [[ "$output" == *"Example: noether init gpt2"* ]]
  [ -z "$stderr" ]
  run -0 noether init --version
  [[ "${lines[0]}" =~ ^noether\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}
