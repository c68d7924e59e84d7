# Puzzles of runs (tables of `noether eval puzzles`, named OPTIMIZER-MODE-ACTIVATION-SEED.puzzles.tsv) as a table with a row for what differs
# in more than the seed: means over seeds of the figures over all puzzles, and the standard error of the score.
BEGIN { FS = OFS = "\t" }
FNR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
$column["level"] == "all" {
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\.puzzles\.tsv$/, "", name)
  split(name, part, "-")
  key = part[1] OFS part[2] OFS part[3]
  if (!(key in runs)) order[++keys] = key
  ++runs[key]
  loss[key] += $column["first_token_loss"]
  square[key] += $column["first_token_loss"] ^ 2
  top1[key] += $column["top1"]
  top5[key] += $column["top5"]
  sound[key] += $column["sound_lower"]
}
END {
  print "optimizer", "mode", "activation", "seeds", "first_token_loss", "stderr_seeds", "top1", "top5", "sound_lower"
  for (k = 1; k <= keys; ++k) {
    key = order[k]
    n = runs[key]
    mean = loss[key] / n
    variance = square[key] / n - mean ^ 2
    error = n < 2 ? "" : sprintf("%.3f", sqrt((variance > 0 ? variance : 0) / (n - 1)))
    print key, n, sprintf("%.3f", mean), error, sprintf("%.3f", top1[key] / n), sprintf("%.3f", top5[key] / n), sprintf("%.3f", sound[key] / n)
  }
}
