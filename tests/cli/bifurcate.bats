# What a user of `noether bifurcate` sees.
bats_require_minimum_version 1.5.0
setup() {
  set -o pipefail
  cd "$BATS_TEST_TMPDIR"
}
# The column of this name from a table with a header on stdin, without the header.
column() { awk -F'\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i; next } { print $at }'; }
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(d <= by && -d <= by) }'; }

@test "orbit: a row a step from options, and an orbit a line from stdin" {
  run -0 noether bifurcate orbit --mu 1 --a 2 --b 0.5 --steps 2
  # On the zero-error curve nothing moves.
  [ "${lines[1]}" = $'0\t1\t0\t2\t0.5\t0\t1.5\t0\t0.25' ]
  [ "$(echo "${lines[3]}" | cut -f 4,5)" = $'2\t0.5' ]
  printf '0.8 0.5 0.4\n1.1 3 3\n' | noether bifurcate orbit --steps 30 > table.tsv
  [ "$(column orbit < table.tsv | sort -u | xargs)" = "0 1" ]
  # The first converges; the second diverges, and its rows end there.
  near "$(column e < table.tsv | sed -n 31p)" 0 1e-3
  [ "$(column orbit < table.tsv | grep -c 1)" -lt 20 ]
  # e' = e^3 + (mu - 2) e^2 + (1 - 2 mu - w^2) e
  awk -F'\t' 'NR == 1 || $1 != 0 { next } NR > 2 { d = $6 - expected; if (d > 1e-12 || d < -1e-12) exit 1 }
    { expected = $6 ^ 3 + ($2 - 2) * $6 ^ 2 + (1 - 2 * $2 - $7 ^ 2) * $6 }' table.tsv
}

@test "orbit: a line that is no start is named" {
  run -1 --separate-stderr bash -c "printf '1 0.5 0.5\n1 x 2\n' | noether bifurcate orbit --steps 1 -o none.tsv"
  [ "$stderr" = "noether bifurcate: stdin: line 2: expected mu, a0 and b0, found 1 x 2" ]
  [ ! -e none.tsv ]
  run -1 --separate-stderr bash -c "noether bifurcate orbit < /dev/null"
  [ "$stderr" = "noether bifurcate: stdin: empty; give mu, a0 and b0 a line, or --mu" ]
}

@test "orbit: several prompts are one map of two means, and not with a factor for each" {
  noether bifurcate orbit --mu 1.1 --a 0.9 --b 0.7 --steps 30 > one
  noether bifurcate orbit --mus 0.6,1.1,1.6 --a 0.9 --b 0.7 --steps 30 > several
  paste <(column e < one) <(column e < several) | awk '{ d = $1 - $2; if (d > 1e-12 || d < -1e-12) exit 1 }'
  near "$(column floor < several | head -1)" 0.083333333 1e-9 # the variance of 0.6, 1.1, 1.6, halved
  column errors < several | head -1 | tr , '\n' | paste - <(printf '0.03\n-0.47\n-0.97\n') |
    awk '{ d = $1 - $2; if (d > 1e-12 || d < -1e-12) exit 1 } END { exit NR != 3 }'
  # Minima of all prompts: no loss is left.
  noether bifurcate orbit --mus 0.6,1.1,1.6 --separate --a 0.9 --b 0.2 --steps 400 > separate
  awk -v x="$(column loss < separate | tail -1)" 'BEGIN { exit !(x < 1e-20) }'
  noether bifurcate orbit --mus 0.6,1.1 --scales 1,-2 --separate --steps 3 > scaled
  [ -z "$(column along < scaled | head -1)" ]
  run -2 --separate-stderr noether bifurcate orbit --mus 1,2 --scales 1
  [ "$stderr" = "noether bifurcate: --scales: expected 2 numbers, as --mus has, found 1" ]
  run -2 --separate-stderr noether bifurcate orbit --mu 1 --separate
  [ "$stderr" = "noether bifurcate: --separate has no effect without --mus" ]
  run -2 --separate-stderr noether bifurcate orbit --mus 1,,2
  [ "$stderr" = "noether bifurcate: --mus: expected numbers with commas between them, found 1,,2" ]
}

