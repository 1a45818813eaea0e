# What may include what. Usage: awk -f tests/layering.awk FILES...   (every .c, .h and .def file of the project)
#
# 1. framework/ is an order: a file includes its own header and those that come before it, nothing of other folders.
# 2. The other folders see a part of framework/ and their own headers.
# 3. Each library's header has its one place; framework/ otherwise sees the C library alone.
# 4. A row of a .def file and a file of its folder belong together.
# 5. No file over 500 lines, no function over 60.

BEGIN {
    order = "status region file hash squares philox philox_lanes text units field shape tokens rng element_draw element_xxh3 element_optim element_exp element_gelu optim update learning_rate layer op account graph wisdom ledger backend host feed network " \
        "reference layers abstract schedule claims symbolic simulate chain lower place plan plan_account excerpt " \
        "signs variants pareto offers optimum budget bounds residence evict policy others policies measure fault exec train"
    split(order, name, " ")
    for (i in name) rank[name[i]] = i + 0
    # folder -> the last of framework/ it sees, and the other folders
    sees["kernels"] = "network"
    sees["datasets"] = "rng"
    sees["experiments"] = sees["tests"] = "train"
    also["experiments"] = "datasets"
    also["tests"] = "datasets experiments kernels"
    # library header -> where it may be included
    home["yaml.h"] = home["hdf5.h"] = home["hdf5_hl.h"] = home["jansson.h"] = "^(experiments|tests)/"
    home["xxhash.h"] = "^framework/numerics/digest.c$"
    home["dnnl.h"] = home["oneapi/dnnl/dnnl.h"] = "^kernels/cpu/"
    home["zlib.h"] = home["csv.h"] = "^(datasets|tests)/"
    home["utf8proc.h"] = home["sha2.h"] = "^(datasets|experiments|tests)/"
    home["immintrin.h"] = "^framework/numerics/philox_lanes.h$"
    home["cudnn.h"] = home["cublas_v2.h"] = home["cublasLt.h"] = home["cuda_runtime.h"] = home["cuda_runtime_api.h"] = \
        "^(kernels/cuda|tests/device)/"
    home["criterion/criterion.h"] = "^tests/"
    c_library = " assert ctype errno float inttypes limits math stdarg stdatomic stdbool stddef stdint stdio stdlib " \
        "string time omp fcntl unistd sys/mman sys/stat sys/types sys/resource "
}

function complain(what) {
    print FILENAME ":" FNR ": " what
    failed = 1
}

function stem(path) {
    sub(/.*\//, "", path)
    sub(/\.[a-z]+$/, "", path)
    return path
}

FNR == 1 {
    split(FILENAME, part, "/")
    folder = part[1]
    place = FILENAME
    sub(/\/[^\/]*$/, "", place)
    own = place == "framework" ? stem(FILENAME) : part[2] # framework/layers/conv.c stands where `layers` does
    if (folder == "framework" && !(own in rank)) complain("`" own "` has no place in the order of tests/layering.awk")
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
        if (FILENAME !~ home[base]) complain("<" quoted[2] "> does not belong here")
    } else if (base ~ /^(yaml|dnnl|oneapi|cuda|cudnn|cublas|criterion)/ || folder == "framework") {
        sub(/\.h$/, "", base)
        if (!index(c_library, " " base " ")) complain("<" quoted[2] "> is not of the C library")
    }
}

FILENAME ~ /\.def$/ && /^[A-Z]+\(/ {
    split($0, row, /[()]/)
    rows[FILENAME] = rows[FILENAME] " " row[2]
}

FNR == 501 { complain("more than 500 lines") }
FILENAME ~ /\.c$/ && /^\{/ { function_at = FNR }
FILENAME ~ /\.c$/ && /^}/ && function_at {
    if (FNR - function_at > 61) complain("a function of " FNR - function_at - 1 " lines, over 60")
    function_at = 0
}

# Where an included header lies: beside the file, else on the include path.
function find(where, included,    folders, n, i) {
    if ((where "/" included) in seen) return where "/" included
    n = split("framework kernels datasets experiments/harness", folders, " ")
    for (i = 1; i <= n; i++)
        if ((folders[i] "/" included) in seen) return folders[i] "/" included
    return ""
}

END {
    for (key in header) {
        split(key, at, SUBSEP)
        FILENAME = at[1]
        FNR = at[2]
        target = header[key]
        if (target ~ /\.def$/ || target == "build.h") continue # tables, and what make writes
        split(FILENAME, part, "/")
        folder = part[1]
        place = FILENAME
        sub(/\/[^\/]*$/, "", place)
        found = find(place, target)
        split(found, target_part, "/")
        if (found == "") {
            complain("\"" target "\" is not a header of this project")
        } else if (target_part[1] == "framework") {
            from = folder != "framework" ? sees[folder] : place == "framework" ? stem(FILENAME) : part[2]
            if (rank[stem(found)] > rank[from]) complain("\"" target "\" is of a higher level than " \
                (folder == "framework" ? "`" from "`" : folder "/ may see"))
        } else if (target_part[1] != folder && !index(" " also[folder] " ", " " target_part[1] " ")) {
            complain(folder "/ never includes " target_part[1] "/ (\"" target "\")")
        } else if (folder == "kernels" && target_part[2] != part[2]) {
            complain("a backend sees its own folder only (\"" target "\")")
        }
    }
    FNR = 1
    for (FILENAME in rows) {
        folder = FILENAME == "datasets/datasets.def" ? "datasets" : FILENAME
        sub(/\.def$/, "", folder)
        n = split(rows[FILENAME], row, " ")
        for (i = 1; i <= n; i++)
            if (!((folder "/" row[i] ".c") in seen)) complain("row " row[i] " has no file " folder "/" row[i] ".c")
        if (folder == "datasets") continue # helpers live there too; an unlisted one does not link
        for (file in seen)
            if (index(file, folder "/") == 1 && file ~ /\.c$/ && !index(rows[FILENAME] " ", " " stem(file) " "))
                complain(file " has no row")
    }
    exit failed
}
