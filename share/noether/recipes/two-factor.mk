# What "Large-Step Training Dynamics of a Two-Factor Linear Transformer Model" (arXiv 2605.21292) says of the two-factor map and of training,
# measured: a table of measured values beside their closed forms, and the figures.
#
#   make -f two-factor.mk -j2             everything: three minutes of two cores
#   make -f two-factor.mk map             what needs no training: under half a minute
#   make -f two-factor.mk FORM=pdf        figures as svg, pdf or png
#   make -f two-factor.mk out/basin-0.8.png OUT=out
#
# share/noether/doc/two-factor.md shows what comes out. Besides noether it needs gnuplot, and h5dump for the trained models.

OUT ?= two-factor
FORM ?= png
THREADS ?= 0
NOETHER ?= noether
HERE := $(dir $(lastword $(MAKEFILE_LIST)))
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# Where basins are drawn and measured; imbalances at which the largest stable mu is looked for; batches of the switching ensembles; points of
# a basin along each side; steps of each of an exponent's orbits.
BASINS ?= 0.4 0.8 1.2 1.6
IMBALANCES ?= 0 0.25 0.5 0.75 1 1.25
BATCHES ?= 1 2 4 8 16 32 64
SIZE ?= 1000
STEPS ?= 100000

# Trained models: mu at which they are trained, steps of a run, runs with random batches. Sets of prompts: one with s = y = 1; many, with two
# inputs; a thousand, with one.
MUS ?= $(shell seq 0.03 0.03 2.1)
MATRIX_MUS ?= $(shell seq 0.03 0.03 1.08)
TRAIN_STEPS ?= 6000
LONG_STEPS ?= 50000
RUNS ?= 100
PROMPTS_many ?= --count 64 --pairs 32 --dimension 2 --noise 0.1 --seed 1
PROMPTS_thousand ?= --count 1000 --pairs 64 --dimension 1 --noise 0.1 --seed 5

bifurcate := $(NOETHER) bifurcate
run = NOETHER='$(NOETHER)' $(HERE)two-factor-run.sh
plot = gnuplot -c $(HERE)../plot/two-factor.gp
claims := thresholds exponents-at-2 exponents ellipse sides stable $(BASINS:%=basin-%)
figures := courses diagram window exponents escape

.DELETE_ON_ERROR:
.PHONY: all map
all: map $(OUT)/model.tsv $(OUT)/model-claims.tsv $(OUT)/model.$(FORM)
	@column -t -s '	' $(OUT)/model-claims.tsv

map: $(OUT)/claims.tsv $(OUT)/phases.tsv $(OUT)/windows.tsv $(figures:%=$(OUT)/%.$(FORM)) $(BASINS:%=$(OUT)/basin-%.png) $(OUT)/minima.png
	@column -t -s '	' $<

$(OUT):
	@mkdir -p $@

# One row a claim: what, where, its closed form, what was measured, and how far that may be off.
$(OUT)/claims.tsv: $(claims:%=$(OUT)/%.tsv) $(OUT)/switching-noise.tsv $(OUT)/switching-balance.tsv
	awk -f $(HERE)two-factor.awk $^ > $@

# Section 3: the cubic map on the balanced line.
$(OUT)/thresholds.tsv: | $(OUT)
	$(bifurcate) phases -o $@
$(OUT)/phases.tsv: | $(OUT)
	$(bifurcate) phases --mu 0.01:2.1:210 -o $@
$(OUT)/exponents.tsv: | $(OUT)
	$(bifurcate) lyapunov --mu 0.005:2:400 -j $(THREADS) -o $@
$(OUT)/exponents-at-2.tsv: | $(OUT)
	$(bifurcate) lyapunov --mu 2 --blocks 100 --steps $(STEPS) -j $(THREADS) -o $@
$(OUT)/diagram.tsv: | $(OUT)
	$(bifurcate) diagram --mu 0.5:2:1501 --keep 100 -j $(THREADS) -o $@
$(OUT)/window.tsv: | $(OUT)
	$(bifurcate) diagram --mu 1.44:1.48:1401 --transient 5000 --keep 100 -j $(THREADS) -o $@

$(OUT)/windows.tsv: | $(OUT)
	$(bifurcate) phases --windows -j $(THREADS) -o $@

