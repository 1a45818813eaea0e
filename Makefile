# make               builds build/rematch; missing packages are installed first
# make deps          installs the packages for building and testing, or prints the one command to type
# make test          runs the suite [FILTER='lower/*']
# make check         checks format, layering and headers, and analyses the code
# make exp-NAME      runs experiments/NAME.yaml [ARGS="steps=1 batch=8"], then again with synthetic samples if its own
#                    are equal; or prints the plans of experiments/plans/NAME.py; make exp-list lists the names
# make publish-NAME  writes a table to results/published/ and EXPERIMENTS.md: of a program of plans/, which it runs, or,
#                    by its recipe in plans/run_tables.py, of the runs in results/; it names the first that is missing, or
#                    that had other overrides (ARGS) than the recipe says
# make table-NAME    prints the same beside what is published there, with deviations in percent; changes nothing
# make experiments-md
#                    renews the tables of EXPERIMENTS.md from results/published/ and experiments/summary.md
# make bench         measures against PyTorch and TensorFlow [ARGS=...]
# make test-torch    tests experiments/torch with the PyTorch of TORCH_PYTHON, build/bench-venv or python3; 77: none has it
# make bench-torch   measures experiments/torch beside PyTorch [ARGS="--out results/bench-torch.md"]
# make bench-kernels times the cpu backend's kernels beside oneDNN's [ARGS="THREADS CALLS WORD"]
# make bench-engines checks what `optimal` promises over many models, and what its engines win; bench-limits what limits cost;
#                    bench-programme compares it with an integer programme
# make numerics      compares gradients with a computation in float64
# make gpu-bundle    packs build/gpu-bundle for a machine with a GPU
# make readme-picture
#                    draws results/readme-memory.svg
# make format        lays out every C file
# make install       copies the program, its manual, completions and the experiments below PREFIX=/usr/local [DESTDIR=]
# make clean         removes build/
# Variables: VARIANT=release|debug|san MARCH=native|x86-64-v3|... BUILD=folder DEPS=no (install nothing) DEVICE=real
# (tests use the GPU, not the stand-in).

# The version of --version; CITATION.cff and CHANGELOG.md name it too.
VERSION := 1.0
VARIANT ?= release
MARCH ?= native
BUILD ?= build/$(VARIANT)
CUDA ?= /usr/local/cuda
CC := gcc
CXX := g++
NVCC := $(CUDA)/bin/nvcc
MAKEFLAGS += --no-builtin-rules -j$(shell nproc) $(if $(filter check,$(MAKECMDGOALS)),-k)

all:

# What the machine provides. On a new machine make first makes this file, which installs packages, and then restarts.
PACKAGES := yaml-0.1 libarchive hdf5 jansson zlib libmd libutf8proc
ifneq ($(filter-out clean deps exp-list,$(or $(MAKECMDGOALS),all)),)
include $(BUILD)/deps.mk
endif
$(BUILD)/deps.mk: .ci/deps.sh Makefile
	@mkdir -p $(@D)
	@[ "$(DEPS)" = no ] || .ci/deps.sh build
	@{ echo "PACKAGE_CFLAGS := $$(pkg-config --cflags $(PACKAGES))"; \
	   echo "PACKAGE_LIBS := $$(pkg-config --libs $(PACKAGES))"; } >$@.new
	@hdf5=$$(pkg-config --modversion hdf5); \
	case $$hdf5 in 1.1[0-9]*) ;; *) echo "make: HDF5 (libhdf5-dev) has version $$hdf5 here; Rematch supports 1.10 to 1.14" >&2; exit 1;; esac
	@mv $@.new $@
CUDNN := $(and $(wildcard $(NVCC)),$(wildcard $(CUDA)/include/cudnn.h /usr/include/cudnn.h))

