# Scores of runs (tables of `noether eval loss`, named OPTIMIZER-MODE-ACTIVATION-SEED[@SETTING=VALUE...].loss.tsv) as a table with a row for
# what differs in more than the seed: the mean over seeds, and its standard error where there are several.
BEGIN { FS = OFS = "\t" }
FNR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
{
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\.loss\.tsv$/, "", name)
  settings = ""
  if (at = index(name, "@")) {
    settings = substr(name, at + 1)
    gsub("@", " ", settings)
    name = substr(name, 1, at - 1)
  }
  split(name, part, "-")
  key = part[1] OFS part[2] OFS part[3] OFS settings
  if (!(key in runs)) order[++keys] = key
  ++runs[key]
  loss[key] += $column["loss"]
  square[key] += $column["loss"] ^ 2
  documents[key] += $column["loss_stderr"]
  bits[key] += $column["bits_per_byte"]
  least[key] += $column["min_batch_4096"]
}
END {
  print "optimizer", "mode", "activation", "settings", "seeds", "loss", "stderr_seeds", "stderr_documents", "perplexity", "bits_per_byte",
    "min_batch_4096"
  for (k = 1; k <= keys; ++k) {
    key = order[k]
    n = runs[key]
    mean = loss[key] / n
    variance = square[key] / n - mean ^ 2
    error = n < 2 ? "" : sprintf("%.4f", sqrt((variance > 0 ? variance : 0) / (n - 1)))
    print key, n, sprintf("%.4f", mean), error, sprintf("%.4f", documents[key] / n), sprintf("%.2f", exp(mean)),
      sprintf("%.4f", bits[key] / n), sprintf("%.4f", least[key] / n)
  }
}
