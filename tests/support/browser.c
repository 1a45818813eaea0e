#include "browser.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The page is read before its controls are used, and written down after, so that an error in their use is seen. */
static const char probe[] =
    "<script>(() => {"
    "const read = () => ({title: document.querySelector('h1')?.textContent, verdict: document.querySelector('.verdict "
    "strong')?.textContent,"
    "  text: document.getElementById('page').innerText,"
    "  charts: Object.fromEntries([...document.querySelectorAll('canvas')].map(canvas => { const chart = "
    "Chart.getChart(canvas); return [canvas.id,"
    "    {unit: chart.options.scales.y?.title?.text + ' / ' + chart.options.scales.x?.title?.text, labels: "
    "chart.data.datasets.map(d => d.label),"
    "     paints: chart.data.datasets.map(d => d.borderColor), marks: chart.data.datasets.map(d => "
    "[d.pointStyle].flat()[0] ?? null),"
    "     described: canvas.getAttribute('aria-label'), data: chart.data.datasets.map(d => d.data.map(p => [p.x, "
    "p.y]))}]; })),"
    "  scrolls: document.documentElement.scrollWidth > window.innerWidth});"
    "const seen = read();"
    "for (const one of document.querySelectorAll('details')) one.open = true;"
    "for (const one of document.querySelectorAll('input')) { one.click(); one.click(); }"
    "for (const one of document.querySelectorAll('select')) for (const option of [...one.options].slice(0, "
    "3).reverse()) {"
    "  one.value = option.value; one.dispatchEvent(new Event('change')); }"
    "window.dispatchEvent(new Event('beforeprint')); window.dispatchEvent(new Event('afterprint'));"
    "for (const canvas of document.querySelectorAll('canvas')) { const chart = Chart.getChart(canvas), first = "
    "chart.data.datasets.length - 1;"
    "  if (chart.data.datasets[first].data.length) { chart.tooltip.setActiveElements([{datasetIndex: first, index: "
    "0}], {x: 0, y: 0}); chart.draw(); } }"
    "setTimeout(() => {"
    "  for (const one of document.querySelectorAll('th button')) { one.click(); one.click(); }"
    "  seen.error = document.getElementById('error')?.textContent ?? null;"
    "  const text = JSON.stringify(seen).replace(/[<>&]/g, c => '\\\\u00' + c.charCodeAt(0).toString(16));"
    "  document.body.innerHTML = '<pre id=seen></pre>'; document.getElementById('seen').textContent = text;"
    "}, 300); })();</script></body>";

void browser_require(void)
{
    if (system("command -v chromium >/dev/null") != 0) cr_skip_test("chromium is not installed");
}

static char *read_all(FILE *file)
{
    char *text = NULL;
    size_t room = 0;
    cr_assert(file != NULL && getdelim(&text, &room, '\0', file) > 0);
    return text;
}

/* A window is at least 500 pixels wide, so the page is in a frame, whose script writes into its own document. */
static void write_probed(const struct cli *cli, const char *page, int width)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", cli->folder, page);
    FILE *in = fopen(path, "r");
    char *text = read_all(in), *end = strstr(text, "</body>"), *next;
    fclose(in);
    cr_assert(end != NULL, "%s has no end", page);
    while ((next = strstr(end + 1, "</body>"))) end = next;
    snprintf(path, sizeof path, "%s/probed.html", cli->folder);
    FILE *out = fopen(path, "w");
    cr_assert(out && fprintf(out, "%.*s%s%s", (int)(end - text), text, probe, end + strlen("</body>")) > 0 &&
              fclose(out) == 0);
    free(text);
    snprintf(path, sizeof path, "%s/frame.html", cli->folder);
    out = fopen(path, "w");
    cr_assert(
        out &&
        fprintf(out,
                "<body><iframe id=f style='width:%dpx;height:900px;border:0' src=probed.html></iframe><pre "
                "id=seen></pre><script>setInterval(() => { const s = document.getElementById('f').contentDocument"
                "?.getElementById('seen'); if (s) document.getElementById('seen').textContent = s.textContent; }, "
                "50)</script></body>",
                width) > 0 &&
        fclose(out) == 0);
}

json_t *browser_show(const struct cli *cli, const char *page, int width)
{
    static const char begins[] = "<pre id=\"seen\">";
    char command[2048];
    json_error_t error;
    write_probed(cli, page, width);
    snprintf(command, sizeof command,
             "cd '%s' && HOME=$PWD timeout 300 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
             "--allow-file-access-from-files --user-data-dir=profile --window-size=%d,900 --virtual-time-budget=20000 "
             "--dump-dom \"file://$PWD/frame.html\" 2>/dev/null",
             cli->folder, width < 500 ? 500 : width);
    FILE *chromium = popen(command, "r");
    char *dom = read_all(chromium), *seen = strstr(dom, begins);
    cr_assert(pclose(chromium) == 0 && seen != NULL, "%s: chromium shows\n%.2000s", page, dom);
    seen += strlen(begins);
    json_t *json = json_loadb(seen, strcspn(seen, "<"), 0, &error);
    cr_assert(json != NULL, "%s: %s\n%.2000s", page, error.text, seen);
    free(dom);
    return json;
}
