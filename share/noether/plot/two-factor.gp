# Figures of recipes/two-factor.mk: gnuplot -c two-factor.gp FIGURE OUTPUT TABLE.tsv...
# FIGURE is courses, diagram, window, exponents, escape or model; OUTPUT ends in .png, .svg or .pdf, or is - for a picture of characters.
if (ARGC < 3) { print "usage: gnuplot -c two-factor.gp FIGURE OUTPUT TABLE.tsv..."; exit status 2 }
figure = ARG1
name = ARG2
form = name[strlen(name) - 2 : strlen(name)]
if (name eq "-") {
  set terminal dumb size 100, 28
} else {
  if (form eq "png") { set terminal pngcairo size 1000, 640 font "sans,11" }
  if (form eq "svg") { set terminal svg size 1000, 640 font "sans,11" }
  if (form eq "pdf") { set terminal pdfcairo size 6, 3.8 font "sans,9" }
  set output name
}
set datafile separator tab
set datafile missing ""
set key top right
# Colours that survive colour blindness (Okabe and Ito).
blue = "#0072b2"; orange = "#e69f00"; green = "#009e73"; red = "#d55e00"; pink = "#cc79a7"; sky = "#56b4e9"; grey = "#999999"
array thresholds[4] = [2 * sqrt(2) - 2, 1, sqrt(5) - 1, 2]
do for [i = 1 : 4] { set arrow i from first thresholds[i], graph 0 to first thresholds[i], graph 1 nohead dashtype 3 linecolor rgb grey }
set xlabel "{/Symbol m}"

if (figure eq "courses") {
  unset arrow
  array mus[6] = ["0.5", "0.95", "1.15", "1.26", "1.8", "2.02"]
  array names[6] = ["monotone", "catapult", "period 2", "period 4", "chaotic", "divergent"]
  array colours[6] = [blue, sky, green, orange, pink, red]
  set xlabel "step"
  set ylabel "loss e^2 / 2"
  set logscale y
  set format y "10^{%L}"
  set yrange [1e-8 : 1e2]
  set key bottom left
  plot for [i = 1 : 6] ARG3 using ($1 == i - 1 ? $3 : NaN):8 with linespoints pointtype 7 pointsize 0.4 linecolor rgb colours[i] \
    title "{/Symbol m} = ".mus[i]." ".names[i]
}
if (figure eq "diagram" || figure eq "window") {
  set ylabel "e"
  set autoscale xfix
  if (figure eq "window") { unset arrow }
  plot ARG3 using 1:3 every ::1 with dots linecolor rgb blue notitle
}
if (figure eq "exponents") {
  set ylabel "nats a step"
  set yrange [-3 : 1.3]
  set key bottom left
  set xzeroaxis
  plot ARG3 using 1:3 every ::1 with lines linecolor rgb blue linewidth 1.5 title "along the balanced line", \
       ARG3 using 1:5 every ::1 with lines linecolor rgb orange linewidth 1.5 title "across it", \
       log(3) with lines dashtype 2 linecolor rgb grey title "ln 3"
}
if (figure eq "escape") {
  unset arrow
  set xlabel "batch"
  set logscale x 2
  set multiplot layout 1, 2
  set ylabel "share that escapes in 1000 steps"
  set yrange [-0.05 : 1.05]
  plot ARG3 using 2:6:7:8 every ::1 with yerrorlines pointtype 7 linecolor rgb blue title "{/Symbol n} = 0.8 {/Symbol \261} 0.8"
  set ylabel "exponent across the balanced line"
  set autoscale y
  set xzeroaxis
  plot ARG4 using 2:10:11 every ::1 with yerrorlines pointtype 7 linecolor rgb orange title "{/Symbol n} = 1.6 or -0.8"
  unset multiplot
}
if (figure eq "model") {
  # The map's attractor with what the trained model's errors came through; below, what each run did.
  set multiplot layout 2, 1
  set lmargin 12
  set rmargin 3
  set xrange [0 : 2.1]
  unset xlabel
  set ylabel "e"
  set yrange [-2.1 : 2.1]
  set key top left
  plot ARG3 using 1:3 every ::1 with dots linecolor rgb sky title "the map", \
       ARG4 using 1:2 with points pointtype 7 pointsize 0.25 linecolor rgb red title "the trained model, one prompt"
  rank(course) = course eq "monotone" ? 0 : course eq "catapult" ? 1 : course eq "periodic" ? 2 : course eq "chaotic" ? 3 : course eq "divergent" ? 4 : NaN
  run(set, kind, shift) = strcol(1) eq set && strcol(2) eq kind ? rank(strcol(4)) + shift : NaN
  set xlabel "learning rate, in {/Symbol m}"
  unset ylabel
  set yrange [-0.5 : 4.7]
  set ytics ("monotone" 0, "catapult" 1, "periodic" 2, "chaotic" 3, "divergent" 4)
  set key bottom right
  plot ARG5 using 3:(strcol(1) eq "one" ? rank(strcol(7)) : NaN) every ::1 with points pointtype 2 linecolor rgb sky title "the map", \
       ARG5 using 3:(run("one", "factors", 0.12)) every ::1 with points pointtype 7 pointsize 0.5 linecolor rgb red title "two factors, 1 prompt", \
       ARG5 using 3:(run("many", "factors", 0.24)) every ::1 with points pointtype 7 pointsize 0.5 linecolor rgb blue title "two factors, 64 prompts", \
       ARG5 using 3:(run("many", "matrices", 0.36)) every ::1 with points pointtype 9 pointsize 0.6 linecolor rgb green title "matrices, 64 prompts", \
       ARG5 using 3:(run("thousand", "matrices", 0.48)) every ::1 with points pointtype 9 pointsize 0.6 linecolor rgb orange title "matrices, 1000 prompts"
  unset multiplot
}