@test "lyapunov: ln 3 at mu = 2, the ellipse's repulsion, and the same for any number of threads" {
  noether bifurcate lyapunov --mu 2 > table.tsv
  near "$(column along < table.tsv)" 1.0986123 "$(column along_stderr < table.tsv | awk '{ print 4 * $1 }')"
  noether bifurcate lyapunov --mu 0.5:1.5:3 --on ellipse > table.tsv
  paste <(column across < table.tsv) <(column across_exact < table.tsv) <(column across_stderr < table.tsv) |
    awk '{ d = $1 - $2; if (d > 4 * $3 || d < -4 * $3) exit 1 }'
  noether bifurcate lyapunov --mu 1.4:1.9:5 -j 1 --json > one
  noether bifurcate lyapunov --mu 1.4:1.9:5 -j 3 --json > three
  cmp one three
  [ "$(noether bifurcate lyapunov --mu 0.5 | column along)" = -inf ]
}

@test "phases: thresholds beside their closed forms, and a phase for each mu" {
  noether bifurcate phases > table.tsv
  column difference < table.tsv | grep -v '^$' | awk '{ if ($1 > 1e-9 || $1 < -1e-9) exit 1; ++n } END { exit n != 4 }'
  near "$(column ratio < table.tsv | grep -v '^$' | tail -1)" 4.669 0.001
  noether bifurcate phases --mu 0.5:2.1:5 > table.tsv
  [ "$(column phase < table.tsv | xargs)" = "monotone catapult periodic periodic divergent" ]
  [ "$(column period < table.tsv | xargs)" = "1 1 16 3" ] # at 1.7 the window of period 3
  [ "$(noether bifurcate phases --mu 1.9 | column phase)" = chaotic ]
  [ "$(noether bifurcate phases --mu 1.25 | column period)" = 4 ]
}

@test "phases: periodic windows, and the doublings of another map" {
  noether bifurcate phases --windows --longest 3 > table.tsv
  # The widest, as intervals of one period show them.
  grep -P '^3\t\ttangent\t1\.4504' table.tsv
  grep -P '^2\t\ttangent\t1\.828' table.tsv
  noether bifurcate phases --windows --map 'mu x (1 - x)' --mu 3.5:4 --longest 5 -j 1 > one
  noether bifurcate phases --windows --map 'mu x (1 - x)' --mu 3.5:4 --longest 5 -j 3 > three
  cmp one three
  [ "$(column period < one | xargs)" = "5 3 5 4 5" ]
  near "$(column opens < one | sed -n 2p)" 3.82842712474619 1e-11
  noether bifurcate phases --map 'mu x (1 - x)' --mu 2.8:4 --doublings 7 > table.tsv
  near "$(column mu < table.tsv | sed -n 1p)" 3 1e-9
  near "$(column mu < table.tsv | sed -n 2p)" 3.44948974278318 1e-9
  near "$(column ratio < table.tsv | tail -1)" 4.669 0.002
  # A cycle through a critical point: -inf.
  [ "$(noether bifurcate phases --mu 0.5 | column exponent)" = -inf ]
  [ "$(noether bifurcate phases --map 'mu x (1 - x)' --mu 2 | column exponent)" = -inf ]
  [ "$(noether bifurcate lyapunov --map 'mu x (1 - x)' --mu 2 | column superstable)" = 32 ]
}

