#!/bin/bash
# Trains the same small GPT twice on real text, symmetric and with symmetry-breaking biases, and compares the two: demo.sh FOLDER [TEXT]
# Shows each command as one would type it, and leaves everything in FOLDER. The text is the King James Bible of Debian's bible-kjv, a
# chapter a document, or TEXT; noether is found on the PATH.
set -euo pipefail
plots=$(realpath "$(dirname "$0")/../plot")
text=${2:+$(realpath "$2")}
mkdir -p "$1"
cd "$1"
steps=${STEPS:-400}
began=$SECONDS

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

# Shows a command line, and runs it.
run() {
  printf '$ %s\n' "$1"
  eval "$1"
}

say "1. The text"
if [ -n "$text" ] && grep -qx '<|endoftext|>' "$text"; then
  run "cp '$text' corpus.txt"
elif [ -n "$text" ]; then
  echo "(no line of it is <|endoftext|>: it is cut into documents at the first blank line after each 4000 bytes, or after 8000)"
  awk '{ print; size += length + 1 } (size > 4000 && /^$/) || size > 8000 { print "<|endoftext|>"; size = 0 }' "$text" >corpus.txt
else
  # bible prints "Ge1:1 In the beginning ..."; a new chapter begins a document.
  run "bible -f 'gen1:1-rev22:21' </dev/null |
  awk '{ chapter = \$1; sub(/:.*/, \"\", chapter); \$1 = \"\" }
       chapter != last && NR > 1 { print \"<|endoftext|>\" }
       { last = chapter; print substr(\$0, 2) }' > corpus.txt"
fi
run "wc corpus.txt"

say "2. A vocabulary of its own, and the text as tokens: 95% of the documents to train on, the rest held out"
run "noether tokenize train --vocab-size 2048 corpus.txt -o bpe.h5"
run "noether tokenize encode -t bpe.h5 --split 0.95 corpus.txt -o train.h5 --valid-output valid.h5"

say "3. The same small GPT twice, from the same start: symmetric, and with its symmetry broken in queries and values"
shape="--layers 4 --heads 4 --width 128 --context 128 -t bpe.h5"
run "noether init gpt2 $shape -o symmetric-start.h5"
run "noether init gpt2 $shape --break qv -o broken-start.h5"

say "4. Training with energy-conserving descent (about a minute and a half each)"
for model in symmetric broken; do
  run "noether train $model-start.h5 train.h5 --optimizer ecd --steps $steps --batch 16 --valid valid.h5 --valid-every 100 --log $model.tsv -o $model.h5"
done

say "5. What they write"
for model in symmetric broken; do
  run "noether eval generate $model.h5 --prompt 'In the beginning' --tokens 60 --top-k 40"
done

say "6. How well they foresee the documents that were held out"
run "noether eval loss symmetric.h5 broken.h5 valid.h5 -o loss.tsv"
{
  printf 'model\tloss\tstandard error\tperplexity\tbits a byte\ttokens/s in training\n'
  for model in symmetric broken; do
    # Columns are found by their names; the median step stands for the speed.
    speed=$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "tokens_per_second") column = i; next } { print $column }' $model.tsv |
      sort -n | awk '{ value[NR] = $1 } END { printf "%d", value[int((NR + 1) / 2)] }')
    awk -F '\t' -v OFS='\t' -v model=$model -v speed="$speed" '
      NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
      $column["checkpoint"] ~ "(^|/)" model { printf "%s\t%.4f\t%.4f\t%.2f\t%.3f\t%d\n", model, $column["loss"], $column["loss_stderr"],
        $column["perplexity"], $column["bits_per_byte"], speed }' loss.tsv
  done
} >table.tsv
echo
awk -F '\t' '{ printf "%-10s %8s %15s %11s %12s %21s\n", $1, $2, $3, $4, $5, $6 }' table.tsv

say "7. How the loss fell"
run "gnuplot -c $plots/loss.gp loss.png symmetric.tsv broken.tsv"
run "gnuplot -c $plots/loss.gp - symmetric.tsv broken.tsv"

echo "Everything is in $PWD; the curves are in loss.png. It took $((SECONDS - began)) s."
