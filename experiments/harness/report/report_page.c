/* The page: one file with Chart.js, a script, a style sheet, and the tree as JSON. */
#include <stdlib.h>

#include "report/report_tree.h"
#include "yaml/yaml_write.h"

EMBED(embedded_style, "experiments/harness/report/report.css");
EMBED(embedded_script, "experiments/harness/report/report.js");
EMBED(embedded_charts, "/usr/share/javascript/chart.js/chart.min.js");

/* What shows that a file may be replaced. */
static const char begins[] = "<!DOCTYPE html>\n<!-- rematch report -->\n";

/* The policy lets a browser load nothing, from files or from the network. */
static const char head[] =
    "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; script-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Rematch report</title>\n<style>\n",
                  body[] =
                      "</style>\n</head>\n<body>\n<noscript>This page is drawn by a script, and scripts are switched "
                      "off here.</noscript>\n<main id=\"page\"></main>\n"
                      "<script type=\"application/json\" id=\"data\">",
                  script[] = "</script>\n<script>\n", end[] = "</script>\n</body>\n</html>\n";

/* A browser looks for the end of the element and for comments within it; JSON can do without the character. */
static void write_data(const char *json, FILE *out)
{
    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    }
}

static void write_page(const void *tree, FILE *out)
{
    char *json = json_dumps(tree, JSON_COMPACT | JSON_REAL_PRECISION(17));
    fprintf(out, "%s%s%s%s", begins, head, embedded_style, body);
    write_data(json, out);
    free(json);
    fprintf(out, "%s%s%s%s%s", script, embedded_charts, script, embedded_script, end);
}

enum status report_check_page(const char *where) { return yaml_write_check(where, begins, "page of rematch report"); }

enum status report_write_page(const json_t *tree, const char *path) { return yaml_write_whole(path, write_page, tree); }
