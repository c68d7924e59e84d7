# Loss curves of training logs: gnuplot -c loss.gp OUTPUT LOG.tsv...
# OUTPUT ends in .png, .svg or .pdf, or is - for a picture of characters on the terminal. The line is the smoothed training loss, the
# points are the validation loss, where the log has any.
if (ARGC < 2) { print "usage: gnuplot -c loss.gp OUTPUT LOG.tsv..."; exit status 2 }
name = ARG1
form = name[strlen(name) - 2 : strlen(name)]
if (name eq "-") {
  set terminal dumb size 100, 28
} else {
  if (form eq "png") { set terminal pngcairo size 900, 600 font "sans,11" }
  if (form eq "svg") { set terminal svg size 900, 600 font "sans,11" }
  if (form eq "pdf") { set terminal pdfcairo size 6, 4 font "sans,10" }
  set output name
}
set datafile separator tab
set datafile missing ""
set key autotitle columnhead
set key top right
set xlabel "step"
set ylabel "loss (nats a token)"
set grid
array logs[ARGC - 1]
do for [i = 2 : ARGC] { logs[i - 1] = value(sprintf("ARG%d", i)) }
title(log) = system(sprintf("basename '%s' .tsv", log))
if (name eq "-") {
  plot for [i = 1 : |logs|] logs[i] using "step":"smoothed_loss" with lines linetype i title title(logs[i])
} else {
  plot for [i = 1 : |logs|] logs[i] using "step":"smoothed_loss" with lines linetype i linewidth 2 title title(logs[i]), \
       for [i = 1 : |logs|] logs[i] using "step":"valid_loss" with points linetype i pointtype 7 title title(logs[i])." (held out)"
}
