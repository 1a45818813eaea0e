# make               builds build/rematch; what is missing is installed first
# make deps          installs what building and testing need, or prints the one command to type
# make test          [FILTER='lower/*']
# make check         format, layering, lone headers, sizes, static analysis
# make exp-NAME      runs experiments/NAME.yaml [ARGS="steps=1 batch=8"], a second time where its samples are
#                    all alike, or the plans of experiments/plans/NAME.py; make exp-list says which there are
# make bench         ours beside PyTorch's and TensorFlow's [ARGS=...]
# make gpu-bundle    build/gpu-bundle, to be taken to a machine with a GPU
# make numerics      gradients beside a computation in float64
# make format        lays out every C file; make clean removes build/
# With any of them: VARIANT=release|debug|san MARCH=native|x86-64-v3|... BUILD=folder DEPS=no (take what is there);
# DEVICE=real: tests use the GPU, not a stand-in.

VARIANT ?= release
MARCH ?= native
BUILD ?= build/$(VARIANT)
CUDA ?= /usr/local/cuda
CC := gcc
CXX := g++
NVCC := $(CUDA)/bin/nvcc
MAKEFLAGS += --no-builtin-rules -j$(shell nproc) $(if $(filter check,$(MAKECMDGOALS)),-k)

all:

# What the machine has. A fresh machine has none of it: make remakes this file (installing), then starts over.
PACKAGES := yaml-0.1 hdf5 libxxhash jansson zlib libmd libutf8proc
ifneq ($(filter-out clean deps exp-list,$(or $(MAKECMDGOALS),all)),)
include $(BUILD)/deps.mk
endif
$(BUILD)/deps.mk: .ci/deps.sh Makefile
	@mkdir -p $(@D)
	@[ "$(DEPS)" = no ] || .ci/deps.sh build
	@{ echo "PACKAGE_CFLAGS := $$(pkg-config --cflags $(PACKAGES))"; \
	   echo "PACKAGE_LIBS := $$(pkg-config --libs $(PACKAGES))"; \
	   echo "DNNL := $$(echo '#include <dnnl.h>' | $(CC) -E - >/dev/null 2>&1 && echo yes)"; } >$@
CUDNN := $(and $(wildcard $(NVCC)),$(wildcard $(CUDA)/include/cudnn.h /usr/include/cudnn.h))

