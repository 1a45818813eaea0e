/* The page: report.html with a style sheet, the tree as JSON, Chart.js and a script. Its policy lets a browser load
 * nothing, from files or from the network. */
#include "report/report_tree.h"

#include <string.h>

EMBED(embedded_page, "experiments/harness/report/report.html");
EMBED(embedded_style, "experiments/harness/report/report.css");
EMBED(embedded_script, "experiments/harness/report/report.js");
EMBED(embedded_charts, "/usr/share/javascript/chart.js/chart.min.js");

const char report_page_begins[] = "<!DOCTYPE html>\n<!-- rematch report -->\n";

/* A browser looks for the end of the data's element and for comments within it; JSON can do without the character. */
void report_print_page(const void *tree, FILE *out)
{
    json_auto_t *thin = report_thin(tree);
    freed_auto char *json = json_dumps(thin, JSON_COMPACT | JSON_REAL_PRECISION(17));
    const char *const parts[][2] = {
        {"{style}", embedded_style}, {"{data}", json}, {"{charts}", embedded_charts}, {"{script}", embedded_script}};
    const char *at = embedded_page;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *mark = strstr(at, parts[i][0]), *text = parts[i][1];
        fprintf(out, "%.*s", (int)(mark - at), at);
        for (; *text; text++) fprintf(out, *text == '<' && i == 1 ? "\\u003c" : "%c", *text);
        at = mark + strlen(parts[i][0]);
    }
    fputs(at, out);
}
