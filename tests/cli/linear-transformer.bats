# A linear transformer, from its prompts to what its training did.
# bats file_tags=torch
bats_require_minimum_version 1.5.0

setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
}
# The column of this name from a table with a header on stdin, without the header.
column() { awk -F'\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i; next } { print $at }'; }
# A quantity of `train --dry-run`.
quantity() { awk -F'\t' -v name="$1" '$1 == name { print $2 }'; }
digest() { h5dump -a /noether_digest "$1" | grep -o '"[0-9a-f]\{32\}"'; }
one_prompt() { printf '1 1\n1 1\n' | noether bifurcate prompts - > one.h5; } # s = y = 1: mu is the learning rate

@test "on one prompt it follows the two-factor map to 1e-12, and the loss log says the phase" {
  noether bifurcate prompts --pairs 8 --dimension 3 --noise 0.2 --seed 3 > prompts.h5
  noether init linear-transformer --dimension 3 --value 0.5 --key-query 0.7 > start.h5
  nu=$(noether train start.h5 prompts.h5 --steps 1 --dry-run | quantity nu)
  for phase in "0.4 monotone" "0.95 catapult" "1.1 periodic" "1.25 periodic" "1.9 chaotic" "2.1 divergent"; do
    read -r mu course <<< "$phase"
    lr=$(awk -v mu="$mu" -v nu="$nu" 'BEGIN { printf "%.17g", mu / nu }')
    noether train start.h5 prompts.h5 --lr "$lr" --steps 3000 --log log.tsv -q -o model.h5 || [ $? = 3 ]
    # Where the model began, in the map's coordinates, followed by the map itself.
    awk -F'\t' -v mu="$mu" 'NR == 2 { print mu, $8, $9 }' log.tsv | noether bifurcate orbit --steps 2999 > orbit.tsv
    case $course in chaotic) steps=8 ;; divergent) steps=5 ;; *) steps=3000 ;; esac
    paste <(column a < log.tsv) <(column b < log.tsv) <(column a < orbit.tsv) <(column b < orbit.tsv) |
      awk -v steps="$steps" 'function off(x, y) { d = (x - y) / y; return d > 1e-12 || d < -1e-12 } NR <= steps && (off($1, $3) || off($2, $4)) { print NR, $0; exit 1 } END { if (NR < 8) exit 1 }'
    [ "$(noether bifurcate classify log.tsv orbit.tsv | column course | xargs)" = "$course $course" ]
    rm -f model.h5
  done
}

@test "the loss rises on the way to a minimum between 2 sqrt(2) - 2 and 1, from where it first does" {
  one_prompt
  for phase in "0.82 monotone" "0.84 catapult" "0.99 catapult"; do
    read -r mu course <<< "$phase"
    u=$(awk -v mu="$mu" 'BEGIN { printf "%.17g", sqrt((1 + mu / 2) / mu) }') # e = (2 - mu) / 2
    noether init linear-transformer --value "$u" --key-query "$u" | noether train - one.h5 --lr "$mu" --steps 3000 --log log.tsv -q > model.h5
    [ "$(noether bifurcate classify log.tsv | column course)" = "$course" ]
    rm model.h5
  done
}