# A backend is a folder of kernels/ and a row of backends.def. New source files are found by the wildcards below.
BACKENDS := ref $(and $(wildcard kernels/cpu/*.c),cpu) $(if $(CUDNN),$(and $(wildcard kernels/cuda/backend.c),cuda))
SOURCES := $(wildcard framework/*/*.c $(BACKENDS:%=kernels/%/*.c) datasets/*.c datasets/*/*.c \
    experiments/harness/*.c experiments/harness/*/*.c)
KERNELS_CU := $(if $(filter cuda,$(BACKENDS)),$(wildcard kernels/cuda/*.cu))
TESTS := $(filter-out tests/device/% tests/preload/% tests/library/%,$(wildcard tests/*/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o) $(KERNELS_CU:%.cu=$(BUILD)/%.o)

WARNINGS := -Wall -Wextra -Wno-psabi -Wno-missing-field-initializers -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
OPTIMIZE_release := -O3
OPTIMIZE_debug := -O0 -g
OPTIMIZE_san := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPTIMIZE := $(or $(OPTIMIZE_$(VARIANT)),$(error VARIANT=$(VARIANT): expected release, debug or san))
INCLUDES := $(addprefix -I,$(BUILD) framework experiments/harness .)
CUDA_INCLUDES := $(if $(CUDNN),-isystem $(CUDA)/include)
# HDF5's calls are those of 1.10 in every later 1.x.
flags = -std=c11 -D_GNU_SOURCE -DH5_USE_110_API $(OPTIMIZE) -march=$(MARCH) -ffp-contract=off -fno-math-errno -fopenmp
CFLAGS := $(flags) $(WARNINGS) $(INCLUDES) $(CUDA_INCLUDES) $(PACKAGE_CFLAGS)
LDLIBS := -lhdf5_hl -lcsv $(PACKAGE_LIBS) -lm
CUDA_PROGRAM := $(if $(KERNELS_CU),$(BUILD)/rematch-cuda)
CUDA_TRACE := $(if $(KERNELS_CU),$(and $(wildcard $(CUDA)/include/cupti.h),$(wildcard $(CUDA)/lib64/libcupti.so),$(BUILD)/trace.so))
CUDA_PATH := -L$(CUDA)/lib64 -Wl,--enable-new-dtags,-rpath,$(CUDA)/lib64
CUDA_LIBS := $(if $(KERNELS_CU),$(CUDA_PATH) -lcudnn -lcublas -lcudart -lstdc++)
# Machine code for the A100's and the H100's generation, and PTX, which later devices compile.
DEVICES := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
WERROR := $(if $(filter true,$(CI)),-Werror)

all: $(BUILD)/rematch $(CUDA_PROGRAM) $(CUDA_TRACE)
	@[ $(BUILD) != build/$(VARIANT) ] || ln -sfn $(VARIANT)/rematch build/rematch

# Loading CUDA's libraries takes time and memory, so they are linked into a second program, which rematch executes in
# its place where a spec asks for the cuda backend.
PROGRAM_OBJECTS := $(filter-out $(BUILD)/kernels/cuda/%,$(OBJECTS))
$(BUILD)/rematch: $(PROGRAM_OBJECTS) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) -o $@ $(PROGRAM_OBJECTS) $(LDLIBS)
$(BUILD)/rematch-cuda: $(OBJECTS) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) -o $@ $(OBJECTS) $(CUDA_LIBS) $(LDLIBS)

# The CUDA driver loads this into a program for experiments/bench/gpu.py.
$(BUILD)/trace.so: experiments/bench/gpu/trace.c $(BUILD)/flags
	@echo "link $@"
	@$(CC) -std=c11 -O2 $(WARNINGS) $(WERROR) $(CUDA_INCLUDES) -fPIC -shared -o $@ $< $(CUDA_PATH) -lcupti

# Measures the processor's multiply-add rate; experiments/bench/bench.py compares a step's products with it.
$(BUILD)/peak: experiments/bench/peak.c $(BUILD)/flags
	@echo "link $@"
	@$(CC) -std=gnu11 -O3 -march=$(MARCH) -ffp-contract=fast -fopenmp $(WARNINGS) $(WERROR) -o $@ $<

# The host device (tests/device/device.h): where CUDA's headers are found, tests run on a stand-in for a GPU. A program
# is linked with it too, for tests and for use by hand.
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
CXXFLAGS := -std=c++20 -D_GNU_SOURCE $(OPTIMIZE) -march=$(MARCH) -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-psabi \
    -Wno-unknown-pragmas $(INCLUDES) $(CUDA_INCLUDES)
# A device requires aligned accesses, so an unaligned one is an error here too.
EMULATED := -x c++ -Wno-extra -include tests/device/emulator.h \
    $(if $(filter san,$(VARIANT)),,-fsanitize=alignment -fsanitize-undefined-trap-on-error)

$(BUILD)/rematch-host-device: $(TESTED) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) -o $@ $(TESTED) $(TESTED_LIBS) $(LDLIBS)

# Tests preload this into the program: it makes system calls fail.
$(BUILD)/failing.so: tests/preload/failing.c $(BUILD)/flags
	@echo "link $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -O2 $(WARNINGS) $(WERROR) -fno-builtin -fPIC -shared -o $@ $<

