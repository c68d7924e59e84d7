# Optimizers x biases x activations x seeds on a text of your own, one thing varied at a time, ending in a table: the experiment of
# "Symmetry Breaking in Transformers for Efficient and Interpretable Training" (arXiv 2601.22257) at the size that you can afford.
#
#   make -f symmetry-breaking.mk TEXT=corpus.txt                 everything: some 50 minutes of two cores
#   make -f symmetry-breaking.mk TEXT=corpus.txt SIZE=124m       the published size
#   make -f symmetry-breaking.mk TEXT=corpus.txt OPTIMIZERS=ecd MODES="none qv" SEEDS="1 2 3 4 5"
#   make -f symmetry-breaking.mk TEXT=corpus.txt sweep OPTIMIZERS=ecd MODES=none LRS="0.5 1 2" ETAS="50 100"
#   make -f symmetry-breaking.mk TEXT=corpus.txt list            the names of the runs, for array jobs:
#   make -f symmetry-breaking.mk TEXT=corpus.txt out/runs/ecd-qv-prelu-1.loss.tsv
#
# A run that was killed goes on where it last saved when make is called again; -j runs several at once (THREADS=1 then).
# The text's documents are separated by a line <|endoftext|>; `make demo` leaves one in demo/corpus.txt.

OUT ?= symmetry-breaking
TEXT ?=
OPTIMIZERS ?= adamw sgdm ecd
MODES ?= none q qv
ACTIVATIONS ?= gelu prelu
SEEDS ?= 1 2
SIZE ?= small
THREADS ?= 0
NOETHER ?= noether
HERE := $(dir $(lastword $(MAKEFILE_LIST)))

# What a mode means to init; add your own: make MODES=head BREAK_head="--break q --bias-per head"
BREAK_none ?= --break none
BREAK_q ?= --break q
BREAK_v ?= --break v
BREAK_qv ?= --break qv
BREAK_qv0 ?= --break qv --v-mean 0
BREAK_zero ?= --break q --q-mean 0
BREAK_learned ?= --break qv --learned-bias

# The authors' settings (per tensor is the form of ECD that their runs had), but AdamW's rate at the small size.
SETTINGS_ecd ?= lr=1 eta=100 f0=2 per-tensor
SETTINGS_sgdm ?= lr=0.03 momentum=0.95
ifeq ($(SIZE),124m)
MODEL ?= gpt2-124m --context 512
VOCAB ?= 50257
BATCH ?= 8
STEPS ?= 122070
SAVE ?= 500
SETTINGS_adamw ?= lr=1e-4
else
MODEL ?= gpt2 --layers 4 --heads 4 --width 128 --context 128
VOCAB ?= 2048
BATCH ?= 16
STEPS ?= 600
SAVE ?= 200
SETTINGS_adamw ?= lr=1e-3
endif

RUNS := $(foreach o,$(OPTIMIZERS),$(foreach m,$(MODES),$(foreach a,$(ACTIVATIONS),$(foreach s,$(SEEDS),$o-$m-$a-$s))))
# A setting that is swept is part of a run's name: ecd-none-gelu-1@lr=0.5@eta=50. A list that is empty leaves its setting alone.
with = $(if $2,$(foreach r,$1,$(foreach x,$2,$r@$3=$x)),$1)
SWEPT := $(call with,$(call with,$(call with,$(RUNS),$(LRS),lr),$(ETAS),eta),$(F0S),f0)
# Runs whose queries have a preferred direction.
PREFERRING := $(foreach r,$(RUNS),$(if $(filter q qv qv0 learned,$(word 2,$(subst -, ,$r))),$r))
scores = $(patsubst %,$(OUT)/runs/%.loss.tsv,$1)
# The parts of a run's name, by number: optimizer, mode, activation, seed; and its settings, which go before its optimizer's.
part = $(word $2,$(subst -, ,$(firstword $(subst @, ,$1))))
own = $(wordlist 2,9,$(subst @, ,$1))
others = $(foreach s,$(SETTINGS_$(call part,$1,1)),$(if $(filter $(firstword $(subst =, ,$s))=%,$(call own,$1)),,$s))
options = $(foreach s,$(call others,$1) $(call own,$1),--$(subst =, ,$s))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all sweep list
# Losses; puzzles; what the heads of runs with query biases prefer, and whether that goes with solving; curves.
TABLES := $(OUT)/table.tsv $(OUT)/puzzles.tsv $(if $(PREFERRING),$(OUT)/alignment.tsv) $(if $(word 3,$(PREFERRING)),$(OUT)/correlation.tsv)
all: $(TABLES) $(foreach a,$(ACTIVATIONS),$(OUT)/loss-$a.png)
	@for table in $(TABLES); do echo; column -t -s '	' $$table; done