@test "many prompts are the map with a floor under the loss; batches are its switching" {
  noether bifurcate prompts --count 50 --dimension 2 --noise 0.5 > prompts.h5
  noether init linear-transformer --dimension 2 > start.h5
  noether train start.h5 prompts.h5 --lr 0.2 --steps 500 --log log.tsv -q -o model.h5
  floor=$(noether train start.h5 prompts.h5 --lr 0.2 --steps 1 --dry-run | quantity floor)
  column loss < log.tsv | tail -1 | awk -v floor="$floor" '{ d = $1 - floor; exit !(floor > 0 && d < 1e-12 && d > -1e-12) }'
  noether train start.h5 prompts.h5 --lr 0.1 --batch 5 --steps 100 -q -o a.h5
  noether train start.h5 prompts.h5 --lr 0.1 --batch 5 --steps 100 --seed 1 -q -o b.h5
  [ "$(digest a.h5)" != "$(digest b.h5)" ]
  # Two prompts of s = 1 with targets 1.4 and 0.2, one a step: nu is 0.8 +- 0.6 at even odds, which moves, and never settles.
  printf '1 1\n1 1.4\n\n1 1\n1 0.2\n' | noether bifurcate prompts - > two.h5
  noether init linear-transformer | noether train - two.h5 --lr 1 --batch 1 --steps 1000 --log two.tsv -q > m.h5
  # From one step to the next e + mu = ab goes as with one of the two.
  awk -F'\t' 'NR > 2 { ok = 0; for (nu = 0.2; nu < 2; nu += 1.2) { r = a * b - nu; x = a - r * b - $8; if (x < 1e-12 && x > -1e-12) ++count[nu] && ok = 1 }
    if (!ok) exit 1 } { a = $8; b = $9 } END { if (count["0.2"] < 400 || count["1.4"] < 400) exit 1 }' two.tsv
}

@test "both matrices: what lies beside the factors is said, and the best loss is lower" {
  noether bifurcate prompts --count 100 --dimension 2 --noise 0.2 > prompts.h5
  for option in "" --matrices; do
    noether init linear-transformer --dimension 2 $option | noether train - prompts.h5 --lr 0.1 --steps 2000 --log "log$option.tsv" -q > model.h5
    rm model.h5
  done
  [ "$(column beside < log.tsv | sort -u)" = 0 ]
  column beside < log--matrices.tsv | awk 'NR == 1 { first = $1 } END { exit !(first < 1e-15 && $1 > 1e-3) }'
  paste <(column loss < log.tsv) <(column loss < log--matrices.tsv) | tail -1 | awk '{ exit !($2 < $1) }'
  noether init linear-transformer --dimension 2 --matrices > m.h5
  run -0 h5dump -H -d /parameters/W_KQ m.h5
  [[ "$output" == *"H5T_IEEE_F64LE"*"( 3, 2 )"* ]]
}

@test "200 steps are 100 + 100, to the bit; a killed run goes on; a run that is done stays" {
  noether bifurcate prompts --count 20 --dimension 2 --noise 0.1 > prompts.h5
  noether init linear-transformer --dimension 2 --matrices --deviation 0.1 > start.h5
  noether train start.h5 prompts.h5 --lr 0.02 --batch 4 --steps 200 --log whole.tsv -q -o whole.h5
  noether train start.h5 prompts.h5 --lr 0.02 --batch 4 --steps 100 --log half.tsv -q -o half.h5
  noether train half.h5 prompts.h5 --steps 200 --log half.tsv -q -o rest.h5
  [ "$(digest rest.h5)" = "$(digest whole.h5)" ]
  cmp half.tsv whole.tsv
  # The same line goes on from what is there.
  cp half.h5 again.h5
  run -0 noether train start.h5 prompts.h5 --lr 0.02 --batch 4 --steps 200 -o again.h5
  [[ "$output" == *"again.h5 is at step 100 of this run: going on from there"* ]]
  [ "$(digest again.h5)" = "$(digest whole.h5)" ]
  run -0 noether train start.h5 prompts.h5 --lr 0.02 --batch 4 --steps 200 -o again.h5
  [[ "$output" == *"step 200 of 200: already done"* ]]
  run -0 noether train again.h5 prompts.h5 --steps 210 --lr 0.01 -o more.h5
  [[ "$output" == *"from step 200 on: --lr 0.01 (was 0.02)"* ]]
  # Long enough to be stopped.
  noether train start.h5 prompts.h5 --lr 0.02 --batch 4 --steps 100M -q -o long.h5 2> said & pid=$!
  sleep 1
  kill -TERM $pid
  status=0
  wait $pid || status=$?
  [ $status = 75 ]
  grep -q "stopped by SIGTERM at step .* of 100000000; saved: the same line goes on from long.h5" said
}

