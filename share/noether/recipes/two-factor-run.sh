#!/bin/bash
# Trains a linear transformer at steps that are said in the two-factor map's units. For two-factor.mk.
#
#   two-factor-run.sh moments PROMPTS.h5
#   two-factor-run.sh train PROMPTS.h5 factors|matrices MU STEPS LOG.tsv
#   two-factor-run.sh threshold PROMPTS.h5 factors|matrices catapult|period-2|period-4|divergent LOW HIGH STEPS     prints where it begins
#   two-factor-run.sh escapes PROMPTS.h5 BATCH RUNS STEPS      prints how many of so many runs with random batches, seed by seed, diverge
#
# The learning rate is MU / nu, with the moments that `train --dry-run` says (kept in PROMPTS.moments.tsv). Both factors begin on the balanced
# line, at e = (2 - mu) / 2, where the loss is first to rise, or above mu = 1 at 0.45; matrices begin at 0.5 along the factors' shapes. Runs
# with random batches begin at (0.64, 0.62), with a learning rate of 1.
set -euo pipefail
noether=${NOETHER:-noether}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prompts=$2

dimension=$(h5dump -H -d /prompts/x "$prompts" | sed -nE 's/.*SIMPLE \{ \( [0-9]+, [0-9]+, ([0-9]+) \).*/\1/p')
start() { $noether init linear-transformer --dimension "$dimension" "$@"; }
moments=${prompts%.h5}.moments.tsv
[ -s "$moments" ] || { start | $noether train - "$prompts" --steps 1 --dry-run -q > "$work/moments.tsv"; mv "$work/moments.tsv" "$moments"; }
moment() { awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$moments"; }
nu=$(moment nu) kappa=$(moment kappa)

# A run that diverges has its last row in the log, which is all that is asked for.
train() { # KIND MU STEPS LOG
  local lr u options
  lr=$(awk -v mu="$2" -v nu="$nu" 'BEGIN { printf "%.17g", mu / nu }')
  options=(--matrices)
  if [ "$1" = factors ]; then
    u=$(awk -v mu="$2" -v lr="$lr" -v kappa="$kappa" 'BEGIN { e = mu < 1 ? (2 - mu) / 2 : 0.45; printf "%.17g", sqrt((e + mu) / (lr * kappa)) }')
    options=(--value "$u" --key-query "$u")
  fi
  start "${options[@]}" > "$work/start.h5"
  $noether train "$work/start.h5" "$prompts" --lr "$lr" --steps "$3" --log "$4" -q -j 1 -o "$work/model.h5" 2> "$work/said" || [ $? = 3 ] || { cat "$work/said" >&2; exit 1; }
  rm -f "$work/model.h5"
}

# Whether training at this step is at that phase or beyond.
beyond() { # KIND MU STEPS PHASE
  train "$1" "$2" "$3" "$work/log.tsv"
  $noether bifurcate classify --limit 1e6 "$work/log.tsv" | awk -F '\t' -v phase="$4" 'NR == 2 {
    if (phase == "catapult") exit $2 == "monotone"
    if (phase == "period-2") exit $2 == "monotone" || $2 == "catapult"
    if (phase == "period-4") exit !($2 == "divergent" || ($2 == "periodic" && $3 >= 4))
    exit $2 != "divergent" }'
}

case $1 in
moments) ;;
train)
  train "$3" "$4" "$5" "$work/log.tsv"
  mv "$work/log.tsv" "$6"
  ;;
threshold)
  low=$5 high=$6
  for _ in $(seq 12); do
    middle=$(awk -v a="$low" -v b="$high" 'BEGIN { printf "%.12g", (a + b) / 2 }')
    if beyond "$3" "$middle" "$7" "$4"; then high=$middle; else low=$middle; fi
  done
  awk -v a="$low" -v b="$high" 'BEGIN { printf "%.8g\t%.2g\n", (a + b) / 2, (b - a) / 2 }'
  ;;
escapes)
  start --value 0.64 --key-query 0.62 > "$work/start.h5"
  count=0
  for seed in $(seq "$4"); do
    status=0
    $noether train "$work/start.h5" "$prompts" --lr 1 --batch "$3" --steps "$5" --seed "$seed" -q -j 1 > /dev/null 2> "$work/said" || status=$?
    case $status in 0) ;; 3) count=$((count + 1)) ;; *) cat "$work/said" >&2; exit 1 ;; esac
  done
  echo "$count"
  ;;
esac