@test "diagram: the kept steps of each mu, none where it diverges, and a picture of the size asked for" {
  noether bifurcate diagram --mu 1.1:2.1:11 --keep 3 --plot a.png --height 50 > table.tsv
  [ "$(column mu < table.tsv | sort -u | wc -l)" = 10 ] # not 2.1
  [ "$(column step < table.tsv | head -3 | xargs)" = "1001 1002 1003" ]
  # Period 2 at 1.1.
  [ "$(column e < table.tsv | sed -n 1p | cut -c 1-9)" = "$(column e < table.tsv | sed -n 3p | cut -c 1-9)" ]
  [ "$(column e < table.tsv | sed -n 1p | cut -c 1-9)" != "$(column e < table.tsv | sed -n 2p | cut -c 1-9)" ]
  [ "$(od -An -t x1 -j 16 -N 8 a.png | tr -d ' ')" = 0000000b00000032 ]
  noether bifurcate diagram --mu 0:2:300 -j 1 > one
  noether bifurcate diagram --mu 0:2:300 -j 3 > three
  cmp one three
  run -1 --separate-stderr noether bifurcate diagram --mu 3 --plot none.png -o none.tsv
  [ "$stderr" = "noether bifurcate: every orbit diverged: there is nothing to draw" ]
  [ ! -e none.tsv ]
}

@test "--map: the cubic from text gives the same bytes; the logistic map's phases and ln 2; branches that coexist" {
  cubic='x^3 + (mu - 2) x^2 + (1 - 2 mu) x'
  noether bifurcate diagram --mu 1.1:2.1:300 --keep 20 > own
  noether bifurcate diagram --map "$cubic" --mu 1.1:2.1:300 --keep 20 | sed '1s/x/e/' > text
  cmp own text
  noether bifurcate phases --mu 1.05:1.95:10 > own
  noether bifurcate phases --map "$cubic" --mu 1.05:1.95:10 > text
  [ "$(column exponent < own | xargs)" = "$(column exponent < text | xargs)" ]
  noether bifurcate phases --map 'mu x (1 - x)' --mu 3.2:4.2:6 > table.tsv
  [ "$(column phase < table.tsv | xargs)" = "periodic periodic chaotic chaotic chaotic divergent" ]
  noether bifurcate lyapunov --map 'mu x (1 - x)' --mu 4 > table.tsv
  near "$(column exponent < table.tsv)" 0.69314718 "$(column exponent_stderr < table.tsv | awk '{ print 4 * $1 }')"
  # No mu: a Chebyshev polynomial.
  noether bifurcate lyapunov --map '8 x^4 - 8 x^2 + 1' > table.tsv
  near "$(column exponent < table.tsv)" 1.38629436 "$(column exponent_stderr < table.tsv | awk '{ print 4 * $1 }')"
  noether bifurcate diagram --map 'x^3 - mu x' --mu 1.5:2.2:2 --keep 4 --plot a.png > table.tsv
  [ "$(column branches < table.tsv | xargs)" = "1 1 1 1 2 2 2 2 2 2 2 2" ]
  [ "$(column branch < table.tsv | xargs)" = "1 1 1 1 1 1 1 1 2 2 2 2" ]
  noether bifurcate diagram --start 0.1 --start 0.2 --mu 1.1:2.1:50 -j 1 > one
  noether bifurcate diagram --start 0.1 --start 0.2 --mu 1.1:2.1:50 -j 3 > three
  cmp one three
  [ "$(column branches < one | sort -u)" = 1 ]
}

@test "switching: larger batches escape less; the histogram adds up; the same for any number of threads" {
  options=(--nu-deviation 0.6 --batch 1 --batch 4 --orbits 2000 --steps 200 --kappa-deviation 0.1)
  noether bifurcate switching "${options[@]}" --histogram first.tsv -j 1 > one
  noether bifurcate switching "${options[@]}" -j 3 > three
  cmp one three
  column probability < one | xargs | awk '{ exit !($1 > 2 * $2) }'
  paste <(column low < one) <(column probability < one) <(column high < one) | awk '!($1 <= $2 && $2 <= $3) { exit 1 }'
  [ "$(awk -F'\t' '$1 == 1 { n += $3 } END { print n }' first.tsv)" = "$(column escaped < one | head -1)" ]
  noether bifurcate switching "${options[@]}" --draw two-point --seed 3 > other
  ! cmp -s one other || false
  run -2 --separate-stderr noether bifurcate switching --batch 0
  [ "$stderr" = "noether bifurcate: --batch: expected a whole number from 1 to 1048576, found 0" ]
}