@test "divergence ends with 3; what is wrong is said in one line" {
  one_prompt
  noether init linear-transformer > start.h5
  run -3 --separate-stderr noether train start.h5 one.h5 --lr 3 --steps 100 --log log.tsv -q -o model.h5
  [[ "$stderr" == "noether train: step "*": the loss is inf; nothing had been saved" ]]
  [ ! -e model.h5 ]
  [ "$(noether bifurcate classify log.tsv | column course)" = divergent ]
  check() {
    run "-$1" --separate-stderr noether "${@:3}"
    [ "$stderr" = "noether $2" ]
  }
  noether init gpt2 --layers 1 --heads 1 --width 8 --context 8 --vocab-size 16 > gpt.h5
  noether init linear-transformer --dimension 2 > wide.h5
  check 2 "train: --optimizer has no effect on a linear transformer, which moves by plain gradient descent" train start.h5 one.h5 --optimizer ecd --steps 2
  check 2 "train: expected one file of prompts for a linear transformer, found 2" train start.h5 one.h5 one.h5 --steps 2
  check 2 "train: give --steps N: how many steps the run is to have" train start.h5 one.h5 -o x.h5
  check 1 "train: one.h5: its x have 1 components, and the model of wide.h5 takes 2" train wide.h5 one.h5 --steps 2 -o x.h5
  check 1 "train: one.h5: expected a tokens file, found a tensors file" train gpt.h5 one.h5 --steps 2 -o x.h5
  check 2 "init: --layers has no effect with linear-transformer" init linear-transformer --layers 2
  check 2 "init: --deviation has no effect without --matrices" init linear-transformer --deviation 1
  check 2 "init: --value has no effect without linear-transformer" init gpt2 --value 1
  check 2 "bifurcate: --count has no effect on prompts from text" bifurcate prompts --count 3 some.txt
  check 1 "bifurcate: some.txt: no such file or directory" bifurcate prompts some.txt
  [ ! -e x.h5 ]
}

@test "its sharpness: that of the two factors, 2 / the learning rate where descent is at the edge" {
  one_prompt
  # At a minimum u w = 1 the Hessian's eigenvalues are u^2 + w^2 and 0: 2.5^2 + 0.4^2.
  noether init linear-transformer --value 2.5 --key-query 0.4 > minimum.h5
  noether eval sharpness minimum.h5 one.h5 --count 2 > table.tsv
  [ "$(head -1 table.tsv | tr '\t' ' ')" = "checkpoint step prompts loss rank eigenvalue residual optimizer learning_rate two_over_lr" ]
  column eigenvalue < table.tsv | awk 'NR == 1 && ($1 - 6.41) ^ 2 > 1e-20 { exit 1 } NR == 2 && $1 ^ 2 > 1e-20 { exit 1 }'
  # Training that settles at a learning rate below 1 ends where the sharpness is below 2 / the learning rate.
  noether init linear-transformer --value 1.4 --key-query 0.1 | noether train - one.h5 --lr 0.9 --steps 2000 -q > end.h5
  noether eval sharpness end.h5 one.h5 | awk -F'\t' 'NR == 2 && !($6 > 1.9 && $6 < $10) { print; exit 1 }'
  noether init gpt2 --layers 1 --width 8 --heads 1 --context 8 --vocab-size 16 > model.h5
  run -1 --separate-stderr noether eval sharpness model.h5 one.h5
  [ "$stderr" = "noether eval: model.h5: expected a linear transformer" ]
  run -2 --separate-stderr noether eval sharpness end.h5 one.h5 --heads heads.tsv
  [ "$stderr" = "noether eval: --heads has no effect on a linear transformer" ]
}
