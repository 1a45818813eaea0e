# Prints a document with its tables made from results/published/: what stands between <!-- table: NAME --> and
# <!-- end --> becomes the rows of NAME.csv (RFC 4180, a record a line), below its lines of provenance (# command: ...).
# The first record is the head; a first cell that repeats the one above stays empty.
# What stands between <!-- rows: FILE --> and <!-- end --> becomes the lines of FILE. In these {NAME; ROW; COLUMN; N} is
# the Nth number, else the first, with its unit, of a cell of NAME.csv; ROW is a cell of that row, or several joined by
# " & ". Any other number in the fourth column must stand in the text of the section that the row links.
# Usage: awk -f experiments/tables.awk EXPERIMENTS.md

function fail(what) {
    print FILENAME ":" FNR ": " what > "/dev/stderr"
    failed = 1
    exit 1
}

# A record as cell[name, row, 1] to cell[name, row, columns], cell 0 the first or, where that is empty, the one above;
# returns the columns.
function read_record(name, row, record,   text, comma, column) {
    do {
        if (!match(record, /^("([^"]|"")*"|([^",][^,]*)?)(,|$)/))
            fail(name ": a quote without its end: " record)
        text = substr(record, 1, RLENGTH)
        record = substr(record, RLENGTH + 1)
        comma = sub(/,$/, "", text)
        if (text ~ /^"/) text = substr(text, 2, length(text) - 2)
        gsub(/""/, "\"", text)
        cell[name, row, ++column] = text
    } while (comma)
    cell[name, row, 0] = cell[name, row, 1] == "" ? cell[name, row - 1, 0] : cell[name, row, 1]
    return column
}

# Row 0 of a table is its head.
function read_table(name,   path, line, read, provenance, row, width) {
    if (name in columns) return
    path = "results/published/" name ".csv"
    row = -1
    while ((read = (getline line < path)) > 0) {
        if (line ~ /^# (command|commit|machine|date): ./) provenance++
        if (line ~ /^#/) continue
        width = read_record(name, ++row, line)
        if (row && width != columns[name]) fail(path ": a row of " width " cells: " line)
        columns[name] = width
    }
    if (read < 0) fail(path ": cannot be read")
    if (provenance < 4) fail(path ": expected the lines # command:, # commit:, # machine: and # date:")
    close(path)
    rows[name] = row
}

function print_table(name, indent,   row, column, text, line, rule) {
    read_table(name)
    for (row = 0; row <= rows[name]; row++) {
        line = rule = "|"
        for (column = 1; column <= columns[name]; column++) {
            text = cell[name, row, column]
            if (row > 1 && column == 1 && text == cell[name, row - 1, 1]) text = ""
            line = line (text == "" ? " |" : " " text " |")
            rule = rule "---|"
        }
        print indent line
        if (!row) print indent rule
    }
}

function has_cells(name, row, keys,   part, count, column) {
    for (count = split(keys, part, / & /); count; count--) {
        for (column = 0; column <= columns[name] && cell[name, row, column] != part[count]; column++);
        if (column > columns[name]) return 0
    }
    return 1
}

# The number of the reference NAME; ROW; COLUMN; N.
function number_of(reference,   part, name, column, row, found, text, number, n) {
    split(reference, part, /; /)
    read_table(name = part[1])
    for (column = 1; column <= columns[name] && cell[name, 0, column] != part[3]; column++);
    for (row = 1; row <= rows[name]; row++)
        if (has_cells(name, row, part[2])) found = found ? -1 : row
    if (found < 1 || column > columns[name]) fail("{" reference "}: expected one such row and column")
    text = cell[name, found, column]
    for (n = part[4] ? part[4] : 1; n; n--) {
        if (!match(text, /[-+x]?[0-9]+([.,][0-9]+)*( (%|GB|GiB|MiB|KiB|ms|s)($|[^a-z]))?/))
            fail("{" reference "}: no such number")
        number = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
    }
    sub(/[^A-Za-z0-9%]$/, "", number)
    return number
}

# Notes the numbers of the fourth column that are not references.
function expect(line,   part, anchor) {
    if (!match(line, /\]\(#[^)]*/)) return
    anchor = substr(line, RSTART + 3, RLENGTH - 3)
    gsub(/[{][^}]*[}]/, "", line)
    split(line, part, /[|]/)
    for (line = part[5]; match(line, /[0-9]+([.,][0-9]+)*/); line = substr(line, RSTART + RLENGTH))
        expected[anchor, substr(line, RSTART, RLENGTH)] = 1
}

function print_rows(path,   line, read, made, rest) {
    while ((read = (getline line < path)) > 0) {
        expect(line)
        for (made = ""; match(line, /[{][^}]*[}]/); line = rest) {
            rest = substr(line, RSTART + RLENGTH)
            made = made substr(line, 1, RSTART - 1) number_of(substr(line, RSTART + 1, RLENGTH - 2))
        }
        print made line
    }
    if (read < 0) fail(path ": cannot be read")
}

/^ *<!-- (table|rows): / {
    if (within) fail("a table within a table")
    print
    within = 1
    indent = $0
    sub(/<.*/, "", indent)
    if ($2 == "table:") print_table($3, indent)
    else print_rows($3)
    next
}
/^ *<!-- end -->/ {
    if (!within) fail("the end of no table")
    within = 0
}
/^## / {
    anchor = tolower(substr($0, 4))
    gsub(/[^a-z0-9_ -]/, "", anchor)
    gsub(/ /, "-", anchor)
}
!within {
    print
    for (rest = $0; match(rest, /[0-9]+([.,][0-9]+)*/); rest = substr(rest, RSTART + RLENGTH))
        delete expected[anchor, substr(rest, RSTART, RLENGTH)]
}
END {
    if (!failed && within) fail("a table without <!-- end -->")
    if (failed) exit 1
    for (number in expected) {
        sub(SUBSEP, " has no ", number)
        fail("section " number)
    }
}
