/* What the Makefile runs is installed first. */
#include <criterion/criterion.h>
#include <stdio.h>

/* Prints each rule that runs Python and names no group of .ci/deps.sh with a package of Python's, neither where it
 * says what it needs nor in its commands. The first file is deps.sh: its first word is a group, the last a package. */
static const char unmet[] =
    "awk 'function judge(i, met) {if (!python) return; rules++; "
    "    for (i in has) met += index(rule, \"has-\" i) + index(rule, \"deps.sh \" i); if (!met) print rule} "
    "FNR == NR {if ($NF ~ /^python3/) has[$1] = 1; next} "
    "/^[^\\t#].*:/ {judge(); rule = \"\"; python = 0} "
    "{rule = rule $0; python += /^\\t.*python3/} "
    "END {judge(); if (rules < 3) print \"only \" rules \" rules were found\"}' .ci/deps.sh Makefile";

Test(deps, every_rule_that_runs_python_installs_it)
{
    char line[512];
    FILE *awk = popen(unmet, "r");
    const bool any = fgets(line, sizeof line, awk) != NULL;
    cr_assert(!any, "%s", line);
    cr_assert(pclose(awk) == 0);
}
