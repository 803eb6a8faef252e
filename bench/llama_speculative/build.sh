#!/bin/sh
# Builds llama.cpp's own speculative-simple for bench/speculative.py, in build/llama: some minutes, once.
#
#     PYTHON=.venv/bin/python bench/llama_speculative/build.sh
#
# The sources are those of the llama-cpp-python that $PYTHON has, from its source distribution, and the program is
# linked with the libllama of that installation. CMake: that beside $PYTHON, or that of the system.
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
cmake=$(dirname "$python")/cmake
[ -x "$cmake" ] || cmake=cmake
version=$("$python" -c 'from importlib.metadata import version; print(version("llama-cpp-python"))')
libraries=$("$python" -c 'from pathlib import Path; import llama_cpp; print(Path(llama_cpp.__file__).parent / "lib")')
mkdir -p build/llama
sources=build/llama/llama_cpp_python-$version
archive=$sources.tar.gz
[ -f "$archive" ] || "$python" -m pip download -q --no-deps --no-binary llama-cpp-python -d build/llama "llama-cpp-python==$version"
[ -d "$sources/vendor/llama.cpp/common" ] || tar xzf "$archive" -C build/llama "llama_cpp_python-$version/vendor/llama.cpp"
"$cmake" -S bench/llama_speculative -B build/llama/build \
    -DSOURCES="$PWD/$sources/vendor/llama.cpp" -DLIBRARIES="$libraries"
"$cmake" --build build/llama/build
echo "build/llama/build/llama-speculative-simple"