# A backend is a folder of kernels/ and a row of backends.def; a new file in any folder needs no edit here.
BACKENDS := ref $(if $(DNNL),$(and $(wildcard kernels/cpu/*.c),cpu)) $(if $(CUDNN),$(and $(wildcard kernels/cuda/backend.c),cuda))
SOURCES := $(wildcard framework/*/*.c $(BACKENDS:%=kernels/%/*.c) datasets/*.c experiments/harness/*.c \
    experiments/harness/*/*.c)
KERNELS_CU := $(if $(filter cuda,$(BACKENDS)),$(wildcard kernels/cuda/*.cu))
TESTS := $(filter-out tests/device/% tests/preload/%,$(wildcard tests/*/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o) $(KERNELS_CU:%.cu=$(BUILD)/%.o)

WARNINGS := -Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
OPTIMIZE_release := -O3
OPTIMIZE_debug := -O0 -g
OPTIMIZE_san := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPTIMIZE := $(or $(OPTIMIZE_$(VARIANT)),$(error VARIANT=$(VARIANT): expected release, debug or san))
INCLUDES := $(addprefix -I,$(BUILD) framework experiments/harness .)
CUDA_INCLUDES := $(if $(CUDNN),-isystem $(CUDA)/include)
flags = -std=c11 -D_GNU_SOURCE $(OPTIMIZE) -march=$(MARCH) -ffp-contract=off -fno-math-errno -fopenmp
CFLAGS := $(flags) $(WARNINGS) $(INCLUDES) $(CUDA_INCLUDES) $(PACKAGE_CFLAGS)
LDLIBS := $(if $(DNNL),-ldnnl) -lhdf5_hl -lcsv $(PACKAGE_LIBS) -lm
CUDA_PROGRAM := $(if $(KERNELS_CU),$(BUILD)/rematch-cuda)
CUDA_TRACE := $(if $(KERNELS_CU),$(and $(wildcard $(CUDA)/include/cupti.h),$(wildcard $(CUDA)/lib64/libcupti.so),$(BUILD)/trace.so))
CUDA_PATH := -L$(CUDA)/lib64 -Wl,--enable-new-dtags,-rpath,$(CUDA)/lib64
CUDA_LIBS := $(if $(KERNELS_CU),$(CUDA_PATH) -lcudnn -lcublas -lcublasLt -lcudart -lstdc++)
# Machine code for devices of the A100's and of the H100's generation; later ones translate the form between.
DEVICES := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
WERROR := $(if $(filter true,$(CI)),-Werror)

all: $(BUILD)/rematch $(CUDA_PROGRAM) $(CUDA_TRACE)
	@[ $(BUILD) != build/$(VARIANT) ] || ln -sfn $(VARIANT)/rematch build/rematch

# CUDA's libraries take time and memory as soon as they are loaded: the program with them is another, which becomes of
# rematch where a run asks for it.
PROGRAM_OBJECTS := $(filter-out $(BUILD)/kernels/cuda/%,$(OBJECTS))
$(BUILD)/rematch: $(PROGRAM_OBJECTS) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) -o $@ $(PROGRAM_OBJECTS) $(LDLIBS)
$(BUILD)/rematch-cuda: $(OBJECTS) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) -o $@ $(OBJECTS) $(CUDA_LIBS) $(LDLIBS)

# Loaded into a program by CUDA's driver, for experiments/bench/gpu.py.
$(BUILD)/trace.so: experiments/bench/gpu/trace.c $(BUILD)/flags
	@echo "link $@"
	@$(CC) -std=c11 -O2 $(WARNINGS) $(WERROR) $(CUDA_INCLUDES) -fPIC -shared -o $@ $< $(CUDA_PATH) -lcupti

# What experiments/bench/bench.py compares a step's products with.
$(BUILD)/peak: experiments/bench/peak.c $(BUILD)/flags
	@echo "link $@"
	@$(CC) -std=gnu11 -O3 -march=$(MARCH) -ffp-contract=fast -fopenmp $(WARNINGS) $(WERROR) -o $@ $<

# The host device (tests/device/device.h): where CUDA's headers are, tests run on a stand-in for a GPU. A program is
# linked with it, too, for tests and for trying things by hand.
DEVICE ?= host
ifeq ($(and $(CUDNN),$(DEVICE)),host)
DEVICE_PARTS := $(patsubst %.cpp,$(BUILD)/%.o,$(wildcard tests/device/*.cpp)) $(KERNELS_CU:%.cu=$(BUILD)/device/%.o)
DEVICE_TESTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/device/*.c)) \
    $(patsubst %.cu,$(BUILD)/device/%.o,$(wildcard tests/device/*.cu))
TESTED := $(SOURCES:%.c=$(BUILD)/%.o) $(DEVICE_PARTS)
TESTED_LIBS := -lstdc++
HOST_PROGRAM := $(BUILD)/rematch-host-device
else
TESTED := $(OBJECTS)
TESTED_LIBS := $(CUDA_LIBS)
endif
CXXFLAGS := -std=c++20 -D_GNU_SOURCE $(OPTIMIZE) -march=$(MARCH) -ffp-contract=off -fno-math-errno -Wall -Wextra \
    -Wno-unknown-pragmas $(INCLUDES) $(CUDA_INCLUDES)
# As on a device, what is read or written must be aligned.
EMULATED := -x c++ -Wno-extra -include tests/device/emulator.h \
    $(if $(filter san,$(VARIANT)),,-fsanitize=alignment -fsanitize-undefined-trap-on-error)

$(BUILD)/rematch-host-device: $(TESTED) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) -o $@ $(TESTED) $(TESTED_LIBS) $(LDLIBS)

# Loaded into the program by tests: system calls that fail.
$(BUILD)/failing.so: tests/preload/failing.c $(BUILD)/flags
	@echo "link $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -O2 $(WARNINGS) $(WERROR) -fPIC -shared -o $@ $<

# Our objects' allocations are counted: there must be none within a step.
COUNTED := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free
$(BUILD)/suite: $(TESTS:%.c=$(BUILD)/%.o) $(DEVICE_TESTS) $(TESTED) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) $(COUNTED) -o $@ $(filter-out %/main.o,$(filter %.o,$^)) $(TESTED_LIBS) $(LDLIBS) -lcriterion

$(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/build.h $(BUILD)/backends.def
	@mkdir -p $(@D); echo "cc $<"
	@$(CC) $(CFLAGS) $(WERROR) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D); echo "nvcc $<"
	@$(NVCC) -O3 --fmad=false $(DEVICES) $(INCLUDES) $(CUDA_INCLUDES) -MMD -MP -c -o $@ $<

$(BUILD)/device/%.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D); echo "c++ $<"
	@$(CXX) $(CXXFLAGS) $(WERROR) $(EMULATED) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cpp $(BUILD)/flags
	@mkdir -p $(@D); echo "c++ $<"
	@$(CXX) $(CXXFLAGS) $(WERROR) -MMD -MP -c -o $@ $<

# Made anew each time, touched only when what they say changes.
$(BUILD)/flags $(BUILD)/sources $(BUILD)/backends.def $(BUILD)/build.h: ALWAYS
	@$(text_$(@F)) >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
text_flags = echo '$(CFLAGS) $(CXXFLAGS) $(DEVICES)'
text_sources = echo '$(OBJECTS) $(TESTS) $(DEVICE_TESTS) $(TESTED)'
text_backends.def = printf 'BACKEND(%s)\n' $(BACKENDS)
text_build.h = printf '\#define BUILD_%s "%s"\n' VARIANT '$(VARIANT)' FLAGS '$(flags)' BACKENDS '$(strip $(BACKENDS))' \
    COMMIT "$$(git rev-parse --verify -q HEAD 2>/dev/null || echo unknown)" DIRTY "$$(git diff HEAD 2>/dev/null | sha1sum | sed \
    's/^da39a3ee5e6b4b0d3255bfef95601890afd80709//; s/ .*//')"

# ---- Tests: one binary; every test is a process of its own, as many at once as there are cores.
FILTER ?= *
LIMIT ?= 1200
$(TESTS:%.c=$(BUILD)/%.o) $(DEVICE_TESTS): | $(BUILD)/has-test
# A sanitizer's report fails the suite, but for leaks of Criterion's own, and of HDF5's where a system call fails (the frame
# that allocated is in their library): so a leak changes no exit code, and the reports are judged here.
test: all $(BUILD)/suite $(BUILD)/failing.so $(HOST_PROGRAM)
	@rm -f $(BUILD)/san.log*; \
	export REMATCH_BIN=$(abspath $(BUILD))/rematch REMATCH_HOST_DEVICE_BIN=$(abspath $(HOST_PROGRAM)) \
	    REMATCH_FAILING=$(abspath $(BUILD))/failing.so \
	    REMATCH_DEVICE=$(DEVICE) OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive \
	    ASAN_OPTIONS=log_path=$(abspath $(BUILD))/san.log:exitcode=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1; \
	timeout $(LIMIT) $(BUILD)/suite --filter '$(FILTER)'; status=$$?; \
	[ $$status != 124 ] || echo "the suite did not end within $(LIMIT) s"; \
	! awk '/ERROR: / && !/LeakSanitizer/ || /runtime error/ || /#1 / && !/lib(criterion|hdf5)/ {bad = 1} END {exit !bad}' \
	    $$(ls -d $(BUILD)/san.log* 2>/dev/null) /dev/null || { cat $(BUILD)/san.log*; exit 1; }; exit $$status

# ---- Experiments and the benchmark.
EXPERIMENTS := $(patsubst experiments/%.yaml,exp-%,$(wildcard experiments/*.yaml))
# With `data: ones` all samples are alike, and an exchange of two would change nothing: such an experiment is run a second time
# with synthetic samples of the same shape, two steps of its own policy (of a sweep no other point), unless ARGS sets the data.
synthetic = $(if $(filter data=% data.% 'data%,$(ARGS)),,$(shell sed -n 's/^data: {name: ones, /data={name: synthetic, /p' $<))
$(EXPERIMENTS): exp-%: experiments/%.yaml all $(BUILD)/has-exp-%
	$(BUILD)/rematch run $< $(ARGS)
	$(if $(synthetic),@echo "the samples of $* are all alike: a second proof with synthetic ones in two steps")
	$(if $(synthetic),$(BUILD)/rematch run $< $(filter-out steps=% epochs=% sweep=%,$(ARGS)) '$(synthetic)' name=$*-synthetic sweep= steps=2)
PLANS := $(patsubst experiments/plans/%.py,exp-%,$(filter-out %/chain.py,$(wildcard experiments/plans/*.py)))
$(PLANS): exp-%: experiments/plans/%.py all $(BUILD)/has-exp-plans
	@[ -z '$(ARGS)' ] || { echo "exp-$*: $< takes no ARGS" >&2; exit 2; }
	REMATCH_BIN=$(abspath $(BUILD))/rematch /usr/bin/python3 -B $<
exp-%:
	@echo "there is no experiments/$*.yaml; make exp-list says which there are" >&2; exit 2
exp-list:
	@awk '/^name:/ {name = $$2} /^title:/ {sub(/^title: */, ""); printf "make exp-%-24s %s\n", name, $$0}' experiments/*.yaml
	@awk -F '"""|: ' '/^"""/ && NF > 2 {printf "make exp-%-24s %s\n", $$2, $$3}' $(PLANS:exp-%=experiments/plans/%.py)
numerics: all $(BUILD)/has-bench
	REMATCH_BIN=$(abspath $(BUILD))/rematch /usr/bin/python3 -B experiments/bench/float64.py
# The newest peers, some 7 GB of them (PyTorch brings CUDA's libraries), until the folder is removed.
PEERS := build/bench-venv
$(PEERS)/made:
	@[ "$(DEPS)" != no ] && .ci/deps.sh peers && rm -rf $(@D) && /usr/bin/python3 -m venv $(@D) && \
	    $(@D)/bin/pip install --quiet torch tensorflow-cpu && touch $@
bench: all $(BUILD)/peak
	@[ -e $(PEERS)/made ] || $(MAKE) --no-print-directory $(PEERS)/made || \
	    { echo "bench: $(PEERS) cannot be made; Debian's PyTorch is measured"; \
	      $(MAKE) --no-print-directory $(BUILD)/has-bench; }
	REMATCH_BIN=$(abspath $(BUILD))/rematch /usr/bin/python3 experiments/bench/bench.py $(ARGS)

# ---- What a machine with a GPU, but without this repository and its libraries, can run.
gpu-bundle: $(BUILD)/has-test
	@[ "$(filter cuda,$(BACKENDS))" ] || { echo "gpu-bundle: the cuda backend needs nvcc, cuDNN and cuBLAS in $(CUDA)" >&2; exit 77; }
	@MAKEFLAGS=$(findstring n,$(firstword -$(MAKEFLAGS))) $(MAKE) --no-print-directory BUILD=build/gpu MARCH=x86-64-v3 DEVICE=real build/gpu/rematch build/gpu/rematch-cuda build/gpu/suite $(CUDA_TRACE:$(BUILD)/%=build/gpu/%)
	@experiments/bench/gpu/bundle.sh build/gpu build/gpu-bundle

# ---- Dependencies by group (.ci/deps.sh): $(BUILD)/has-GROUP is a stamp.
deps:
	.ci/deps.sh build test
$(BUILD)/has-%: .ci/deps.sh
	@mkdir -p $(@D)
	@[ "$(DEPS)" = no ] || .ci/deps.sh $*
	@touch $@

# ---- Checks. Analysis is by file and remembered: only what changed since the last check is looked at again.
C_FILES := $(SOURCES) $(TESTS) $(wildcard framework/*.h framework/*/*.h kernels/*/*.[ch] datasets/*.h experiments/harness/*.h \
    experiments/harness/*/*.h tests/support/*.h)
DEFS := $(wildcard framework/*/*.def datasets/*.def)
check: check-format check-layering $(C_FILES:%=$(BUILD)/check/%)
FORMATTED := $(C_FILES) $(wildcard kernels/*/*.cu tests/device/*.* tests/preload/*.c experiments/bench/*.c experiments/bench/gpu/*.c)
check-format: $(BUILD)/has-check
	@clang-format --dry-run -Werror $(FORMATTED)
check-layering:
	@awk -f tests/layering.awk tests/rooms $(sort $(C_FILES)) $(DEFS)
$(BUILD)/check/%.h: %.h $(BUILD)/flags | $(BUILD)/build.h $(BUILD)/backends.def $(BUILD)/has-check
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) -Werror -MMD -MP -MT $@ -MF $@.d -fsyntax-only -include $< -x c /dev/null
	@touch $@
# The analyser follows few enough paths that all files take less than a minute. cppcheck does not know Criterion.
TIDY := --quiet $(foreach word,-Xclang -analyzer-config -Xclang max-nodes=5000,--extra-arg=$(word))
CPPCHECK := --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11
$(BUILD)/check/%.c: %.c $(BUILD)/flags .clang-tidy tests/.clang-tidy | $(BUILD)/build.h $(BUILD)/backends.def $(BUILD)/has-check
	@mkdir -p $(@D); echo "analyse $<"
	@$(CC) $(CFLAGS) -Werror -MMD -MP -MT $@ -MF $@.d -fsyntax-only $<
	@clang-tidy $(TIDY) $< -- $(filter-out -march=%,$(CFLAGS)) 2>/dev/null
	@$(if $(filter tests/%,$<),,cppcheck $(CPPCHECK) $(INCLUDES) $<)
	@touch $@

format: $(BUILD)/has-check
	@clang-format -i $(FORMATTED)
clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
ALWAYS:
.PHONY: all deps test check check-format check-layering bench gpu-bundle numerics exp-list format clean $(EXPERIMENTS) $(PLANS) ALWAYS
.SECONDARY:
