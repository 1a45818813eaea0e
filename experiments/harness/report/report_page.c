/* The page: one file with Chart.js, a script, a style sheet, and the tree as JSON. */
#include "report/report_tree.h"

EMBED(embedded_style, "experiments/harness/report/report.css");
EMBED(embedded_script, "experiments/harness/report/report.js");
EMBED(embedded_charts, "/usr/share/javascript/chart.js/chart.min.js");

const char report_page_begins[] = "<!DOCTYPE html>\n<!-- rematch report -->\n";

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

void report_print_page(const void *tree, FILE *out)
{
    freed_auto char *json = json_dumps(tree, JSON_COMPACT | JSON_REAL_PRECISION(17));
    fprintf(out, "%s%s%s%s", report_page_begins, head, embedded_style, body);
    write_data(json, out);
    fprintf(out, "%s%s%s%s%s", script, embedded_charts, script, embedded_script, end);
}
