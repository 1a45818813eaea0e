#!/bin/sh
# Builds a folder that runs on another Linux machine with an NVIDIA GPU, and an archive of it.
#
#   experiments/bench/gpu/bundle.sh BUILD FOLDER      BUILD: the folder of the program and the suite
#
# It contains the program (rematch, and rematch-cuda linked with CUDA's libraries), the test binary, the shared libraries
# that they need except CUDA's and the C library's, the specs, the benchmark with the library that measures launch gaps if
# it was built, and gpu.sh, which runs everything. Fails if the folder would be larger than 64 MiB.
set -eu
build=$1
folder=$2
most=64

rm -rf "$folder" "$folder.tar.gz"
mkdir -p "$folder/program" "$folder/lib" "$folder/results" "$folder/tests"
cp "$build/rematch" "$build/rematch-cuda" "$build/suite" "$folder/program/"
strip --strip-unneeded "$folder/program/"*
[ ! -e "$build/trace.so" ] || cp "$build/trace.so" "$folder/"
for program in rematch suite; do
    cat >"$folder/$program" <<'WRAPPER'
#!/bin/sh
# The program of this name with the libraries beside it.
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/lib:${LD_LIBRARY_PATH:-} exec "$here/program/$(basename "$0")" "$@"
WRAPPER
    chmod +x "$folder/$program"
done
ldd "$build/rematch-cuda" "$build/suite" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -Ev '/(lib(cuda|cudart|cudnn[a-z_]*|cublas|cublasLt|nv[A-Za-z-]*)|ld-linux[a-z0-9-]*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl))\.so' |
    while read -r library; do cp -L "$library" "$folder/lib/"; done
cp -r experiments "$folder/experiments"
rm -rf "$folder/experiments/harness" "$folder/experiments/plans"
cp -r tests/bad tests/bad_chains "$folder/tests/"
rm -rf "$folder/experiments/bench/__pycache__"
cp experiments/bench/gpu/gpu.sh "$folder/gpu.sh"
chmod +x "$folder/gpu.sh"
tar -C "$folder" -czf "$folder/lib.tar.gz" lib # unpacked by gpu.sh; oneDNN alone has 40 MB
rm -r "$folder/lib"
tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
size=$(du -sm "$folder" | cut -f1)
echo "$folder: $size MiB, $(du -sm "$folder.tar.gz" | cut -f1) MiB as an archive"
[ "$size" -lt "$most" ] || { echo "larger than $most MiB" >&2; exit 1; }
