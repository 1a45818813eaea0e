# No two files call each other, directly or by others. Usage: nm -A -g OBJECTS... | awk -f tests/calls.awk
#
# Only functions count: a registry's table names its rows, which are data, and rows may call the registry.

{
    file = $1
    sub(/:.*/, "", file)
    kind = $(NF - 1)
    sub(/.*:/, "", kind)
    name = $NF
    if (kind == "T") home[name] = file
    if (kind == "U") uses[file] = uses[file] " " name
    seen[file] = 1
}

# Follows the calls from a file; reports the way back to one that is being followed.
function follow(file, way,    word, count, i, to) {
    state[file] = 1
    count = split(uses[file], word, " ")
    for (i = 1; i <= count; i++) {
        to = home[word[i]]
        if (to == "" || to == file || state[to] == 2) continue
        if (state[to] == 1) {
            print "files call each other:" substr(way, index(way, " " to)) " " file " calls " word[i] "()"
            failed = 1
        } else follow(to, way " " file)
    }
    state[file] = 2
}

END {
    for (file in seen) if (!state[file]) follow(file, "")
    exit failed
}
