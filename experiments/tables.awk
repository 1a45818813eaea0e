# Prints a document with its tables made from results/published/: what stands between <!-- table: NAME --> and
# <!-- end --> becomes the rows of NAME.csv (RFC 4180, a record a line), below its lines of provenance (# command: ...).
# The first record is the head. Usage: awk -f experiments/tables.awk EXPERIMENTS.md

function fail(what) {
    print FILENAME ":" FNR ": " what > "/dev/stderr"
    failed = 1
    exit 1
}

# The record as a line of Markdown.
function row_of(record,   row, cell) {
    row = "|"
    while (record != "") {
        if (record ~ /^"/) {
            if (!match(record, /^"([^"]|"")*"(,|$)/)) fail(path ": a quote without its end: " record)
            cell = substr(record, 2, RLENGTH - 2)
            sub(/",?$/, "", cell)
            if (substr(record, RLENGTH) == "\"") cell = substr(record, 2, RLENGTH - 2)
            gsub(/""/, "\"", cell)
        } else {
            match(record, /^[^,]*(,|$)/)
            cell = substr(record, 1, RLENGTH)
            sub(/,$/, "", cell)
        }
        last = substr(record, RLENGTH, 1) == "," && RLENGTH == length(record) # an empty cell follows
        record = substr(record, RLENGTH + 1)
        row = row (cell == "" ? " |" : " " cell " |")
    }
    return row (last ? " |" : "")
}

function print_table(path, indent,   line, rows, row, head) {
    while ((rows = (getline line < path)) > 0) {
        if (line ~ /^# (command|commit|machine|date): ./) provenance[path]++
        if (line ~ /^#/) continue
        row = row_of(line)
        print indent row
        if (head) continue
        head = 1
        gsub(/[^|]/, "", row)
        gsub(/\|/, "---|", row)
        print indent "|" substr(row, 5)
    }
    if (rows < 0) fail(path ": cannot be read")
    if (provenance[path] < 4) fail(path ": expected the lines # command:, # commit:, # machine: and # date:")
    close(path)
}

/^ *<!-- table: / {
    if (within) fail("a table within a table")
    print
    within = 1
    indent = $0
    sub(/<.*/, "", indent)
    print_table("results/published/" $3 ".csv", indent)
    next
}
/^ *<!-- end -->/ {
    if (!within) fail("the end of no table")
    within = 0
}
!within
END {
    if (!failed && within) fail("a table without <!-- end -->")
    if (failed) exit 1
}