# A program of somebody else's: the framework and its kernels without the harness.
FRAMEWORK_OBJECTS := $(filter $(BUILD)/framework/% $(BUILD)/kernels/ref/% $(BUILD)/kernels/cpu/%,$(OBJECTS))
$(BUILD)/library-example: $(BUILD)/tests/library/example.o $(FRAMEWORK_OBJECTS)
	@echo "link $@"
	@$(CC) $(flags) -o $@ $^ -lm

# Places instances of static placement from CSV files, such as MiniMalloc's.
$(BUILD)/placement: $(BUILD)/experiments/bench/placement.o $(FRAMEWORK_OBJECTS)
	@echo "link $@"
	@$(CC) $(flags) -o $@ $^ -lm

# Times the cpu backend's kernels beside oneDNN's.
$(BUILD)/kernels-bench: $(BUILD)/experiments/bench/kernels.o $(BUILD)/experiments/bench/onednn.o $(FRAMEWORK_OBJECTS)
	@echo "link $@"
	@$(CC) $(flags) -o $@ $^ -ldnnl -lm

# Counts the allocations of our own objects: a training step must make none.
COUNTED := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free
$(BUILD)/suite: $(TESTS:%.c=$(BUILD)/%.o) $(DEVICE_TESTS) $(TESTED) $(BUILD)/sources
	@echo "link $@"
	@$(CC) $(flags) $(COUNTED) -o $@ $(filter-out %/main.o,$(filter %.o,$^)) $(TESTED_LIBS) $(LDLIBS) -lcriterion

$(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/build.h $(BUILD)/backends.def
	@mkdir -p $(@D); echo "cc $<"
	@$(CC) $(CFLAGS) $(WERROR) -MMD -MP -c -o $@ $<

# What the program embeds.
$(addprefix $(BUILD)/experiments/harness/,$(addsuffix .o,report/report_page report/report_drawings report/complete bundle/describe)): \
    $(addprefix experiments/harness/,report/report.html report/report.css report/report.js report/report.gp report/complete.bash report/complete.zsh \
      bundle/readme.md.in)

$(BUILD)/%.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D); echo "nvcc $<"
	@$(NVCC) -O3 --fmad=false $(DEVICES) $(INCLUDES) $(CUDA_INCLUDES) -MMD -MP -c -o $@ $<

$(BUILD)/device/%.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D); echo "c++ $<"
	@$(CXX) $(CXXFLAGS) $(WERROR) $(EMULATED) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cpp $(BUILD)/flags
	@mkdir -p $(@D); echo "c++ $<"
	@$(CXX) $(CXXFLAGS) $(WERROR) -MMD -MP -c -o $@ $<

# Written on every call, replaced only when their content changes.
$(BUILD)/flags $(BUILD)/sources $(BUILD)/backends.def $(BUILD)/build.h: ALWAYS
	@$(text_$(@F)) >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
text_flags = echo '$(CFLAGS) $(CXXFLAGS) $(DEVICES)'
text_sources = echo '$(OBJECTS) $(TESTS) $(DEVICE_TESTS) $(TESTED)'
text_backends.def = printf 'BACKEND(%s)\n' $(BACKENDS)
text_build.h = printf '\#define BUILD_%s "%s"\n' VERSION '$(VERSION)' VARIANT '$(VARIANT)' FLAGS '$(flags)' BACKENDS '$(strip $(BACKENDS))' \
    COMMIT "$$(git rev-parse --verify -q HEAD 2>/dev/null || echo unknown)" DIRTY "$$(git diff HEAD -- . ":!results" ":!*.md" 2>/dev/null | sha1sum | sed \
    's/^da39a3ee5e6b4b0d3255bfef95601890afd80709//; s/ .*//')"

# ---- Tests: one binary. Every test is a process; as many run at once as there are cores.
FILTER ?= *
$(TESTS:%.c=$(BUILD)/%.o) $(DEVICE_TESTS): | $(BUILD)/has-test
# A sanitizer's report fails the suite, except leaks of Criterion, and of HDF5 after a failed system call (their library
# made the allocation). So leaks do not change exit codes; the reports are judged here.
test: all $(BUILD)/suite $(BUILD)/failing.so $(BUILD)/library-example $(HOST_PROGRAM)
	@rm -f $(BUILD)/san.log*; \
	export REMATCH_BIN=$(abspath $(BUILD))/rematch REMATCH_HOST_DEVICE_BIN=$(abspath $(HOST_PROGRAM)) \
	    REMATCH_FAILING=$(abspath $(BUILD))/failing.so \
	    REMATCH_DEVICE=$(DEVICE) OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive \
	    ASAN_OPTIONS=log_path=$(abspath $(BUILD))/san.log:exitcode=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1; \
	$(BUILD)/suite --filter '$(FILTER)'; status=$$?; \
	! awk '/ERROR: / && !/LeakSanitizer/ || /runtime error/ || /#1 / && !/lib(criterion|hdf5)/ {bad = 1} END {exit !bad}' \
	    $$(ls -d $(BUILD)/san.log* 2>/dev/null) /dev/null || { cat $(BUILD)/san.log*; exit 1; }; exit $$status

