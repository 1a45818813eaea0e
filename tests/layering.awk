# What may include what. Usage: awk -f tests/layering.awk tests/rooms FILES...   (every .c, .h and .def of the project)
#
# 1. A file includes headers of its own folder, and of those that tests/rooms lists for it; tests see everything.
# 2. No circle: following includes from FILE.c and FILE.h never leads back to FILE.
# 3. Each library's header has its one place; framework/ otherwise sees the C library alone.
# 4. A row of a .def file has a file in its folder; a .c file there has a row or a header of its own (not in datasets/).
# 5. No function over 60 lines; no tag (struct, enum) is defined by two headers of one folder.

BEGIN {
    # library header -> where it may be included
    home["yaml.h"] = home["hdf5.h"] = home["hdf5_hl.h"] = home["jansson.h"] = "^(experiments|tests)/"
    home["archive.h"] = home["archive_entry.h"] = "^experiments/harness/bundle/"
    home["xxhash.h"] = "^framework/numerics/digest.c$"
    home["oneapi/dnnl/dnnl.h"] = "^experiments/bench/"
    home["zlib.h"] = home["csv.h"] = "^(datasets|tests)/"
    home["utf8proc.h"] = home["sha2.h"] = "^(datasets|experiments|tests)/"
    home["immintrin.h"] = "^(framework/numerics/philox_lanes|kernels/cpu/element_loops|kernels/cpu/lanes).h$"
    home["cudnn.h"] = home["cublas_v2.h"] = home["cuda_runtime.h"] = home["cuda_runtime_api.h"] = \
        "^(kernels/cuda|tests/device)/"
    home["criterion/criterion.h"] = home["criterion/hooks.h"] = "^tests/"
    c_library = " assert ctype errno float inttypes limits math stdarg stdatomic stdbool stddef stdint stdio stdlib " \
        "string time omp fcntl signal unistd sys/mman sys/prctl sys/stat " \
        "sys/types sys/resource sys/wait "
}

function report(what) {
    print FILENAME ":" FNR ": " what
    failed = 1
}

function folder_of(path) {
    sub(/\/[^\/]*$/, "", path)
    return path
}

function stem(path) {
    sub(/\.[a-z]+$/, "", path)
    return path
}

function last_name(path) {
    sub(/.*\//, "", path)
    return path
}

FILENAME == ARGV[1] {
    if ($1 ~ /^#/) next
    folder_called[last_name($1)] = $1
    may[$1] = " "
    for (i = 2; i <= NF; i++) may[$1] = may[$1] $i " "
    next
}

FNR == 1 {
    folder = folder_of(FILENAME)
    if (folder !~ /^tests/ && !(folder in may)) report("its folder is not in " ARGV[1])
    function_at = 0
    seen[FILENAME] = 1
}

/^#include "/ {
    split($0, quoted, "\"")
    header[FILENAME, FNR] = quoted[2]
}

/^#include </ {
    split($0, quoted, /[<>]/)
    base = quoted[2]
    if (base ~ /^H5/) base = "hdf5.h"
    if (base in home) {
        if (FILENAME !~ home[base]) report("<" quoted[2] "> does not belong here")
    } else if (base ~ /^(yaml|oneapi|cuda|cudnn|cublas|criterion)/ || folder ~ /^framework/) {
        sub(/\.h$/, "", base)
        if (!index(c_library, " " base " ")) report("<" quoted[2] "> is not of the C library")
    }
}

FILENAME ~ /\.h$/ && /^(struct|enum) [a-z_0-9]+ \{/ {
    if ((folder, $1, $2) in tag) report($1 " " $2 " is defined in " tag[folder, $1, $2] ", too")
    tag[folder, $1, $2] = FILENAME
}

FILENAME ~ /\.def$/ && /^[A-Z]+\(/ {
    split($0, row, /[()]/)
    rows[folder] = rows[folder] " " row[2]
}

FILENAME ~ /\.c$/ && /^\{/ { function_at = FNR }
FILENAME ~ /\.c$/ && /^}/ && function_at {
    if (FNR - function_at > 61) report("a function of " FNR - function_at - 1 " lines, over 60")
    function_at = 0
}

# Where an included header lies: beside the file, else on the include path.
function find(where, included,    root, n, i) {
    if ((where "/" included) in seen) return where "/" included
    n = split("framework/ experiments/harness/ ", root, " ")
    for (i = 1; i <= n; i++)
        if ((root[i] included) in seen) return root[i] included
    return included in seen ? included : ""
}

# Whether a file of the folder may include the header.
function allowed(folder, found,    words, n, i, other) {
    n = split(may[folder], words, " ")
    for (i = 1; i <= n; i++) {
        other = words[i]
        if (other == "framework" && found ~ /^framework\//) return 1
        if (other in folder_called && folder_of(found) == folder_called[other]) return 1
        if (found == "framework/" other ".h") return 1
    }
    return 0
}

# Takes away, again and again, what includes nothing that is left; what then is left leads back to itself.
function find_circles(    key, at, changed, left) {
    do {
        changed = 0
        for (key in edge) {
            split(key, at, SUBSEP)
            left[at[1]]++
        }
        for (key in edge) {
            split(key, at, SUBSEP)
            if (!(at[2] in left)) {
                delete edge[key]
                changed = 1
            }
        }
        delete left
    } while (changed)
    for (key in edge) {
        split(key, at, SUBSEP)
        FILENAME = at[1]
        report("on a circle of includes: " at[2])
    }
}

END {
    for (key in header) {
        split(key, at, SUBSEP)
        FILENAME = at[1]
        FNR = at[2]
        target = header[key]
        if (target ~ /\.def$/ || target == "build.h") continue # tables, and what make writes
        folder = folder_of(FILENAME)
        found = find(folder, target)
        if (found == "")
            report("\"" target "\" is not a header of this project")
        else if (folder ~ /^tests/)
            continue
        else if (folder_of(found) != folder && !allowed(folder, found))
            report("\"" target "\" is not of a room that " folder " may include")
        else if (stem(FILENAME) != stem(found))
            edge[stem(FILENAME), stem(found)] = 1
    }
    FNR = 1
    find_circles()
    for (folder in rows) {
        if (folder == "datasets") continue # helpers live there too; an unlisted one does not link
        n = split(rows[folder], row, " ")
        for (i = 1; i <= n; i++) {
            listed[folder "/" row[i] ".c"] = 1
            FILENAME = folder
            if (!((folder "/" row[i] ".c") in seen)) report("row " row[i] " has no file")
        }
        for (FILENAME in seen)
            if (folder_of(FILENAME) == folder && FILENAME ~ /\.c$/ && !(FILENAME in listed) &&
                !((stem(FILENAME) ".h") in seen)) report("has neither a row nor a header")
    }
    exit failed
}