@test "classify: what an orbit did, from a table or plain numbers; each wrong line is named" {
  courses() { for mu in "$@"; do noether bifurcate orbit --mu "$mu" --a 1.2 --b 1.2 --steps 3000 | noether bifurcate classify --column loss | column course; done | xargs; }
  [ "$(courses 0.4 0.95 1.15 1.9 2.3)" = "monotone catapult periodic chaotic divergent" ]
  noether bifurcate orbit --mu 1.25 --a 1.1 --b 1.1 --steps 5000 > orbit.tsv
  seq 20 -1 1 > falling
  noether bifurcate classify orbit.tsv --column e | column period | grep -qx 4
  [ "$(noether bifurcate classify falling orbit.tsv | column course | xargs)" = "monotone periodic" ]
  run -1 --separate-stderr noether bifurcate classify orbit.tsv --column los
  [[ "$stderr" == "noether bifurcate: orbit.tsv: no column los (did you mean loss?)"* ]]
  printf '1\n2\nx\n' > wrong
  run -1 --separate-stderr noether bifurcate classify wrong
  [ "$stderr" = "noether bifurcate: wrong: line 3: expected a number, found x" ]
  run -1 --separate-stderr noether bifurcate classify missing.tsv
  [ "$stderr" = "noether bifurcate: missing.tsv: no such file or directory" ]
  run -1 --separate-stderr bash -c 'seq 3 | noether bifurcate classify'
  [ "$stderr" = "noether bifurcate: stdin: expected 8 values or more, found 3" ]
}

@test "basins: the ellipse's area, a picture of the size asked for, a grid that others read; the same for any number of threads" {
  noether bifurcate basins --mu 0.8 --size 300x200 --plot a.png --grid a.h5 -j 1 > one
  noether bifurcate basins --mu 0.8 --size 300x200 --plot b.png --grid b.h5 -j 3 > three
  cmp one three
  cmp a.png b.png
  h5diff a.h5 b.h5 /basins
  # 2 pi sqrt(4 - mu^2)
  near "$(awk -F'\t' '$1 == "converged" { print $4 }' one)" 11.5169 "$(awk -F'\t' '$1 == "converged" { print $5 }' one)"
  # Width and height are at bytes 16 to 23 of a PNG file. A blank picture of this size takes less than 2000 bytes.
  [ "$(od -An -t x1 -j 16 -N 8 a.png | tr -d ' ')" = 0000012c000000c8 ]
  [ "$(wc -c < a.png)" -gt 10000 ]
  run -0 h5dump -H -d /basins/steps a.h5
  [[ "$output" == *"( 200, 300 )"* ]]
  run -0 noether bifurcate basins --over-mu --size 40 --steps 500
  [ "$(echo "$output" | awk -F'\t' 'NR > 1 { n += $2 } END { print n }')" = 1600 ]
}

