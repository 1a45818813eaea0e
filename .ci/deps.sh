#!/bin/sh
# Finds what is missing for the named groups (build, test, test-optional, figures, check, bench, peers, exp-plans,
# exp-NAME), says how much it is, and installs it by apt-get where that is allowed; otherwise prints the one command to
# type and exits 77. Says nothing and exits 0 where nothing is missing. Tests that need a package of test-optional are
# skipped without it.
#
#   .ci/deps.sh [-n] [GROUP...]      default: build test; -n: installs nothing
set -u

# group        what shows that it is there              Debian package
table='
build          command:gcc                              build-essential
build          command:pkg-config                       pkg-config
build          pkg-config:yaml-0.1                      libyaml-dev
build          pkg-config:hdf5                          libhdf5-dev
build          pkg-config:libxxhash                     libxxhash-dev
build          pkg-config:jansson                       libjansson-dev
build          pkg-config:libarchive                    libarchive-dev
build          pkg-config:zlib                          zlib1g-dev
build          pkg-config:libmd                         libmd-dev
build          pkg-config:libutf8proc                   libutf8proc-dev
build          header:csv.h                             libcsv-dev
build          file:/usr/share/javascript/chart.js/chart.min.js libjs-chart.js
test           pkg-config:criterion                     libcriterion-dev
test           command:ps                               procps
test           command:zstd                             zstd
test           command:h5dump                           hdf5-tools
test           command:/usr/bin/python3                 python3
test-optional  command:cbc                              coinor-cbc
test-optional  file:/usr/share/libonnx-testdata/data    libonnx-testdata
test-optional  command:gnuplot                          gnuplot-nox
test-optional  command:chromium                         chromium
test-optional  command:pdftotext                        poppler-utils
figures        command:gnuplot                          gnuplot-nox
check          command:clang-format                     clang-format
check          command:clang-tidy                       clang-tidy
check          command:cppcheck                         cppcheck
peers          module:ensurepip                         python3-venv
peers          file:/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4 libtcmalloc-minimal4
bench          header:dnnl.h                            libdnnl-dev
bench          module:torch                             python3-torch
bench          module:h5py                              python3-h5py
bench          file:/usr/lib/x86_64-linux-gnu/openblas-pthread libopenblas0-pthread
exp-plans      command:/usr/bin/python3                 python3
exp-fashion-cnn file:/usr/share/datasets/fashion-mnist  dataset-fashion-mnist
'

present() {
    case $1 in
    command:*) command -v "${1#*:}" ;;
    pkg-config:*) pkg-config --exists "${1#*:}" ;;
    header:*) echo "#include <${1#*:}>" | ${CC:-gcc} -E - ;;
    module:*) /usr/bin/python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('${1#*:}'))" ;;
    file:*) test -e "${1#*:}" ;;
    esac >/dev/null 2>&1
}

# Uses no other program, so that an empty PATH is found, too.
missing() {
    found=
    while read -r row probe package; do
        case " $* " in *" $row "*) ;; *) continue ;; esac
        case " $found " in *" $package "*) continue ;; esac
        present "$probe" || found="${found:+$found }$package"
    done <<ROWS
$table
ROWS
    echo "$found"
}

may_install=yes
if [ "${1:-}" = -n ]; then
    may_install=no
    shift
fi
[ $# -gt 0 ] || set -- build test
packages=$(missing "$@")
[ -n "$packages" ] || exit 0

install="apt-get install -y --no-install-recommends $packages"
as=unknown
if [ $may_install = yes ] && command -v apt-get >/dev/null; then
    if [ "$(id -u)" = 0 ]; then
        as=
    elif sudo -n true 2>/dev/null; then
        as='sudo -n'
    fi
fi
if [ "$as" = unknown ]; then
    printf 'missing: %s\nTo install it on Debian, type:\n    sudo %s\n' "$packages" "$install" >&2
    exit 77
fi
$as apt-get update -q >&2 || { echo "apt-get update failed" >&2; exit 77; }
size=$($as env LC_ALL=C apt-get install --assume-no --no-install-recommends $packages 2>/dev/null |
    awk '/ newly installed/ {n = $3} /^After this operation/ {print " (" n " packages with all that they need, " $4 " " $5 ")"}')
echo "installing what is missing: $packages$size" >&2
$as env DEBIAN_FRONTEND=noninteractive $install -q >&2 ||
    { echo "apt-get failed; the command was: $install" >&2; exit 77; }
left=$(missing "$@")
[ -z "$left" ] || { echo "still missing after apt-get: $left" >&2; exit 77; }
