# Tables of `noether bifurcate`, made by two-factor.mk, as one: a row a claim, its closed form beside what was measured.
BEGIN {
  FS = OFS = "\t"
  pi = atan2(0, -1)
  print "claim", "at", "closed_form", "measured", "difference", "uncertainty"
}
# The difference is printed where both are there; what is known without its uncertainty is exact up to its digits.
function claim(what, at, closed, measured, uncertainty) {
  print what, at, closed == "" ? "" : sprintf("%.10g", closed), sprintf("%.10g", measured),
    closed == "" ? "" : sprintf("%.2g", measured - closed), uncertainty == "" ? "" : sprintf("%.2g", uncertainty)
}
FNR == 1 {
  delete column
  for (i = 1; i <= NF; ++i) column[$i] = i
  table = FILENAME
  sub(/.*\//, "", table)
  sub(/\.tsv$/, "", table)
  next
}
function cell(name) { return $(column[name]) }
table == "thresholds" {
  # The numbers of the table, but the closed forms written out here.
  if (cell("from") == "monotone") claim("monotone | catapult, 2 sqrt(2) - 2", "", 2 * sqrt(2) - 2, cell("mu"), 1e-12)
  if (cell("to") == "period 2") claim("catapult | period 2, 1", "", 1, cell("mu"), 1e-12)
  if (cell("to") == "period 4") claim("period 2 | period 4, sqrt(5) - 1", "", sqrt(5) - 1, cell("mu"), 1e-12)
  if (cell("to") == "divergent") claim("bounded | divergent, 2", "", 2, cell("mu"), 1e-12)
  if (cell("ratio") != "") ratio = cell("ratio")
  else if (ratio != "") { claim("ratio of doublings, Feigenbaum's 4.669", "last", 4.66920160910299, ratio); ratio = "" }
}
table == "exponents-at-2" {
  claim("exponent along the balanced line, ln 3", "mu 2", log(3), cell("along"), cell("along_stderr"))
  claim("exponent across it, 0", "mu 2", 0, cell("across"), cell("across_stderr"))
}
# The orbit of period 2 in x = a = b: x y = 1 and x^2 + y^2 = mu + 1, so that e1 + e2 = e1 e2 = 1 - mu.
table == "exponents" && sprintf("%.4f", cell("mu")) ~ /^1\.(05|10|15|20)00$/ {
  mu = cell("mu")
  claim("period 2, along, ln |9 - 2 (1 + mu)^2| / 2", "mu " sprintf("%.2f", mu), log(sqrt((9 - 2 * (1 + mu) ^ 2) ^ 2)) / 2, cell("along"), 1e-8)
  claim("period 2, across, ln (3 - 2 mu) / 2", "mu " sprintf("%.2f", mu), log(3 - 2 * mu) / 2, cell("across"), 1e-8)
}
# The balanced attractors between 1 and 2 attract: the largest exponent across, away from the ends, where it comes to 0.
table == "exponents" && cell("mu") > 1.05 && cell("mu") < 1.95 && (most == "" || cell("across") + 0 > most) {
  most = cell("across") + 0
  most_at = cell("mu")
  most_stderr = cell("across_stderr")
}
table == "ellipse" {
  claim("exponent along the ellipse, ln 3", "mu " sprintf("%.1f", cell("mu")), log(3), cell("along"), cell("along_stderr"))
  claim("exponent across it, 2 ln |z|", "mu " sprintf("%.1f", cell("mu")), cell("across_exact"), cell("across"), cell("across_stderr"))
}
table == "sides" { claim("orbits that change the ellipse's side, 0", cell("orbits") " orbits", 0, cell("changes"), 0) }
table == "stable" { claim("largest stable step, 1 - w0^2 / 2", "w0 " cell("w0"), cell("closed_form"), cell("measured"), 1e-7) }
# What does not diverge lies inside the ellipse, all but a set of measure zero.
table ~ /^basin-/ {
  if (cell("fate") == "undecided") bounded = 0
  if (cell("fate") != "diverged") bounded += cell("area")
  else claim("area that does not diverge, 2 pi sqrt(4 - mu^2)", "mu " substr(table, 7), 2 * pi * sqrt(4 - substr(table, 7) ^ 2), bounded, cell("area_error"))
}
table == "switching-noise" {
  claim("share that escapes, nu 0.8 +- 0.8", "batch " cell("batch"), "", cell("probability"), (cell("high") - cell("low")) / 2)
}
table == "switching-balance" && cell("across") != "" {
  claim("exponent across, nu 1.6 or -0.8", "batch " cell("batch"), "", cell("across"), cell("across_stderr"))
}
END { claim("largest exponent across, 1.05 < mu < 1.95, negative", "mu " sprintf("%.3f", most_at), "", most, most_stderr) }