# Section 2: at an imbalance w0 the error beside the zero-error curve is multiplied by 1 - 2 mu - w0^2; where that is -1 it stops shrinking.
$(OUT)/stable.tsv: | $(OUT)
	awk -v list='$(IMBALANCES)' 'BEGIN { n = split(list, w, " "); for (i = 1; i <= n; ++i) for (m = 1; m <= 110; ++m) { \
	  mu = m / 100; b = (sqrt(w[i] ^ 2 + 4 * (mu + 1e-7)) - w[i]) / 2; printf "%.17g %.17g %.17g\n", mu, b + w[i], b } }' | \
	  $(bifurcate) orbit --steps 1 | \
	  awk -F '	' -v OFS='	' 'BEGIN { print "w0", "closed_form", "measured" } NR == 1 { next } \
	    $$3 == 0 { e = $$6; w = sprintf("%.6g", $$7); next } { ratio = $$6 / e; \
	    if (w == old && before > -1 && ratio <= -1) { at = mu + ($$2 - mu) * (before + 1) / (before - ratio); print w, 1 - w ^ 2 / 2, sprintf("%.8f", at) } \
	    old = w; before = ratio; mu = $$2 }' > $@

# Section 4: the ellipse. Its sides are kept: of orbits from random points the sign of the last column must not change.
$(OUT)/ellipse.tsv: | $(OUT)
	$(bifurcate) lyapunov --on ellipse --mu 0.1:1.9:19 --steps $(STEPS) -j $(THREADS) -o $@
$(OUT)/sides.tsv: | $(OUT)
	awk 'BEGIN { srand(1); for (i = 0; i < 2000; ++i) print 2 * rand(), 5 * rand() - 2.5, 5 * rand() - 2.5 }' | $(bifurcate) orbit --steps 100 | \
	  awk -F '	' -v OFS='	' 'NR == 1 { next } $$3 == 0 { ++orbits; side = $$9 < 0; inside += side; next } ($$9 < 0) != side { ++changes } \
	    { ++steps } END { print "orbits", "inside", "steps", "changes"; print orbits, inside, steps, changes + 0 }' > $@
$(OUT)/basin-%.tsv $(OUT)/basin-%.png &: | $(OUT)
	$(bifurcate) basins --mu $* --x=-2.2:2.2 --y=-2.2:2.2 --size $(SIZE) --plot $(OUT)/basin-$*.png -j $(THREADS) -o $(OUT)/basin-$*.tsv
$(OUT)/minima.png: | $(OUT)
	$(bifurcate) basins --over-mu --x 0:2.1 --y=-2:2 --size $(SIZE) --plot $@ -j $(THREADS) -o $(OUT)/minima.tsv

# Section 5: mini-batches. Noise about a stable step that drives orbits out; and noise under which the balanced line no longer attracts.
$(OUT)/switching-noise.tsv: | $(OUT)
	$(bifurcate) switching --mu 0.8 --nu-deviation 0.8 $(BATCHES:%=--batch %) -j $(THREADS) --histogram $(OUT)/first-escapes.tsv -o $@
$(OUT)/switching-balance.tsv: | $(OUT)
	$(bifurcate) switching --mu 0.4 --nu-deviation 1.2 --draw two-point --a 0.64 --b 0.62 --steps 200 $(BATCHES:%=--batch %) -j $(THREADS) -o $@

# One orbit for each phase.
$(OUT)/courses.tsv: | $(OUT)
	for mu in 0.5 0.95 1.15 1.26 1.8 2.02; do echo $$mu 0.3 0.29; done | $(bifurcate) orbit --steps 60 -o $@

$(OUT)/courses.$(FORM) $(OUT)/diagram.$(FORM) $(OUT)/window.$(FORM) $(OUT)/exponents.$(FORM): $(OUT)/%.$(FORM): $(OUT)/%.tsv
	$(plot) $* $@ $<
$(OUT)/escape.$(FORM): $(OUT)/switching-noise.tsv $(OUT)/switching-balance.tsv
	$(plot) escape $@ $^

# The trained model. On one prompt, and on many with two factors, it is the map; with both matrices it is not.
prompts := $(OUT)/model/one.h5 $(OUT)/model/two.h5 $(OUT)/model/many.h5 $(OUT)/model/thousand.h5
moments := $(prompts:%.h5=%.moments.tsv)
logs := $(foreach m,$(MUS),one-factors@$m many-factors@$m) $(foreach m,$(MATRIX_MUS),many-matrices@$m thousand-matrices@$m)
.SECONDARY:
$(OUT)/model/one.h5:
	@mkdir -p $(@D)
	printf '1 1\n1 1\n' | $(bifurcate) prompts - -o $@