sweep: $(OUT)/sweep.tsv
	@column -t -s '	' $<

list:
	@printf '%s\n' $(call scores,$(RUNS))

ifeq ($(TEXT),)
$(OUT)/bpe.h5:
	@echo "TEXT=FILE: the text to train on, its documents separated by a line <|endoftext|>" >&2; exit 2
else
$(OUT)/bpe.h5: $(TEXT)
	@mkdir -p $(OUT)/starts $(OUT)/runs
	$(NOETHER) tokenize train --vocab-size $(VOCAB) $< -o $@
endif

$(OUT)/train.h5 $(OUT)/valid.h5 &: $(OUT)/bpe.h5
	$(NOETHER) tokenize encode -t $< --split 0.95 $(TEXT) -o $(OUT)/train.h5 --valid-output $(OUT)/valid.h5

# mode-activation-seed: the same weights for every mode and optimizer of a seed.
$(OUT)/starts/%.h5: $(OUT)/bpe.h5
	$(NOETHER) init $(MODEL) -t $< $(BREAK_$(word 1,$(subst -, ,$*))) --activation $(word 2,$(subst -, ,$*)) --seed $(word 3,$(subst -, ,$*)) -o $@

# Where a run stands is in its checkpoint, so that the line, given again, goes on; its score is what is waited for.
.SECONDEXPANSION:
$(OUT)/runs/%.loss.tsv: $(OUT)/starts/$$(call part,$$*,2)-$$(call part,$$*,3)-$$(call part,$$*,4).h5 $(OUT)/train.h5 $(OUT)/valid.h5
	$(NOETHER) train $< $(OUT)/train.h5 --optimizer $(call part,$*,1) $(call options,$*) \
	  --steps $(STEPS) --batch $(BATCH) --seed $(call part,$*,4) --save-every $(SAVE) --log $(OUT)/runs/$*.tsv -j $(THREADS) -o $(OUT)/runs/$*.h5
	$(NOETHER) eval loss $(OUT)/runs/$*.h5 $(OUT)/valid.h5 -j $(THREADS) -o $@

$(OUT)/runs/%.puzzles.tsv: $(OUT)/runs/%.loss.tsv
	$(NOETHER) eval puzzles $(OUT)/runs/$*.h5 -j $(THREADS) -o $@

$(OUT)/puzzles.tsv: $(patsubst %,$(OUT)/runs/%.puzzles.tsv,$(RUNS))
	awk -f $(HERE)puzzles.awk $^ > $@

$(OUT)/alignment.tsv: $(call scores,$(PREFERRING))
	$(NOETHER) align score $(patsubst %,$(OUT)/runs/%.h5,$(PREFERRING)) -j $(THREADS) -o $@

$(OUT)/correlation.tsv: $(call scores,$(PREFERRING)) $(OUT)/valid.h5
	$(NOETHER) align correlate $(patsubst %,$(OUT)/runs/%.h5,$(PREFERRING)) --valid $(OUT)/valid.h5 --scores $(OUT)/correlated.tsv -j $(THREADS) -o $@

# A row for what differs in more than the seed.
$(OUT)/table.tsv: $(call scores,$(RUNS))
	awk -f $(HERE)summary.awk $^ > $@

# The best of each optimizer, mode and activation first.
$(OUT)/sweep.tsv: $(call scores,$(SWEPT))
	awk -f $(HERE)summary.awk $^ | (read -r header; echo "$$header"; sort -t '	' -k 1,3 -k 6,6g) > $@

$(OUT)/loss-%.png: $(call scores,$(RUNS))
	gnuplot -c $(HERE)../plot/loss.gp $@ $(foreach o,$(OPTIMIZERS),$(foreach m,$(MODES),$(OUT)/runs/$o-$m-$*-$(firstword $(SEEDS)).tsv))