# ---- Experiments and the benchmark.
EXPERIMENTS := $(patsubst experiments/%.yaml,exp-%,$(wildcard experiments/*.yaml))
# With `data: ones` all samples are equal, so exchanging two would change nothing. Such an experiment is run a second time
# with synthetic samples of the same shape: two steps of the spec's own policy, without its sweep, unless ARGS sets data.
synthetic = $(if $(filter data=% data.% 'data%,$(ARGS)),,$(shell sed -n 's/^data: {name: ones, /data={name: synthetic, /p' $<))
$(EXPERIMENTS): exp-%: experiments/%.yaml all $(BUILD)/has-exp-%
	$(BUILD)/rematch run $< $(ARGS)
	$(if $(synthetic),@echo "all samples of $* are equal: a second proof with synthetic samples in two steps")
	$(if $(synthetic),$(BUILD)/rematch run $< $(filter-out steps=% epochs=% sweep=%,$(ARGS)) '$(synthetic)' name=$*-synthetic sweep= steps=2)
# A study begins with its name; the other files of plans/ are read by studies, or make tables of runs.
PLANS := $(patsubst experiments/plans/%.py,exp-%,$(shell grep -lE '^"""[a-z0-9-]+: ' experiments/plans/*.py))
$(PLANS): exp-%: experiments/plans/%.py all $(BUILD)/has-exp-plans
	$(no_args)
	$(table)
# A study, or the recipe of a table of runs: written to results/published/ and the tables of EXPERIMENTS.md; or beside those.
table = REMATCH_BIN=$(abspath $(BUILD))/rematch /usr/bin/python3 -B experiments/plans/$(if $(filter exp-$*,$(PLANS)),$*.py,run_tables.py $*)
no_args = @[ -z '$(ARGS)' ] || { echo "$@: takes no ARGS" >&2; exit 2; }
make_tables = @awk -f experiments/tables.awk EXPERIMENTS.md >EXPERIMENTS.md.new && mv EXPERIMENTS.md.new EXPERIMENTS.md || \
    { rm -f EXPERIMENTS.md.new; exit 1; }
publish-%: all $(BUILD)/has-exp-plans
	$(no_args)
	PUBLISH=yes $(table)
	$(make_tables)
table-%: all $(BUILD)/has-exp-plans
	$(no_args)
	BESIDE=yes $(table)
experiments-md:
	$(make_tables)
exp-%:
	@echo "there is no experiments/$*.yaml; make exp-list lists the experiments" >&2; exit 2
exp-list:
	@awk '/^name:/ {name = $$2} /^title:/ {sub(/^title: */, ""); printf "make exp-%-24s %s\n", name, $$0}' experiments/*.yaml
	@awk -F '"""|: ' '/^"""/ && NF > 2 {printf "make exp-%-24s %s\n", $$2, $$3}' $(PLANS:exp-%=experiments/plans/%.py)
readme-picture: all $(BUILD)/has-figures
	$(BUILD)/rematch plan vgg16-recompute policy=store_all --alone --out $(BUILD)/store-all.h5 >$(BUILD)/readme-picture.log
	$(BUILD)/rematch plan vgg16-recompute --alone --out $(BUILD)/segments.h5 >>$(BUILD)/readme-picture.log
	$(BUILD)/rematch report $(BUILD)/store-all.h5 $(BUILD)/segments.h5 --figures $(BUILD)/readme-picture
	cp $(BUILD)/readme-picture/memory.svg results/readme-memory.svg
numerics: all $(BUILD)/has-bench
	REMATCH_BIN=$(abspath $(BUILD))/rematch /usr/bin/python3 -B experiments/bench/float64.py
# Installs the newest PyTorch, TensorFlow and JAX, about 7 GB (PyTorch brings CUDA's libraries); remove the folder to renew.
PEERS := build/bench-venv
$(PEERS)/made:
	@[ "$(DEPS)" != no ] && .ci/deps.sh peers && rm -rf $(@D) && /usr/bin/python3 -m venv $(@D) && \
	    $(@D)/bin/pip install --quiet torch tensorflow-cpu jax && touch $@