@test "--plot: every subcommand draws, by the name's ending; a rough picture in the terminal; --picture is its old name" {
  noether bifurcate diagram --map 'x^3 - mu x' --mu 2.1:2.3:60 --keep 8 --plot - -o table.tsv > sketch
  grep -q '\*' sketch
  grep -q 2 sketch # the second branch
  [ "$(wc -l < sketch)" = 31 ]
  noether bifurcate basins --mu 0.8 --size 100 --plot - -o table.tsv > sketch
  grep -q '\.\.\.\.\.' sketch
  # In the middle it converges, in the corners it diverges.
  [ "$(sed -n 16p sketch | cut -c 50-54)" = "....." ]
  [ "$(sed -n 2p sketch | cut -c 6-10)" = "     " ]
  run -0 --separate-stderr noether bifurcate basins --size 20 --picture old.png
  [ "$stderr" = "bifurcate: --picture is called --plot now" ]
  noether bifurcate basins --size 20 --plot new.png
  cmp old.png new.png
  run -2 --separate-stderr noether bifurcate basins --plot a.jpg
  [ "$stderr" = "noether bifurcate: a.jpg: expected a picture's name, which ends in .png, .svg or .pdf, or -" ]
  run -2 --separate-stderr noether bifurcate phases --plot a.png
  [ "$stderr" = "noether bifurcate: --plot has no effect without --mu" ]
  command -v gnuplot || skip "no gnuplot"
  noether bifurcate basins --size 100 --plot a.svg > table.tsv
  noether bifurcate diagram --mu 1:2:100 --plot b.svg > table.tsv
  noether bifurcate orbit --mu 1.8 --plot c.svg > table.tsv
  noether bifurcate orbit --mus 0.5,1.5 --plot d.svg > table.tsv
  noether bifurcate lyapunov --mu 1:2:10 --steps 1000 --plot e.svg > table.tsv
  noether bifurcate lyapunov --map 'x^3 - mu x' --mu 2:3:4 --steps 1000 --plot f.svg > table.tsv
  noether bifurcate phases --mu 0.5:2.1:20 --plot g.svg > table.tsv
  noether bifurcate switching --batch 1 --batch 2 --nu-deviation 0.8 --orbits 100 --plot h.svg > table.tsv
  for name in a b; do grep -q '<image' $name.svg; done
  grep -q 'prompt 2: 1.5' d.svg
  grep -q 'branch 2' f.svg
  grep -q divergent g.svg
  grep -q 'batch 2' h.svg
  noether bifurcate basins --size 100 --plot a.pdf > table.tsv
  [ "$(head -c 4 a.pdf)" = %PDF ]
  [ "$(wc -c < a.pdf)" -gt 5000 ]
  noether bifurcate lyapunov --mu 1:2:10 --steps 1000 --plot e.png > table.tsv
  [ "$(od -An -t x1 -j 16 -N 8 e.png | tr -d ' ')" = 000003e800000280 ]
}

@test "basins of several mu: a stack, as tables, grid and picture; each layer that of its mu" {
  noether bifurcate basins --mu 0.4:1.6:3 --size 60x40 --grid stack.h5 --plot stack.png > table.tsv
  noether bifurcate basins --mu 1 --size 60x40 --grid one.h5 > one.tsv
  [ "$(awk -F'\t' 'NR > 1' one.tsv)" = "$(awk -F'\t' '$6 == 1' table.tsv)" ]
  [ "$(wc -l < table.tsv)" = 13 ]
  h5dump -H -d /basins/fate stack.h5 | grep -q '( 3, 40, 60 )'
  h5dump -d /basins/mu -y stack.h5 | grep -q '0.4, 1, 1.6'
  numbers() { sed -n '/DATA {/,/^   }/p' | grep -o '[0-9]\+'; }
  h5dump -y -w 0 -d /basins/steps -s 1,0,0 -c 1,40,60 stack.h5 | numbers > layer
  h5dump -y -w 0 -d /basins/steps one.h5 | numbers > single
  [ "$(wc -l < single)" = 2400 ]
  cmp layer single
  # 60 and 20 aside; 20 tall and two gaps of 10.
  [ "$(od -An -t x1 -j 16 -N 8 stack.png | tr -d ' ')" = 0000005000000028 ]
  noether bifurcate basins --mu 0.4:1.6:3 --size 60 --plot - > sketch
  [ "$(grep -c '^mu = ' sketch)" = 3 ]
  command -v gnuplot || skip "no gnuplot"
  noether bifurcate basins --mu 0.4:1.6:3 --size 60 --plot stack.svg > table.tsv
  grep -q 'mu = 1.6' stack.svg
}

