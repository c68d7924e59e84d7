# What a user of `noether eval` sees.
# bats file_tags=torch
bats_require_minimum_version 1.5.0

# Real text, its tokens and two small models: made once, for all tests.
setup_file() {
  set -o pipefail
  cd "$BATS_FILE_TMPDIR"
  # Forty documents, of some 600 bytes each.
  for i in $(seq 40); do
    printf 'Document %d. ' "$i"
    for j in $(seq $((i % 7 + 5))); do printf 'In the %d. year the king spoke to the people of the land, and they heard him. ' $((i * j)); done
    echo
  done > text.txt
  noether tokenize train -q --vocab-size 300 text.txt > bpe.h5
  noether tokenize encode -q --documents line -t bpe.h5 text.txt > valid.h5
  noether init gpt2 --layers 2 --heads 2 --width 32 --context 32 -t bpe.h5 > model.h5
  noether init gpt2 --layers 1 --heads 2 --width 16 --context 32 -t bpe.h5 --break qv > broken.h5
}

setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
  ln -s "$BATS_FILE_TMPDIR"/*.h5 "$BATS_FILE_TMPDIR"/text.txt .
}

# The column of this name from a table with a header on stdin, without the header.
column() { awk -F'\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i; next } { print $at }'; }

@test "loss: a row for each checkpoint, with what it was scored on and how" {
  noether eval loss model.h5 broken.h5 valid.h5 > table.tsv
  [ "$(head -1 table.tsv | tr '\t' ' ')" = "checkpoint step tokens bytes window stride prefix biases loss loss_stderr stderr_over perplexity bits_per_byte min_batch_4096 tokens_per_second tokenizer digest" ]
  [ "$(column checkpoint < table.tsv | xargs)" = "model.h5 broken.h5" ]
  [ "$(column window < table.tsv | xargs)" = "32 32" ]
  [ "$(column prefix < table.tsv | xargs)" = "end-of-text end-of-text" ]
  [ "$(column biases < table.tsv | xargs)" = "none mean" ]
  [ "$(column stderr_over < table.tsv | sort -u)" = "40 documents" ]
  # All of the text: its bytes without the line ends, which separate documents.
  [ "$(column bytes < table.tsv | sort -u)" = "$(tr -d '\n' < text.txt | wc -c)" ]
  # A fresh model knows nothing: its loss is the logarithm of the vocabulary, to a tenth.
  column loss < table.tsv | awk '{ d = $1 - log(300); if (d < -0.1 || d > 0.1) exit 1 }'
}

@test "loss: the same bytes for -j 1 and -j 3, alone and beside another" {
  rows() { noether eval loss "$@" --json | sed 's/"tokens_per_second":[^,]*,//'; }
  rows model.h5 valid.h5 -j 1 > one
  rows model.h5 valid.h5 -j 3 > three
  rows broken.h5 model.h5 valid.h5 -j 2 | tail -1 > beside
  cmp one three
  cmp one beside
  rows model.h5 valid.h5 --stride 5 -j 1 > one
  rows model.h5 valid.h5 --stride 5 -j 3 > three
  cmp one three
  [[ "$(cat one)" == *'"window":32,"stride":5,'* ]]
}

@test "loss: checkpoints through a pipe give the rows that the files give" {
  noether eval loss model.h5 valid.h5 | column loss > named
  noether eval loss - valid.h5 < model.h5 | column loss > piped
  cmp named piped
  cat model.h5 | zstd -q | noether eval loss - valid.h5 | column loss > compressed
  cmp named compressed
  noether eval loss <(cat model.h5) valid.h5 | column loss > substituted
  cmp named substituted
  # Named ones and those of stdin, in the order of the line.
  noether eval loss broken.h5 - model.h5 valid.h5 < model.h5 | column checkpoint > names
  [ "$(xargs < names)" = "broken.h5 stdin model.h5" ]
}

@test "loss: follows a training run, a row for each checkpoint that comes" {
  noether train model.h5 valid.h5 --steps 6 --emit-every 2 -q | noether eval loss - valid.h5 > table.tsv
  [ "$(column step < table.tsv | xargs)" = "2 4 6" ]
  # It learns: the last is the least.
  column loss < table.tsv | sort -c -g -r
}

@test "loss: options say what is scored" {
  tokens=$(noether eval loss model.h5 valid.h5 | column tokens)
  [ "$(noether eval loss model.h5 valid.h5 --prefix none | column tokens)" = $((tokens - 1)) ]
  [ "$(noether eval loss model.h5 valid.h5 --prefix none | column prefix)" = none ]
  [ "$(noether eval loss model.h5 valid.h5 --limit 1e2 | column tokens)" = 100 ]
  [ "$(noether eval loss model.h5 valid.h5 --limit 100 | column stderr_over)" = "50 blocks" ]
  [ -z "$(noether eval loss model.h5 valid.h5 --limit 100 | column min_batch_4096)" ]
  [ "$(noether eval loss model.h5 valid.h5 --window 8 | column stride)" = 8 ]
  mean=$(noether eval loss broken.h5 valid.h5 | column loss)
  [ "$(noether eval loss broken.h5 valid.h5 --biases none | column loss)" != "$mean" ]
  noether eval loss broken.h5 valid.h5 --biases sampled --seed 4 --json > one
  noether eval loss broken.h5 valid.h5 --biases sampled --seed 5 --json > other
  [[ "$(cat one)" == *'"biases":"sampled"'* ]]
  [ "$(grep -o '"loss":[^,]*' one)" != "$(grep -o '"loss":[^,]*' other)" ]
}

@test "loss: -o is replaced whole, or not at all" {
  noether eval loss model.h5 valid.h5 -o table.tsv
  [ "$(column checkpoint < table.tsv)" = model.h5 ]
  cp table.tsv before
  run -1 noether eval loss model.h5 garbage.h5 valid.h5 -o table.tsv
  cmp table.tsv before
}

@test "loss: what does not fit is refused in one line" {
  check() {
    run -1 --separate-stderr noether eval loss "${@:2}"
    [ -z "$output" ]
    [[ "$stderr" == "noether eval: "$1 ]]
    [ "${#stderr_lines[@]}" = 1 ]
  }
  noether tokenize train -q --vocab-size 290 text.txt > other.h5
  noether tokenize encode -q -t other.h5 text.txt > others.h5
  noether init gpt2 --layers 1 --heads 1 --width 8 --context 8 --vocab-size 64 > narrow.h5
  head -c 1000 /dev/urandom > garbage.h5
  : > empty.h5
  head -c 5000 model.h5 > cut.h5
  check "others.h5: tokens of another tokenizer than that of model.h5 (*)" model.h5 others.h5
  check "valid.h5: token * is *, beyond the vocabulary of narrow.h5, which has 64" narrow.h5 valid.h5
  check "model.h5: a window of 33 is longer than its context of 32" model.h5 valid.h5 --window 33
  check "model.h5: a stride of 33 skips tokens of a window of 32" model.h5 valid.h5 --stride 33
  check "none.h5: no such file" model.h5 none.h5
  check "none.h5: no such file" none.h5 valid.h5
  check "empty.h5: empty*" empty.h5 valid.h5
  check "cut.h5: cut short: expected * bytes, got 5000" cut.h5 valid.h5
  check "garbage.h5: neither HDF5 nor zstd*" garbage.h5 valid.h5
  check "valid.h5: expected a checkpoint, found a tokens file" valid.h5 valid.h5
  check "model.h5: expected a tokens file, found a checkpoint" model.h5 model.h5
  check "stdin: empty*" - valid.h5 < /dev/null
  check "stdin: cut short: expected * bytes, got 5000" - valid.h5 < cut.h5
}

@test "loss: named inputs are checked before stdin is read" {
  mkfifo never
  # Nobody writes to it: who reads it first hangs.
  sleep 60 > never &
  writer=$!
  run -1 --separate-stderr timeout 20 noether eval loss - none.h5 < never
  [ "$stderr" = "noether eval: none.h5: no such file" ]
  run -1 --separate-stderr timeout 20 noether eval loss - valid.h5 valid.h5 < never
  [ "$stderr" = "noether eval: valid.h5: expected a checkpoint, found a tokens file" ]
  kill "$writer"
}

@test "generate: greedy text is the same through a pipe, and in any company" {
  noether eval generate model.h5 --prompt 'In the' --temperature 0 --tokens 20 > one
  noether eval generate - --prompt 'In the' --temperature 0 --tokens 20 < model.h5 > piped
  cmp one piped
  echo 'In the' | noether eval generate model.h5 --temperature 0 --tokens 20 > line
  cmp one line
  printf 'In the\nThe king\n\nand' | noether eval generate model.h5 --temperature 0 --tokens 20 -j 1 > many
  printf 'In the\nThe king\n\nand' | noether eval generate model.h5 --temperature 0 --tokens 20 -j 3 > threads
  cmp many threads
  head -c "$(wc -c < one)" many | cmp - one
  [[ "$(head -c 6 one)" == "In the" ]]
}

@test "generate: a seed gives a text, another seed another; --samples gives several" {
  made() { noether eval generate model.h5 --prompt 'The king' --tokens 20 "$@"; }
  made > default
  made --seed 0 --top-k 300 --top-p 1 > zero
  cmp default zero
  made --seed 1 > one
  run ! cmp -s default one
  made --top-k 1 > narrow
  made --temperature 0 > greedy
  cmp narrow greedy
  made --samples 3 --json > three
  [ "$(wc -l < three)" = 3 ]
  [ "$(grep -o '"text":"[^"]*"' three | sort -u | wc -l)" = 3 ]
}

@test "generate: --json holds what it was made of" {
  noether eval generate broken.h5 --prompt 'The king' --prompt '' --tokens 5 --no-stop --json > out
  [ "$(wc -l < out)" = 2 ]
  python3 - <<'PY'
import json
rows = [json.loads(line) for line in open("out")]
assert [row["prompt"] for row in rows] == ["The king", ""]
assert [row["prompt_number"] for row in rows] == [0, 1]
for row in rows:
    assert row["tokens"] == len(row["ids"]) == 5 and row["finish"] == "length"
    assert row["log_probability"] < 0 and len(row["digest"]) == 32 and row["biases"] == "mean"
assert rows[1]["prompt_ids"] == []
PY
}

@test "generate: what comes out is valid UTF-8 whatever the model draws" {
  noether eval generate model.h5 --prompt $'\xff' --tokens 300 --temperature 50 --samples 4 --no-stop > out
  iconv -f UTF-8 -t UTF-8 out > /dev/null
}

@test "generate: it begins a document where stdin is the checkpoint" {
  noether eval generate - --tokens 4 --json < model.h5 > out
  [[ "$(cat out)" == *'"prompt":"",'* ]]
}

@test "generate: misuse and what cannot be done" {
  run -1 --separate-stderr noether eval generate model.h5 < /dev/null
  [ "$stderr" = "noether eval: stdin: no prompts; give one with --prompt, or one a line" ]
  noether init gpt2 --layers 1 --heads 1 --width 8 --context 8 --vocab-size 64 > mute.h5
  run -1 --separate-stderr noether eval generate mute.h5 --prompt a
  [ "$stderr" = "noether eval: mute.h5: it has no tokenizer to write with" ]
  run -2 --separate-stderr noether eval generate model.h5 --prompt a --temperature 0 --top-k 3
  [ "$stderr" = "noether eval: --top-k has no effect at --temperature 0" ]
  run -2 --separate-stderr noether eval generate model.h5 --prompt a --temperature nan
  [[ "$stderr" == "noether eval: --temperature: expected a finite number of at least 0, found nan" ]]
  run -2 --separate-stderr noether eval loss model.h5 valid.h5 --seed 3
  [ "$stderr" = "noether eval: --seed has no effect without --biases sampled" ]
  run -2 --separate-stderr noether eval loss - - < model.h5
  [ "$stderr" = "noether eval: only one input can be stdin (-)" ]
  run -2 --separate-stderr noether eval loss model.h5
  [ "$stderr" = "noether eval: expected a checkpoint and the tokens to score, found model.h5 alone" ]
  run -2 --separate-stderr noether eval
  [ "$stderr" = "noether eval: expected a subcommand: loss, generate, sharpness, puzzles, choices or last-word" ]
  run -2 --separate-stderr noether eval los model.h5
  [ "$stderr" = "noether eval: unknown subcommand los (did you mean loss?)" ]
}

@test "a closed pipe ends it quietly, a full disk does not" {
  run --separate-stderr bash -c 'set -o pipefail; noether eval generate model.h5 --prompt a --tokens 200 --samples 50 | head -c 10'
  [ "$status" = 141 ]
  [ -z "$stderr" ]
  run -1 --separate-stderr bash -c 'noether eval loss model.h5 valid.h5 > /dev/full'
  [ "$stderr" = "noether eval: stdout: no space left on device" ]
}

@test "the manual page and --help name the same options" {
  for command in loss generate puzzles choices last-word; do
    noether eval "$command" --help | grep -oE -- '(^|[ ,])--?[a-z][a-z0-9-]*' | tr -d ' ,' >> help
  done
  noether eval --help | grep -oE -- '(^|[ ,])--?[a-z][a-z0-9-]*' | tr -d ' ,' >> help
  while read -r option; do
    [[ "$option" == --* || ${#option} = 2 ]] || continue
    escaped=${option//-/\\-}
    grep -qF -- "$escaped" "$BATS_TEST_DIRNAME/../../man/noether-eval.1" || { echo "$option is not in the manual"; return 1; }
  done < <(sort -u help)
}

@test "sharpness: a row for each eigenvalue, the largest first, beside the step size that the run took" {
  noether train broken.h5 valid.h5 --optimizer sgdm --lr 0.02 --steps 20 --emit-every 10 -q |
    noether eval sharpness - valid.h5 --count 2 --windows 4 > table.tsv
  [ "$(column step < table.tsv | xargs)" = "10 10 20 20" ]
  [ "$(column rank < table.tsv | xargs)" = "1 2 1 2" ]
  [ "$(column tokens < table.tsv | sort -u)" = 128 ]
  [ "$(column two_over_lr < table.tsv | sort -u)" = 100 ]
  column eigenvalue < table.tsv | awk 'NR % 2 == 1 { first = $1; if (!(first > 0)) exit 1 } NR % 2 == 0 && $1 > first { exit 1 }'
  # Two windows at a time or all at once: the same sum in another order.
  noether eval sharpness model.h5 valid.h5 --windows 4 --batch 2 | column eigenvalue > two
  noether eval sharpness model.h5 valid.h5 --windows 4 --batch 9 | column eigenvalue > all
  paste two all | awk '{ if ($1 > $2 * 1.001 || $1 < $2 * 0.999) exit 1 }'
  # A fresh checkpoint has no run.
  [ -z "$(noether eval sharpness model.h5 valid.h5 --windows 1 | column two_over_lr)" ]
  run -1 --separate-stderr noether eval sharpness model.h5 model.h5
  [ "$stderr" = "noether eval: model.h5: expected a tokens file, found a checkpoint" ]
  # And the factors of each head, as their weights are.
  noether eval sharpness model.h5 valid.h5 --windows 1 --heads heads.tsv > /dev/null
  head -1 heads.tsv | grep -qx $'checkpoint\tstep\tlayer\thead\tnorm_Q\tnorm_K\timbalance_QK\tnorm_V\tnorm_O\timbalance_VO'
  norm=$(h5dump -d /parameters/layers/0/attention/W_Q -y -w 0 model.h5 | sed '1,/DATA {/d' | tr ',' '\n' | awk '$1 + 0 == $1 { s += $1 ^ 2 } END { print sqrt(s) }')
  awk -F'\t' -v norm="$norm" 'NR > 1 && $3 == 0 { s += $5 ^ 2 } NR > 1 && ($7 - ($5 - $6)) ^ 2 > 1e-8 { exit 1 }
    END { r = sqrt(s) / norm; if (r < 0.999 || r > 1.001) exit 1 }' heads.tsv
}

@test "puzzles: those that come with it, by item, kind and in all" {
  noether eval puzzles broken.h5 > table.tsv
  [ "$(head -1 table.tsv | tr '\t' ' ')" = "checkpoint step prefix biases level kind line items rank top1 top5 first_token_loss first_token_loss_stderr completion_loss sound_loss unsound_loss perplexity_ratio sound_lower truncated tokenizer digest" ]
  [ "$(column level < table.tsv | uniq -c | xargs)" = "19 item 8 kind 1 all" ]
  [ "$(column biases < table.tsv | sort -u)" = mean ]
  noether eval puzzles broken.h5 --json > rows
  [ "$(wc -l < rows)" = 28 ]
  python3 - <<'PY'
import json, math, statistics
rows = [json.loads(line) for line in open("rows")]
items = [row for row in rows if row["level"] == "item"]
def check(total, some):
    done = [row for row in some if row["rank"] is not None]
    assert total["items"] == len(some)
    if done:
        first = [row["first_token_loss"] for row in done]
        assert math.isclose(total["first_token_loss"], statistics.mean(first))
        assert math.isclose(total["first_token_loss_stderr"], statistics.stdev(first) / math.sqrt(len(first)))
        assert math.isclose(total["rank"], statistics.mean(row["rank"] for row in done))
        assert math.isclose(total["top5"], sum(row["rank"] <= 5 for row in done) / len(done))
        assert math.isclose(total["completion_loss"], statistics.mean(row["completion_loss"] for row in done))
    compared = [row for row in some if row["sound_loss"] is not None]
    if compared:
        ratios = [math.exp(row["unsound_loss"] - row["sound_loss"]) for row in compared]
        assert math.isclose(total["perplexity_ratio"], statistics.geometric_mean(ratios))
        assert math.isclose(total["sound_lower"], sum(ratio > 1 for ratio in ratios) / len(ratios))
for kind in [row for row in rows if row["level"] == "kind"]:
    check(kind, [row for row in items if row["kind"] == kind["kind"]])
check(rows[-1], items)
assert sum(row["rank"] is not None for row in items) == 14
PY
  noether eval puzzles broken.h5 --json -j 1 | cmp - rows
  noether eval puzzles broken.h5 --json -j 3 | cmp - rows
  noether eval puzzles - --json < broken.h5 | sed 's/"stdin"/"broken.h5"/' | cmp - rows
  [ "$(noether eval puzzles broken.h5 --biases none --json | tail -1)" != "$(tail -1 rows)" ]
  # A context of 32 tokens is short for stories.
  [ "$(tail -1 table.tsv | cut -f 19)" -gt 2 ]
  run -0 --separate-stderr noether eval puzzles broken.h5
  [[ "$stderr" == "eval: "*" of 19 items are longer than the context of broken.h5, which is 32: their beginnings are left out" ]]
}

@test "puzzles: agree with what generate and loss say of the same texts" {
  noether train model.h5 valid.h5 --steps 60 -q > trained.h5
  noether eval generate trained.h5 --prompt 'In the 7. year the king spoke' --temperature 0 --tokens 1 --json > generated
  sound='In the 3. year the king spoke to the people'
  python3 - "$sound" > mine.jsonl <<'PY'
import json, sys
text = json.loads(open("generated").read())
print(json.dumps({"kind": "greedy", "prompt": text["prompt"], "expected": text["text"]}))
print()
print(json.dumps({"kind": "order", "compare": [sys.argv[1], "people the to spoke king the year 3. the In"]}))
PY
  noether eval puzzles trained.h5 mine.jsonl > table.tsv
  [ "$(column line < table.tsv | xargs)" = "1 3" ]
  [ "$(column rank < table.tsv | head -1)" = 1 ]
  [ "$(column sound_lower < table.tsv | sed -n 2p)" = 1 ]
  said=$(grep -o '"log_probability":[^,]*' generated | cut -d : -f 2)
  column first_token_loss < table.tsv | head -1 | awk -v said="$said" '{ d = $1 + said; if (d < -1e-4 || d > 1e-4) exit 1 }'
  printf %s "$sound" | noether tokenize encode -q -t bpe.h5 - > sound.h5
  loss=$(noether eval loss trained.h5 sound.h5 --prefix none | column loss)
  column sound_loss < table.tsv | sed -n 2p | awk -v loss="$loss" '{ d = $1 - loss; if (d < -1e-4 || d > 1e-4) exit 1 }'
  loss=$(noether eval loss trained.h5 sound.h5 | column loss)
  noether eval puzzles trained.h5 - --prefix auto < mine.jsonl | column sound_loss | sed -n 2p |
    awk -v loss="$loss" '{ d = $1 - loss; if (d < -1e-4 || d > 1e-4) exit 1 }'
  # Rows for each checkpoint of a run.
  noether train model.h5 valid.h5 --steps 4 --emit-every 2 -q | noether eval puzzles - mine.jsonl | column step > steps
  [ "$(uniq -c < steps | xargs)" = "5 2 5 4" ]
}

@test "choices: rows of items, and their means" {
  cat > mine.jsonl <<'JSON'
{"context": "In the 2. year the king", "endings": ["spoke to the people of the land,", "people", "he"], "label": 0, "source": "here"}
{"context": "and they heard", "endings": ["him.", "year year year"], "label": "1"}

{"context": "The king spoke", "endings": ["to", "of", "in", "\u00fc\u00fc\u00fc"], "label": 3}
{"context": "", "endings": ["In the", "Document"], "label": 1}
JSON
  noether eval choices model.h5 mine.jsonl > table.tsv
  [ "$(head -1 table.tsv | tr '\t' ' ')" = "checkpoint step prefix biases items acc acc_stderr acc_norm acc_norm_stderr truncated tokenizer digest" ]
  noether eval choices model.h5 mine.jsonl --json > total
  noether eval choices model.h5 mine.jsonl --items --json > rows
  python3 - <<'PY'
import json, math, statistics
items = [json.loads(line) for line in open("mine.jsonl") if line.strip()]
rows = [json.loads(line) for line in open("rows")]
total = json.load(open("total"))
assert [row["line"] for row in rows] == [1, 2, 4, 5]
acc, acc_norm = [], []
for item, row in zip(items, rows):
    likelihoods = [-loss for loss in row["losses"]]
    scaled = [likelihood / len(ending.encode()) for likelihood, ending in zip(likelihoods, item["endings"])]
    acc.append(float(likelihoods.index(max(likelihoods)) == int(item["label"])))
    acc_norm.append(float(scaled.index(max(scaled)) == int(item["label"])))
    assert (row["acc"], row["acc_norm"]) == (acc[-1], acc_norm[-1])
for name, values in (("acc", acc), ("acc_norm", acc_norm)):
    assert total[name] == statistics.mean(values)
    assert math.isclose(total[name + "_stderr"], statistics.stdev(values) / math.sqrt(4), abs_tol=1e-12)
PY
  noether eval choices model.h5 - --items --json -j 3 < mine.jsonl | cmp - rows
  # 40 numbers of context, where there is room for 32 tokens.
  printf '{"context": "%s", "endings": ["a", "b"], "label": 1}' "$(seq -s ' ' 40)" > long.jsonl
  run -0 --separate-stderr noether eval choices model.h5 long.jsonl
  [ "$stderr" = "eval: 1 of 1 items are longer than the context of model.h5, which is 32: their beginnings are left out" ]
}

@test "last-word: the greedy word is right, another is not" {
  noether train model.h5 valid.h5 --steps 200 --lr 3e-3 -q > trained.h5
  printf '%s\n' '{"text": "In the 6. year the king spoke to the people"}' '{"text": "In the 6. year the king spoke to the\nland"}' > mine.jsonl
  noether eval last-word trained.h5 mine.jsonl --items > table.tsv
  [ "$(column word < table.tsv | xargs)" = "people land" ]
  [ "$(column acc < table.tsv | xargs)" = "1 0" ]
  noether eval last-word trained.h5 mine.jsonl > total.tsv
  [ "$(column acc < total.tsv)" = 0.5 ]
  [ "$(column acc_stderr < total.tsv)" = 0.5 ]
  loss=$(column loss < table.tsv | awk '{ sum += $1 } END { print sum / NR }')
  column perplexity < total.tsv | awk -v loss="$loss" '{ d = $1 / exp(loss) - 1; if (d < -1e-3 || d > 1e-3) exit 1 }'
}

@test "puzzles, choices, last-word: what cannot be asked is refused in one line" {
  check() {
    run "-$1" --separate-stderr noether eval "${@:3}"
    [ -z "$output" ]
    [[ "$stderr" == "noether eval: "$2 ]]
    [ "${#stderr_lines[@]}" = 1 ]
  }
  printf '%s\n' '{"kind": "a", "prompt": "b", "expected": " c"}' '' '{"kind": "a", "promt": "b"}' > wrong.jsonl
  printf '%s\n' '{"text": "a b"}' 'a b' > words.jsonl
  printf '{"context": "a", "endings": ["b", "%s"], "label": 0}\n' "$(seq -s ' ' 40)" > long.jsonl
  noether init gpt2 --layers 1 --heads 1 --width 8 --context 8 --vocab-size 64 > mute.h5
  check 1 "words.jsonl:2: not valid JSON at byte 1 of the line" last-word model.h5 words.jsonl
  check 1 "wrong.jsonl:1: no field context (found: expected, kind, prompt)" choices model.h5 wrong.jsonl
  check 1 "long.jsonl:1: * tokens to predict are more than the context of model.h5, which is 32" choices model.h5 long.jsonl
  check 2 "file is required" choices model.h5
  check 1 "wrong.jsonl:3: no field prompt (found: kind, promt) (did you mean promt?)" puzzles model.h5 wrong.jsonl
  check 1 "stdin:3: no field prompt (found: kind, promt) (did you mean promt?)" puzzles model.h5 - < wrong.jsonl
  check 1 "mute.h5: it has no tokenizer to read with" puzzles mute.h5
  check 1 "none.jsonl: no such file" puzzles model.h5 none.jsonl
  check 1 "none.h5: no such file" puzzles none.h5 none.jsonl
  check 1 "valid.h5: expected a checkpoint, found a tokens file" puzzles valid.h5
  check 1 "valid.h5: expected text, found an HDF5 file" puzzles model.h5 valid.h5
  check 1 "stdin: empty*" puzzles model.h5 - < /dev/null
  check 1 "stdin: empty*" puzzles - < /dev/null
  check 2 "only one input can be stdin (-)" puzzles - -
  check 2 "--seed has no effect without --biases sampled" puzzles model.h5 --seed 3
  run -1 --separate-stderr bash -c 'noether eval puzzles model.h5 -q > /dev/full'
  [ "$stderr" = "noether eval: stdout: no space left on device" ]
}