bench: all $(BUILD)/peak
	@[ -e $(PEERS)/made ] || $(MAKE) --no-print-directory $(PEERS)/made || \
	    { echo "bench: $(PEERS) cannot be made; Debian's PyTorch is measured"; \
	      $(MAKE) --no-print-directory $(BUILD)/has-bench; }
	REMATCH_BIN=$(abspath $(BUILD))/rematch /usr/bin/python3 experiments/bench/bench.py $(ARGS)

# What `optimal` promises over many models and budgets, and what its engines win; what the limits of searches cost.
bench-engines bench-limits bench-programme: all $(BUILD)/has-exp-plans
	REMATCH_BIN=$(abspath $(BUILD))/rematch /usr/bin/python3 experiments/bench/$(@:bench-%=%).py $(ARGS)

bench-kernels: $(BUILD)/kernels-bench
	OMP_WAIT_POLICY=passive $(BUILD)/kernels-bench $(ARGS)

# ---- The package for PyTorch; its script ends with 77 where no Python has torch.
test-torch: all
	@REMATCH_BIN=$(abspath $(BUILD))/rematch experiments/torch/run.sh -m unittest $(or $(ARGS),discover -t . -s tests)
bench-torch: all
	@REMATCH_BIN=$(abspath $(BUILD))/rematch experiments/torch/run.sh bench.py $(ARGS)

# ---- A bundle for a machine with a GPU that has neither this repository nor its libraries.
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

# ---- An installed program finds the experiments by name and, through its shell, its manual and completions.
PREFIX ?= /usr/local
SHARE := $(DESTDIR)$(PREFIX)/share
install: all
	@install -d $(addprefix $(SHARE)/,man/man1 bash-completion/completions zsh/site-functions rematch/experiments/models)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/rematch $(CUDA_PROGRAM)
	install -m 644 -t $(SHARE)/rematch/experiments $(wildcard experiments/*.yaml)
	install -m 644 -t $(SHARE)/rematch/experiments/models $(wildcard experiments/models/*.yaml)
	$(BUILD)/rematch help --man >$(SHARE)/man/man1/rematch.1
	$(BUILD)/rematch help --completion bash >$(SHARE)/bash-completion/completions/rematch
	$(BUILD)/rematch help --completion zsh >$(SHARE)/zsh/site-functions/_rematch

# ---- Checks. Each file leaves a stamp, so only files that changed since the last check are analysed again.
C_FILES := $(SOURCES) $(TESTS) $(wildcard framework/*.h framework/*/*.h kernels/*/*.[ch] datasets/*.h datasets/*/*.h \
    experiments/harness/*.h experiments/harness/*/*.h tests/support/*.h)
DEFS := $(wildcard framework/*/*.def datasets/*.def)
check: check-format check-layering check-calls check-tables $(patsubst %,$(BUILD)/check/%,$(filter-out $(OTHER_MAJORS),$(C_FILES)))
FORMATTED := $(C_FILES) tests/library/example.c $(wildcard kernels/*/*.cu tests/device/*.* tests/preload/*.c experiments/bench/*.c experiments/bench/gpu/*.c)
check-format: $(BUILD)/has-check
	@clang-format --dry-run -Werror $(FORMATTED)
check-tables:
	@made=$$(awk -f experiments/tables.awk EXPERIMENTS.md) && echo "$$made" | diff EXPERIMENTS.md - || \
	    { echo "EXPERIMENTS.md differs from results/published/; make experiments-md renews its tables" >&2; exit 1; }
check-calls: $(OBJECTS)
	@nm -A -g $(OBJECTS) | awk -f tests/calls.awk
check-layering:
	@awk -f tests/layering.awk tests/rooms $(sort $(C_FILES)) $(DEFS)
$(BUILD)/check/%.h: %.h $(BUILD)/flags | $(BUILD)/build.h $(BUILD)/backends.def $(BUILD)/has-check
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) -Werror -MMD -MP -MT $@ -MF $@.d -fsyntax-only -include $< -x c /dev/null
	@touch $@
# max-nodes limits the analyser's paths so that all files take less than a minute. cppcheck cannot parse Criterion.
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
.PHONY: all deps test test-torch bench-torch install check check-format check-layering check-calls check-tables experiments-md bench bench-kernels bench-engines bench-limits bench-programme gpu-bundle numerics readme-picture exp-list format clean $(EXPERIMENTS) $(PLANS) ALWAYS
.SECONDARY:
