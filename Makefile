# make | make deps | make test | make check | make bench | make exp-NAME [ARGS="steps=1"] | make exp-list
VARIANT ?= release
MARCH ?= native
BUILD := build/$(VARIANT)
CC := gcc
PKGS := yaml-0.1 hdf5 libxxhash jansson zlib
INCLUDES := -Iframework -Ikernels -Idatasets -Iexperiments/harness
WARN := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
OPT_release := -O3 -march=$(MARCH)
OPT_debug := -O0 -g -march=$(MARCH)
OPT_san := -O1 -g -march=$(MARCH) -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS := -std=c11 -D_GNU_SOURCE $(OPT_$(VARIANT)) -ffp-contract=off -fopenmp $(WARN) $(INCLUDES) $(shell pkg-config --cflags $(PKGS))
LDLIBS := -ldnnl -lhdf5_hl $(shell pkg-config --libs $(PKGS)) -lm
SOURCES := $(wildcard framework/*.c framework/*/*.c kernels/ref/*.c kernels/cpu/*.c datasets/*.c experiments/harness/*.c)
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)
LIBRARY := $(filter-out $(BUILD)/experiments/harness/main.o,$(OBJECTS))
TESTS := $(wildcard tests/*.c)

all: $(BUILD)/rematch
	@ln -sf $(VARIANT)/rematch build/rematch

$(BUILD)/rematch: $(OBJECTS)
	$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/suite: $(TESTS:%.c=$(BUILD)/%.o) $(LIBRARY)
	$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) -lcriterion

test: all $(BUILD)/suite
	$(BUILD)/suite

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all test