$(OUT)/model/two.h5:
	@mkdir -p $(@D)
	printf '1 1\n1 1.6\n\n1 1\n1 -0.8\n' | $(bifurcate) prompts - -o $@
$(OUT)/model/many.h5 $(OUT)/model/thousand.h5: $(OUT)/model/%.h5:
	@mkdir -p $(@D)
	$(bifurcate) prompts $(PROMPTS_$*) -o $@
$(moments): %.moments.tsv: %.h5
	$(run) moments $<
set = $(OUT)/model/$(firstword $(subst -, ,$1))
.SECONDEXPANSION:
$(logs:%=$(OUT)/model/%.tsv): $(OUT)/model/%.tsv: $$(call set,$$*).h5 $$(call set,$$*).moments.tsv
	@$(run) train $< $(word 2,$(subst -, ,$(subst @,-,$*))) $(lastword $(subst @, ,$*)) $(TRAIN_STEPS) $@

# A row a run: what its loss did, beside what the balanced map does at its mu.
$(OUT)/model.tsv: $(logs:%=$(OUT)/model/%.tsv)
	(for mu in $(MUS); do $(bifurcate) phases --mu $$mu | tail -1; done; $(bifurcate) classify --limit 1e6 $^) | \
	  awk -F '	' -v OFS='	' 'BEGIN { print "prompts", "trained", "mu", "course", "period", "last_loss", "map", "map_period" } \
	    $$1 == "series" { next } $$1 + 0 > 0 { phase[$$1 + 0] = $$2; period[$$1 + 0] = $$3; next } \
	    { name = $$1; sub(/.*\//, "", name); sub(/\.tsv$$/, "", name); split(name, part, /[-@]/); mu = part[3] + 0; \
	      print part[1], part[2], part[3], $$2, $$3, $$8, phase[mu], period[mu] == 1 ? "" : period[mu] }' > $@
# The errors e that the last steps came through, with one prompt.
$(OUT)/model-errors.tsv: $(OUT)/model.tsv
	for mu in $(MUS); do awk -F '	' -v OFS='	' -v mu=$$mu '$$1 > $(TRAIN_STEPS) - 60 { print mu, $$10 }' $(OUT)/model/one-factors@$$mu.tsv; done > $@
$(OUT)/model.$(FORM): $(OUT)/diagram.tsv $(OUT)/model-errors.tsv $(OUT)/model.tsv
	$(plot) model $@ $^

# Where the trained model's phases begin, by bisection on runs.
factors_limits := catapult:0.7:0.95 period-2:0.9:1.1 period-4:1.15:1.28 divergent:1.9:2.1
matrices_limits := catapult:0.05:1 period-2:0.05:1.2 divergent:0.1:1.5
begin := $(factors_limits:%=one-factors-%) $(factors_limits:%=many-factors-%) $(matrices_limits:%=many-matrices-%) $(matrices_limits:%=thousand-matrices-%)
threshold_files := $(foreach b,$(begin),$(OUT)/model/begin-$(firstword $(subst :, ,$b)).tsv)

$(threshold_files): $(OUT)/model/begin-%.tsv: $$(call set,$$*).h5 $$(call set,$$*).moments.tsv
	@$(run) threshold $< $(word 2,$(subst -, ,$*)) $(subst $() ,-,$(wordlist 3,4,$(subst -, ,$*))) \
	  $(wordlist 2,3,$(subst :, ,$(filter $*:%,$(begin)))) $(if $(filter %-factors-period-2 %-factors-period-4 %-divergent,$*),$(LONG_STEPS),$(TRAIN_STEPS)) > $@.part
	@mv $@.part $@
# Random batches of two prompts, nu = 1.6 or -0.8: how many of so many runs diverge in 200 steps.
escapes := $(foreach b,1 2 8,$(OUT)/model/escapes-$b.tsv)
$(escapes): $(OUT)/model/escapes-%.tsv: $(OUT)/model/two.h5 $(OUT)/model/two.moments.tsv
	@$(run) escapes $< $* $(RUNS) 200 > $@.part
	@mv $@.part $@
$(OUT)/model-claims.tsv: $(threshold_files) $(escapes) $(OUT)/switching-balance.tsv $(OUT)/model.tsv
	awk -v count=$(RUNS) -f $(HERE)two-factor-model.awk $(OUT)/switching-balance.tsv $(OUT)/model.tsv $(threshold_files) $(escapes) > $@
