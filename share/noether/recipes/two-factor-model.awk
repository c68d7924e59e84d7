# Trained models beside the map, for two-factor.mk: a row a claim, its closed form beside what was measured.
BEGIN {
  FS = OFS = "\t"
  closed["catapult"] = 2 * sqrt(2) - 2
  closed["period-2"] = 1
  closed["period-4"] = sqrt(5) - 1
  closed["divergent"] = 2
  print "prompts", "trained", "claim", "map", "measured", "uncertainty"
}
FNR == 1 {
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\.tsv$/, "", name)
}
# Of the ensemble: batch, orbits, escaped.
name == "switching-balance" { if (FNR > 1) share[$2] = $5 / $3; next }
name == "model" {
  if (FNR == 1 || $2 != "factors") next
  key = $1 OFS $2
  if (!(key in runs)) order[++keys] = key
  ++runs[key]
  same[key] += $4 == $7 && $5 == $8
  next
}
name ~ /^begin-/ {
  split(name, part, "-")
  phase = name
  sub(/^begin-[a-z]+-[a-z]+-/, "", phase)
  print part[2], part[3], phase " begins at mu", part[3] == "factors" ? sprintf("%.8g", closed[phase]) : "", $1, $2
}
name ~ /^escapes-/ {
  split(name, part, "-")
  print "two", "factors", "share that diverges, batch " part[2], sprintf("%.4f", share[part[2]]), sprintf("%.4f", $1 / count),
    sprintf("%.2g", sqrt(share[part[2]] * (1 - share[part[2]]) / count))
}
END { for (k = 1; k <= keys; ++k) print order[k], "runs of the map's phase and period", runs[order[k]], same[order[k]], "" }