@test "a misuse ends with 2 and one line that says what to do" {
  check() {
    run -2 --separate-stderr noether bifurcate "${@:2}"
    [ -z "$output" ]
    [ "$stderr" = "noether bifurcate: $1" ]
  }
  check "expected a subcommand: orbit, lyapunov, phases, diagram, switching, classify, basins or prompts"
  check "--mu: expected a number, or FIRST:LAST:COUNT with 2 or more in rising order, found 2:1:5" phases --mu 2:1:5
  check "--mu: phases are defined for mu above 0, found -1" phases --mu=-1
  check "--mu: the ellipse is there for 0 < mu < 2, found 2.5" lyapunov --mu 2.5 --on ellipse
  check "--x: expected LOW:HIGH, found 3" basins --x 3
  check "--size: expected N or WIDTHxHEIGHT up to 1000000, found 0" basins --size 0
  check "--doublings has no effect with --mu" phases --mu 1 --doublings 3
  check "--offset has no effect without --over-mu" basins --offset 1
  check '--map: expected a number, x, mu or ( at character 7 of "x^2 + c", found c' diagram --map 'x^2 + c' --mu 1
  check "--mu: expected X or FIRST:LAST:COUNT, for the map has a mu in it" diagram --map 'mu x'
  check "--mu has no effect on a map without mu in it" phases --map 'x^2 - 1' --mu 1
  check "--windows: expected --mu LOW:HIGH beside --map" phases --map 'mu x' --windows
  check "--windows has no effect on a map without mu in it" phases --map 'x^2 - 1' --windows
  check "--longest: expected 2 to 32 with --windows, found 64" phases --windows --longest 64
  check "--steps has no effect with --windows" phases --windows --steps 64
  check "--doublings: expected --mu LOW:HIGH and a --map with mu in it" phases --map 'mu x' --doublings 3
  check "--on has no effect with --map" lyapunov --map 'x^2 - 1' --on balanced
  check "--height has no effect with --plot -" diagram --plot - --height 30
  check "--e has no effect without --plot" diagram --e 0:1
  check "--start: expected a finite number, found nan" diagram --start 0 --start nan
  run -2 --separate-stderr noether bifurcate orbit --mu nan
  [[ "$stderr" == "noether bifurcate: --mu: expected a finite number"* ]]
  run -1 --separate-stderr noether bifurcate basins --size 1000000
  [[ "$stderr" == "noether bifurcate: a grid of 1000000 x 1000000 needs 6000000000000 bytes of memory, and there are "* ]]
}

@test "a table to FILE.h5: a dataset for each column, the same digits, and how it was made" {
  noether bifurcate lyapunov --mu 1.5:2:3 --steps 1000 > table.tsv
  noether bifurcate lyapunov --mu 1.5:2:3 --steps 1000 -o table.h5
  for name in $(head -1 table.tsv); do h5dump -H -d "/table/$name" table.h5 | grep -q "( 3 )"; done
  [ "$(h5dump -a /noether_kind table.h5 | grep -c '"table"')" -eq 1 ]
  h5dump -d /provenance table.h5 > made
  grep -q '1.5:2:3' made
  h5dump -d "/table/mu" -y table.h5 | grep -q '1.5, 1.75, 2'
  run -2 --separate-stderr noether bifurcate lyapunov --mu 1.5:2:3 --steps 1000 --json -o x.h5
  [ "$stderr" = "noether bifurcate: --json has no effect with -o x.h5, an HDF5 file" ]
  [ ! -e x.h5 ]
  run -1 --separate-stderr noether bifurcate lyapunov --mu 1.5:2:3 --steps 1000 -o nowhere/x.h5
  [ "$stderr" = "noether bifurcate: nowhere/x.h5: no such folder" ]
}
