/* Draws the page from the JSON in #data (results/README.md names its members). Texts of files become text nodes, never
 * markup. */
"use strict";
window.onerror = (message, file, line) => {
  document.body.prepend(make("p", {id: "error", role: "alert"}, `script error, line ${line}: ${message}`));
};
const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const MIB = 2 ** 20, NONE = "–";

/* ---- elements and numbers ---- */

function make(name, settings, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(settings || {}))
    if (value !== undefined && value !== false) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && units[unit + 1]) { value /= base; unit++; }
  return `${value.toFixed(unit === 0 ? 0 : Math.abs(value) < 10 ? 2 : 1)} ${units[unit]}`;
}
const known = (value, text) => typeof value === "number" && isFinite(value) ? text(value) : NONE;
const bytes = value => known(value, v => scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]));
const flops = value => known(value, v => v ? scaled(v, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]) : NONE);
const time = value => known(value, v => v ? scaled(v, 1000, ["ns", "µs", "ms", "s"]) : NONE);
const factor = value => known(value, v => `${v.toFixed(3)}×`);
const count = value => known(value, v => v ? String(v) : NONE);
const exact = value => known(value, v => String(Math.fround(v) === v ? parseFloat(v.toPrecision(9)) : v));
const plain = value => value === null || value === undefined || value === "" ? NONE : String(value);
const natural = (a, b) => a.localeCompare(b, "en", {numeric: true});
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/* columns: {head, of: row => value, text: value => text, number, long}. The rows are made where the table is opened. */
function table(columns, rows, caption) {
  const head = make("tr"), body = make("tbody");
  const fill = () => body.replaceChildren(...rows.map(row => make("tr", {}, ...columns.map(column => {
    const value = column.of(row), kind = column.text && column.text !== plain ? "number" : column.long ? "long" : undefined;
    return make("td", {class: kind}, (column.text || plain)(value));
  }))));
  for (const column of columns) {
    const cell = make("th", {scope: "col", class: column.text && column.text !== plain ? "number" : undefined});
    const button = make("button", {type: "button"}, column.head);
    button.onclick = () => {
      const down = cell.getAttribute("aria-sort") === (column.text ? "descending" : "ascending") ? column.text ? 1 : -1 : column.text ? -1 : 1;
      for (const other of head.children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
      const order = value => typeof value === "number" ? value : -Infinity;
      rows = [...rows].sort((x, y) => {
        const [a, b] = [column.of(x), column.of(y)];
        return down * (column.text && column.text !== plain ? order(a) - order(b) || 0 : natural(plain(a), plain(b)));
      });
      fill();
    };
    cell.append(button);
    head.append(cell);
  }
  fill();
  return make("div", {class: "wide", tabindex: 0, role: "region", "aria-label": caption || "table"},
              make("table", {}, ...(caption ? [make("caption", {}, caption)] : []), make("thead", {}, head), body));
}

function section(title, ...children) {
  const found = make("section", {}, make("h2", {}, title), ...children);
  page.append(found);
  return found;
}

/* A list to choose one of several; calls back at once and after every choice. */
function choose(parent, label, names, first, chosen) {
  const into = make("div");
  const select = make("select", {"aria-label": label}, ...names.map((name, i) => make("option", {value: i}, name)));
  select.value = first;
  select.onchange = () => { into.replaceChildren(); chosen(into, +select.value); };
  if (names.length > 1) parent.append(make("label", {}, `${label} `, select));
  parent.append(into);
  chosen(into, first);
}

/* ---- charts ---- */

const charts = new Map(); /* canvas -> what builds its chart in the colours of now */
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function draw(canvas, build) {
  Chart.getChart(canvas)?.destroy();
  Object.assign(Chart.defaults, {animation: false, maintainAspectRatio: false, color: colour("ink"), borderColor: colour("line"),
                                 devicePixelRatio: Math.max(2, window.devicePixelRatio)});
  Chart.defaults.font.family = getComputedStyle(document.documentElement).fontFamily;
  new Chart(canvas, build());
}

function redraw() {
  for (const [canvas, build] of charts) canvas.isConnected ? draw(canvas, build) : charts.delete(canvas);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
for (const [event, printed] of [["beforeprint", true], ["afterprint", false]])
  window.addEventListener(event, () => { document.documentElement.classList.toggle("printed", printed); redraw(); });

/* What the colours stand for: [name, variable, is a line]. */
const key = (entries, title) => make("ul", {class: "key"}, ...(title ? [make("li", {class: "title"}, title)] : []), ...entries.map(([name, variable, line]) =>
  make("li", {style: `--colour: var(--${variable})`, class: line ? "line" : undefined}, name)));

/* numbers: makes the table of what is drawn. */
function chart(parent, id, {height, label, caption, build, numbers}) {
  const canvas = make("canvas", {id, role: "img", "aria-label": label}), details = make("details", {}, make("summary", {}, "Numbers"));
  details.ontoggle = () => { if (details.open && details.children.length === 1) details.append(numbers()); };
  parent.append(make("figure", {},
    make("div", {class: "chart", style: `height: ${height}px`}, canvas),
    ...(caption ? [make("figcaption", {}, caption)] : []), details));
  charts.set(canvas, build);
  draw(canvas, build);
}

const axis = (title, more) => ({title: {display: true, text: title}, border: {display: false}, ...more});
const legend = {position: "bottom", labels: {usePointStyle: true, boxHeight: 7, sort: (a, b) => a.datasetIndex - b.datasetIndex}};

/* The end of an axis from 0, with room for four lines of text above the largest value, and the distance of its lines. */
function roundTop(most) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough)), stepSize = power * [1, 2, 5, 10].find(step => step * power >= rough);
  return {max: Math.ceil(most * 1.34 / stepSize) * stepSize, ticks: {stepSize}};
}

/* The unit in which a chart shows bytes, and round steps between its lines. */
function byteAxis(most, title) {
  const [size, name] = most >= 2 ** 30 ? [2 ** 30, "GiB"] : most >= MIB ? [MIB, "MiB"] : [1024, "KiB"];
  return {size, name, axis: axis(`${title}, ${name}`)};
}

/* A policy has one colour and one mark in all charts and figures (report.gp), by its place among all policies; what is no
 * policy has those of its place i. */
const styles = ["circle", "rect", "triangle", "rectRot", "star", "cross"], COLOURS = 7;
function styleOf(policy, i) {
  const number = data.policies.includes(policy) ? data.policies.indexOf(policy) : i;
  return {paint: colour(`policy-${number % COLOURS + 1}`), mark: styles[number % styles.length]};
}

/* ---- live memory ---- */

const colours = ["activations", "saved", "gradients", "scratch", "parameters"], phases = ["forward", "recompute", "backward"];
const opAt = (plan, i) => plan.ops.op[i]; /* its number in the step; of many ops, those with the most and the least bytes are here */
const fewer = plan => plan.ops.op.length < plan.ops.count ? ` ${plan.ops.op.length} of ${plan.ops.count} ops are drawn: of each of many equal parts those with the most and the least live bytes.` : "";
const sum = values => values.reduce((a, b) => a + b, 0);
const totals = plan => plan.ops.phase.map((_, op) => sum(plan.categories.map(name => plan.ops.live_bytes[name][op])));
const planOf = run => run.plan === null ? null : data.plans[run.plan];

/* Of each of so many parts of the ops, the one with the most bytes: {from, to, op}. The peak is always there. */
function thinned(live) {
  const most = 1200, parts = Math.min(live.length, most), found = [];
  for (let part = 0; part < parts; part++) {
    const from = Math.floor(part * live.length / parts), to = Math.floor((part + 1) * live.length / parts);
    let op = from;
    for (let i = from; i < to; i++) if (live[i] > live[op]) op = i;
    found.push({from, to, op});
  }
  return found;
}

/* Two points for each part, so that it is drawn as a step. */
const points = (plan, parts, values, size) => parts.flatMap(({from, to, op}) => [from, to].map(x => ({x: opAt(plan, x) ?? plan.ops.count, y: values(op) / size, op})));

const tensorsAt = (plan, op) => plan.buffers.text.map((text, i) => ({text, bytes: plan.buffers.bytes[i], category: plan.categories[plan.buffers.category[i]],
    live: plan.buffers.birth[i] <= opAt(plan, op) && opAt(plan, op) <= plan.buffers.death[i]})).filter(b => b.live).sort((a, b) => b.bytes - a.bytes);

/* A strip of the phases above the plot, a tint below it, and the peak with its largest tensors. */
function marks(plan, peak, unit, base) {
  const phase = plan.ops.phase;
  return {
    id: "marks",
    beforeDatasetsDraw({ctx, chartArea: {top, bottom}, scales: {x}}) {
      for (let from = 0, to; from < phase.length; from = to) {
        for (to = from; to < phase.length && phase[to] === phase[from];) to++;
        const [left, right] = [x.getPixelForValue(opAt(plan, from)), x.getPixelForValue(opAt(plan, to) ?? plan.ops.count)];
        ctx.fillStyle = colour(phases[phase[from]]);
        ctx.fillRect(left, top - 12, right - left, 7);
        ctx.globalAlpha = phase[from] === 1 ? .16 : 0;
        ctx.fillRect(left, top, right - left, bottom - top);
        ctx.globalAlpha = 1;
      }
    },
    afterDatasetsDraw({ctx, chartArea: {left, right, top}, scales: {x, y}}) {
      const at = x.getPixelForValue(opAt(plan, peak.op) + .5), height = y.getPixelForValue((peak.bytes + base()) / unit);
      const lines = [`peak ${bytes(peak.bytes)} at ${plan.ops.text[peak.op]}`, ...tensorsAt(plan, peak.op).slice(0, 3).map(b => `${b.text} ${bytes(b.bytes)}`)];
      ctx.font = `12px ${Chart.defaults.font.family}`;
      const width = Math.max(...lines.map(line => ctx.measureText(line).width)), beside = at + 6 + width < right;
      const from = Math.max(left, beside ? at + 6 : at - 6 - width);
      ctx.fillStyle = ctx.strokeStyle = colour("ink");
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(at, height);
      ctx.lineTo(at, from < at && at < from + width ? top + 15 * lines.length + 6 : top);
      ctx.stroke();
      lines.forEach((line, i) => ctx.fillText(line, from, top + 14 + 15 * i));
      ctx.beginPath();
      ctx.arc(at, height, 4, 0, 7);
      ctx.fill();
    },
  };
}

function memoryChart(parent, id, run, other, limits, withStatic) {
  const plan = planOf(run), live = totals(plan), shown = thinned(live), unit = limits.unit;
  const fixed = sum(Object.values(plan.static_bytes)), base = () => withStatic() ? fixed : 0;
  const peak = live.reduce((best, value, op) => value > best.bytes ? {op, bytes: value} : best, {op: 0, bytes: -1});
  const outline = other && planOf(other) ? totals(planOf(other)) : null;
  const stack = () => [...(withStatic() ? [["static", "static", () => fixed]] : []),
                       ...plan.categories.map((name, c) => [name, colours[c], op => plan.ops.live_bytes[name][op]])];
  /* Every layer reaches from 0 to its own top; the lowest is drawn in front. */
  const layer = ([name, variable, own], i, all) => ({label: name, own, pointRadius: 0, pointHitRadius: 0, borderWidth: 0, fill: "origin", backgroundColor: colour(variable),
    data: points(plan, shown, op => sum(all.slice(0, i + 1).map(([, , of]) => of(op))), unit.size)});
  parent.append(make("h3", {}, `Run ${data.runs.indexOf(run) + 1}, ${run.side}: policy ${run["/plan"].policy}`));
  chart(parent, id, {
    height: 340,
    label: `Live memory over the ${plan.ops.count} ops of a step of the ${run.side}, policy ${run["/plan"].policy}: it peaks at ${bytes(peak.bytes)} in op ` +
           `${opAt(plan, peak.op)}, ${plan.ops.text[peak.op]}. Static memory adds ${bytes(fixed)}.`,
    caption: `At the peak, op ${opAt(plan, peak.op)} (${plan.ops.text[peak.op]}): ` +
             tensorsAt(plan, peak.op).slice(0, 8).map(b => `${b.text} ${bytes(b.bytes)}`).join(", ") + `. Static memory adds ${bytes(fixed)}: ` +
             Object.entries(plan.static_bytes).filter(([, v]) => v).map(([name, v]) => `${name} ${bytes(v)}`).join(", ") + "." + fewer(plan),
    build: () => ({
      type: "line",
      data: {datasets: [
        ...(outline ? [{label: `all of run ${data.runs.indexOf(other) + 1}`, pointRadius: 0, pointHitRadius: 0, borderWidth: 1.5, borderDash: [4, 3], fill: false,
          borderColor: colour("other"), data: points(planOf(other), thinned(outline), op => outline[op] + base(), unit.size)}] : []),
        ...stack().map(layer)]},
      options: {
        interaction: {mode: "nearest", axis: "x", intersect: false},
        layout: {padding: {top: 14}},
        scales: {x: {...axis("ops of one training step, in order"), type: "linear", min: 0, max: limits.ops, grid: {display: false}, ticks: {includeBounds: false}},
                 y: {...unit.axis, ...roundTop((limits.bytes + limits.fixed * (withStatic() ? 1 : 0)) / unit.size)}},
        plugins: {legend: {display: false}, tooltip: {
          filter: item => item.dataset.own, itemSort: (a, b) => b.datasetIndex - a.datasetIndex,
          callbacks: {
            title: items => items.length ? `op ${opAt(plan, items[0].raw.op)}: ${plan.ops.text[items[0].raw.op]} (${phases[plan.ops.phase[items[0].raw.op]]})` : "",
            label: item => `${item.dataset.label} ${bytes(item.dataset.own(item.raw.op))}`,
            footer: items => {
              const first = items.length ? tensorsAt(plan, items[0].raw.op).slice(0, 8) : [], all = items.length ? live[items[0].raw.op] : 0;
              const rest = all - sum(first.map(b => b.bytes));
              return [`live: ${bytes(all)}`, ...first.map(b => `${b.text} ${bytes(b.bytes)}`), ...(rest ? [`and others, ${bytes(rest)}`] : [])];
            }}}},
      },
      plugins: [marks(plan, peak, unit.size, base)],
    }),
    numbers: () => table([
      {head: "Op", of: op => opAt(plan, op), text: String}, {head: "", of: op => plan.ops.text[op]}, {head: "Phase", of: op => phases[plan.ops.phase[op]]},
      ...plan.categories.map(name => ({head: name, of: op => plan.ops.live_bytes[name][op], text: bytes})),
      {head: "Live", of: op => live[op], text: bytes}], live.map((_, op) => op), "Live bytes while each op runs"),
  });
}

function memory(into, runs) {
  const shown = runs.filter(planOf), box = make("div"), check = make("input", {type: "checkbox"});
  if (!shown.length) return into.append(make("p", {class: "soft"}, "The plans of these runs are left out; see the notes."));
  const lives = shown.map(run => totals(planOf(run))), fixed = shown.map(run => sum(Object.values(planOf(run).static_bytes)));
  const most = Math.max(...lives.map(live => live.reduce((a, b) => Math.max(a, b), 0)));
  const limits = {ops: Math.max(...shown.map(run => planOf(run).ops.count)), bytes: most, fixed: Math.max(...fixed), unit: byteAxis(most, "live memory")};
  into.append(make("label", {}, check, " with static memory (parameters, their gradients, optimizer and running state, batch)"),
              key([...shown.map(run => planOf(run).categories).reduce((a, b) => b.length > a.length ? b : a).map((name, c) => [name, colours[c]]), ["static", "static"],
                   ...(shown.length > 1 ? [["all of the other run", "other", true]] : [])]),
              key(phases.map(name => [name, name]), "strip above the plot:"), box);
  shown.forEach((run, i) => memoryChart(box, `memory-${i}`, run, shown[1 - i], limits, () => check.checked));
  check.onchange = redraw;
}

/* ---- time against memory ---- */

function choices() {
  const {choices: found, published} = data, runs = data.runs.map((run, i) => ({run: i + 1, policy: run["/plan"].policy, side: run.side,
    live_peak_bytes: run["/plan"].live_peak_bytes, slowdown: run["/plan"].slowdown, gap_percent: run["/plan"].gap_percent,
    bound: run["/plan"].slowdown / (1 + run["/plan"].gap_percent / 100)}));
  const unit = byteAxis(Math.max(...runs.map(run => run.live_peak_bytes)), "live peak"), into = section("Time against memory");
  const policies = found ? [...new Set(found.plans.map(plan => plan.policy))] : [];
  const point = row => ({x: row.live_peak_bytes / unit.size, y: row.slowdown, row});
  const name = row => row.run ? `run ${row.run}, ${row.side}: ${row.policy}` : row.label || `${row.policy}${row.settings ? ` ${row.settings}` : ""}`;
  const max = Math.max(found ? found.slowdown_shown : 1.01, 1 + 1.15 * (Math.max(...[...runs, ...published].map(row => row.slowdown)) - 1));
  const cut = found ? found.plans.filter(plan => plan.slowdown > max).length : 0;
  const least = Math.min(...[...runs, ...published, ...(found ? found.plans : [])].map(row => row.live_peak_bytes)) / unit.size;
  const bound = found ? found.bound : runs.map(run => ({live_peak_bytes: run.live_peak_bytes, slowdown: run.bound}));
  into.append(make("p", {class: "soft"}, found
    ? `Each point is a plan: ${plural(found.plans.length, "plan")} of ${plural(policies.length, "policy").replace("ys", "ies")} for the network of run ${found.run + 1}. ` +
      "Those that no other plan beats are filled. No schedule, of any kind, lies below the line."
    : "Each point is the plan of a run. No schedule that needs so much memory is faster than the bound below it.",
    published.length ? " Crosses are points that the spec quotes, at their shares of the baseline's live peak." : ""));
  chart(into, "choices", {
    height: 420,
    label: `Slowdown against live peak: ${runs.map(row => `${name(row)} ${bytes(row.live_peak_bytes)} at ${factor(row.slowdown)}`).slice(0, 8).join("; ")}.`,
    build: () => ({
      type: "scatter",
      data: {datasets: [
        {label: "runs of this report", data: runs.map(point), pointStyle: "circle", radius: 9, borderWidth: 2.5, borderColor: colour("ink"), backgroundColor: "transparent"},
        ...policies.map((policy, i) => {
          const rows = found.plans.filter(plan => plan.policy === policy), {paint, mark} = styleOf(policy, i);
          return {label: policy, data: rows.map(point), radius: rows.map(row => row.pareto ? 5 : 3.5), pointStyle: mark,
                  borderColor: paint, backgroundColor: rows.map(row => row.pareto ? paint : "transparent")};
        }),
        {label: "lower bound", type: found ? "line" : "scatter", data: bound.map(point), stepped: "after", pointRadius: found ? 0 : 4, pointStyle: "line",
         borderColor: colour("soft"), borderWidth: 2, fill: found ? "start" : false, backgroundColor: colour("panel")},
        ...(published.length ? [{label: "published", data: published.map(point), pointStyle: "crossRot", radius: 7, borderWidth: 2.5, borderColor: colour("good")}] : [])]},
      options: {scales: {x: {...unit.axis, min: Math.floor(least * .98)}, y: axis("slowdown (1: every pass once)", {min: 1, max})},
                plugins: {legend, tooltip: {filter: item => item.raw.row?.policy || item.raw.row?.label, callbacks: {label: ({raw}) => [name(raw.row), `live peak ${bytes(raw.row.live_peak_bytes)}, ${factor(raw.row.slowdown)}` +
                  (raw.row.gap_percent === undefined ? "" : `, ${known(raw.row.gap_percent, v => v.toFixed(1))} % above the bound`)]}}}},
    }),
    caption: cut ? `${plural(cut, "plan")} slower than ${factor(max)} ${cut > 1 ? "are" : "is"} listed below only.` : undefined,
    numbers: () => table([{head: "Plan", of: name}, {head: "Live peak", of: row => row.live_peak_bytes, text: bytes}, {head: "Slowdown", of: row => row.slowdown, text: factor},
      {head: "Above the bound, %", of: row => row.gap_percent, text: v => known(v, x => x.toFixed(1))}, {head: "Not beaten", of: row => row.pareto ? "yes" : ""},
      ...(published.length ? [{head: "Source", of: row => row.source, long: true}] : [])], [...runs, ...published, ...(found ? found.plans : [])], "Plans"),
  });
}

/* ---- losses ---- */

/* names: of one or two sides; policies: of these. */
function losses(into, found, names, policies) {
  const rows = found.step.map((step, i) => ({step, a: found.a[i], b: found.b[i], difference: found.difference[i]}));
  if (!rows.length) return into.append(make("p", {class: "soft"}, "No step was trained."));
  const last = rows[rows.length - 1], far = found.largest_difference, two = names.length > 1;
  const thin = rows.length < found.steps ? ` ${rows.length} of ${found.steps} steps are drawn: of each of many equal parts the largest difference, the least and the greatest loss.` : "";
  const paint = k => policies[0] === policies[1] && k ? colour("ink") : styleOf(policies[k], k).paint;
  const line = (key, label, more) => ({label, data: rows.map(row => ({x: row.step, y: row[key]})), pointRadius: rows.length < 40 ? 2 : 0, ...more});
  const numbers = () => table([{head: "Step", of: row => row.step, text: String}, {head: names[0], of: row => row.a, text: exact},
    ...(two ? [{head: names[1], of: row => row.b, text: exact}, {head: "Difference", of: row => row.difference, text: exact}] : [])], rows, "Losses");
  const options = (title, more) => ({interaction: {mode: "index", intersect: false}, plugins: {legend: {...legend, display: two && title === "loss"},
    tooltip: {callbacks: {title: items => `step ${items[0].raw.x}`, label: item => `${item.dataset.label} ${exact(item.raw.y)}`}}},
    scales: {x: {...axis("step"), type: "linear", grid: {display: false}, ticks: {precision: 0}}, y: axis(title, more)}});
  chart(into, "losses", {height: 260, numbers,
    label: `Loss over ${plural(found.steps, "step")}: at step ${last.step} ${names[0]} ${exact(last.a)}` + (two ? `, ${names[1]} ${exact(last.b)}.` : "."),
    build: () => ({type: "line", options: options("loss"), data: {datasets: [line("a", `${names[0]}, ${policies[0]}`, {order: 1, borderColor: paint(0), backgroundColor: paint(0), borderWidth: 5}),
      ...(two ? [line("b", `${names[1]}, ${policies[1]}`, {borderColor: paint(1), backgroundColor: paint(1), borderWidth: 1.5})] : [])]}})});
  if (!two) return;
  const said = far === 0 ? `The difference is 0 at all ${plural(found.steps, "step")}.` : far === null ? "A difference is not a number." : `The largest difference is ${exact(far)}.`;
  chart(into, "difference", {height: 150, numbers, caption: said + thin, label: `Difference of the losses, ${names[1]} less ${names[0]}. ${said}`,
    build: () => ({type: "line", options: options("difference", far === 0 ? {min: -1, max: 1, ticks: {stepSize: 1}} : {}),
                   data: {datasets: [line("difference", `${names[1]} − ${names[0]}`, {borderColor: colour("ink"), backgroundColor: colour("ink"), borderWidth: 1.5})]}})});
}

/* ---- nodes, figures, sweeps, provenance ---- */

function nodes(into, run) {
  const plan = planOf(run), timed = run["/plan"].costs === "file"; /* a graph file's, in its unit */
  if (!plan) return;
  into.append(make("p", {class: "soft"}, `Run ${data.runs.indexOf(run) + 1}, policy ${run["/plan"].policy}. Kept: live when the forward pass ends. Click a head to sort.` +
      (plan.nodes.length < plan.nodes_count ? ` Of ${plan.nodes_count} nodes the ${plan.nodes.length} that keep or recompute the most bytes.` : "")),
    table([{head: "Node", of: n => n.name}, {head: "Layer", of: n => n.layer}, {head: "Output", of: n => n.shape}, {head: "Size", of: n => n.output_bytes, text: bytes},
      {head: "Kept", of: n => n.bytes, text: v => v ? bytes(v) : NONE}, {head: "Recomputed", of: n => n.recomputations, text: count},
      timed ? {head: "Time of it", of: n => n.recompute_time, text: count} : {head: "Work of it", of: n => n.recompute_flops, text: flops},
      {head: "Why", of: n => n.why, long: true}], plan.nodes),
    make("details", {}, make("summary", {}, "Schedule"), make("pre", {}, plan.schedule)));
}

function figuresOf(into, runs) {
  const rows = [["Live peak", "/plan", "live_peak_bytes", bytes], ["Static memory", "/plan", "static_bytes", bytes], ["Arena", "/plan", "arena_bytes", bytes],
    ["Peak: static and arena", "/plan", "peak_bytes", bytes], ["High-water mark of the process", "/summary", "high_water_bytes", bytes],
    ["Slowdown, planned", "/plan", "slowdown", factor], ["Above the lower bound, %", "/plan", "gap_percent", v => known(v, x => x.toFixed(1))],
    ["Recomputations", "/plan", "recomputations", count], ["Step, median", "/summary", "step_median_ns", time], ["Step, best case", "/summary", "step_best_case_ns", time],
    ["Final loss", "/summary", "final_loss", exact]];
  const value = (row, i) => (runs[i]?.[row[1]] || {})[row[2]], ratio = row => value(row, 1) / value(row, 0);
  into.append(table([{head: "", of: row => row[0]}, ...runs.map((run, i) => ({head: `${run.side}, ${run["/plan"].policy}`, of: row => row[3](value(row, i)), text: v => v})),
    ...(runs.length === 2 ? [{head: "Ratio", of: row => row[3] === bytes || row[3] === time || row[3] === factor ? ratio(row) : NaN, text: factor}] : [])], rows));
}

/* Beside the figures that the spec quotes from its source. */
function expected(into, run, pair) {
  const found = {...pair, loss: run["/summary"]?.final_loss, accuracy: run.accuracy}, rows = run.expect;
  const met = one => typeof found[one.what] === "number" && !(found[one.what] >= +one.below) && !(found[one.what] <= +one.above);
  if (rows.length) into.append(table([{head: "Expected", of: one => one.what.replace("_", " ")}, {head: "Above", of: one => one.above, text: plain},
    {head: "Below", of: one => one.below, text: plain}, {head: "Here", of: one => found[one.what], text: v => known(v, x => String(parseFloat(x.toPrecision(6))))},
    {head: "Judgement", of: one => typeof found[one.what] !== "number" ? "not measured" : (met(one) ? "met" : "NOT MET") + (one.unlike ? `, but ${one.unlike}` : "")},
    {head: "Source", of: one => one.source, long: true}], rows, "Expectations of the spec, with their source"));
}

function sweeps() {
  const {axes, runs} = data.sweep, into = section("Sweep");
  const at = (axis, i) => axis.values[i] ?? "", pairOf = i => data.pairs.find(pair => pair.b === runs[i]);
  const measures = [["live peak", i => data.runs[runs[i]]["/plan"].live_peak_bytes, true], ["slowdown, planned", i => data.runs[runs[i]]["/plan"].slowdown],
    ["step time, variant : baseline", i => pairOf(i)?.time_ratio], ["final loss", i => data.runs[runs[i]]["/summary"]?.final_loss]];
  const kinds = axes.map(axis => new Set(axis.values).size);
  choose(into, "over", axes.map(axis => axis.key), kinds.indexOf(Math.max(...kinds)), (box, chosen) => {
    const over = axes[chosen], others = axes.filter(axis => axis !== over), numbers = over.numbers, lines = [...new Set(over.curves)].sort(natural);
    const policyAt = i => data.runs[runs[i]]["/plan"].policy, policiesOf = lines.map(name => [...new Set(runs.map((_, i) => i).filter(i => over.curves[i] === name).map(policyAt))]);
    const own = k => policiesOf[k].length === 1 && policiesOf.filter(all => all.length === 1 && all[0] === policiesOf[k][0]).length === 1 ? policiesOf[k][0] : undefined;
    const lineStyle = k => styleOf(own(k), k), pointStyle = (k, i) => policiesOf[k].length > 1 ? styleOf(policyAt(i), k) : lineStyle(k);
    measures.forEach(([title, of, isBytes], m) => {
      const values = runs.map((_, i) => of(i)), known = values.filter(v => typeof v === "number");
      if (!known.length) return;
      const unit = isBytes ? byteAxis(Math.max(...known), title) : {size: 1, axis: axis(title)};
      chart(box, `sweep-${m}`, {height: 240, label: `${title} over ${over.key}: ${runs.map((_, i) => `${at(over, i)} ${isBytes ? bytes(values[i]) : exact(values[i])}`).slice(0, 12).join(", ")}.`,
        numbers: () => table([{head: over.key, of: i => at(over, i)}, ...others.map(other => ({head: other.key, of: i => at(other, i)})),
          {head: title, of: i => values[i], text: isBytes ? bytes : exact}], runs.map((_, i) => i)),
        build: () => ({type: "line", data: {labels: numbers ? undefined : [...new Set(over.values.map(String))].sort(natural), datasets: lines.map((name, k) => { const points = runs.map((_, i) => ({x: numbers ? numbers[i] : String(over.values[i]), y: values[i] / unit.size, i})).filter((p, i) => over.curves[i] === name && isFinite(p.y))
              .sort((p, q) => numbers ? p.x - q.x : natural(p.x, q.x));
            return {label: name, data: points, borderColor: lineStyle(k).paint, backgroundColor: points.map(p => pointStyle(k, p.i).paint), pointBorderColor: points.map(p => pointStyle(k, p.i).paint),
              pointStyle: points.map(p => pointStyle(k, p.i).mark), showLine: Boolean(numbers), borderWidth: 1.5, pointRadius: 5}; })},
          options: {scales: {x: {...axis(over.key), type: numbers ? "linear" : "category", ticks: {precision: numbers?.every(Number.isInteger) ? 0 : undefined}}, y: unit.axis}, plugins: {legend: {...legend, display: lines.length > 1},
            tooltip: {callbacks: {label: ({raw, dataset}) => `${dataset.label}: ${isBytes ? bytes(raw.y * unit.size) : exact(raw.y)}`}}}}})});
    });
  });
}

function provenance() {
  const into = section("Provenance"), all = new Map(), list = "NX_class default schema software run_id status created";
  data.runs.forEach((run, i) => {
    for (const group of Object.keys(run).filter(key => key === "/" || key === "/spec" || key.startsWith("/provenance")))
      for (const [key, value] of Object.entries(run[group])) {
        const name = `${group === "/" ? "" : group.replace("/provenance/", "").replace("/", "") + " "}${key}`;
        const text = Array.isArray(value) ? value.join("; ") : plain(value), values = all.get(name) || new Map();
        values.set(text, [...(values.get(text) || []), i + 1]);
        all.set(name, values);
      }
  });
  into.append(table([{head: "Run", of: run => data.runs.indexOf(run) + 1, text: String}, {head: "Side", of: run => run.side}, {head: "Policy", of: run => run["/plan"].policy},
    {head: "Status", of: run => run.now + (run.resumed > 0 ? `, resumed ${plural(run.resumed, "time")}` : "")}, {head: "Created", of: run => run["/"].created}, {head: "File", of: run => run.path}], data.runs, "Files"));
  const rows = [...all].filter(([name]) => !list.split(" ").includes(name)), same = ([, values]) => values.size === 1 && [...values.values()][0].length === data.runs.length;
  const columns = [{head: "", of: row => row[0]}, {head: "Value", long: true, of: ([, values]) => [...values].map(([text, runs]) =>
    runs.length === data.runs.length ? text : `${text} (run ${runs.join(", ")})`).join(" · ")}];
  const differing = rows.filter(row => !same(row));
  if (differing.length) into.append(table(columns, differing, "Different between the runs"));
  into.append(make("details", {open: data.runs.length < 3 ? "" : false}, make("summary", {}, "The same in all runs"), table(columns, rows.filter(same))));
}

/* ---- the page ---- */

/* Beside a proof, a variant that recomputes nothing is a reference, as in a sweep. */
const isReference = pair => data.pairs.some(one => one.verdict === "equal") && pair.verdict === "unproven" && pair.reasons.every(reason => reason.name === "no_recomputation");
const colourOf = pair => !pair.compared ? "" : pair.verdict === "equal" || isReference(pair) ? "equal" : pair.verdict === "unproven" ? "unproven" : "differs";
const settingsOf = pair => data.sweep.axes.map(axis => `${axis.key}=${plain(axis.values[data.sweep.runs.indexOf(pair.b)])}`).join(" ");

function counts(pair) {
  const names = ["losses", "gradients", "parameters", "state", "running_state", "metrics", "learning_rates", "gradient_norms", "zero_flags"];
  return "Equal: " + [...names.filter(name => typeof pair[`${name}_equal`] === "number").map(name => `${name.replace("_", " ")} ${pair[`${name}_equal`]}/${pair.steps}`),
    ...["evaluations", "tensors"].filter(name => pair[name]).map(name => `${name} ${pair[`${name}_equal`]}/${pair[name]}`)].join(", ") + ".";
}

function verdicts() {
  const {pairs} = data, compared = pairs.filter(pair => pair.compared), wrong = compared.filter(pair => colourOf(pair) === "differs");
  const references = pairs.filter(isReference).length, doubt = compared.filter(pair => colourOf(pair) === "unproven"), banner = (kind, said, ...more) =>
    page.append(make("div", {class: `verdict ${kind}`, role: "status"}, make("strong", {}, said), ...more));
  if (pairs.length === 1) {
    const pair = pairs[0];
    banner(colourOf(pair), pair.compared ? pair.sentence : "Not compared", pair.compared ? counts(pair) : pair.sentence);
    for (const note of pair.notes || []) page.append(make("p", {class: "soft"}, `Note: ${note.text}`));
    if ((pair.unlike || []).length) page.append(make("p", {class: "soft"}, "Unlike: " + pair.unlike.map(one => `${one.name} (${plain(one.a)}, ${plain(one.b)})`).join("; ")));
  } else if (pairs.length) {
    const equal = compared.length - wrong.length - doubt.length;
    banner(wrong.length ? "differs" : doubt.length || compared.length < pairs.length ? "unproven" : "equal",
      `${equal} of ${pairs.length} variants equal in every bit` + (wrong.length ? `, ${wrong.length} different` : "") + (doubt.length ? `, ${doubt.length} equal but no proof` : ""),
      [...wrong, ...doubt].length ? `Run ${[...wrong, ...doubt][0].b + 1}: ${[...wrong, ...doubt][0].sentence}`
        : references ? `${references} of them recompute nothing and serve as a reference.` : "");
    page.append(table([{head: "Run", of: pair => pair.b + 1, text: String}, {head: "Beside", of: pair => pair.a + 1, text: String},
      ...data.sweep.axes.map(axis => ({head: axis.key, of: pair => axis.values[data.sweep.runs.indexOf(pair.b)]})), {head: "Live peak", of: pair => data.runs[pair.b]["/plan"].live_peak_bytes, text: bytes},
      {head: "Live ratio", of: pair => pair.live_ratio, text: factor}, {head: "Planned", of: pair => data.runs[pair.b]["/plan"].slowdown, text: factor},
      {head: "Time ratio", of: pair => pair.time_ratio, text: factor}, {head: "Verdict", of: pair => pair.sentence, long: true}], pairs, "Verdicts"));
    for (const pair of compared) for (const note of pair.notes.filter(note => note.name === "times"))
      page.append(make("p", {class: "soft"}, `Note: run ${pair.b + 1}: ${note.text}`));
  } else banner("", "Not compared", "There is no baseline and variant of one experiment among the files.");
  const resumed = data.runs.map((run, i) => run.resumed > 0 ? i + 1 : 0).filter(Boolean);
  if (resumed.length) page.append(make("p", {class: "soft"}, `Note: run ${resumed.slice(0, 20).join(", ")}${resumed.length > 20 ? ", ..." : ""} was resumed from a state file.`));
  for (const note of data.notes) page.append(make("p", {class: "soft"}, `Note: ${note}`));
}

function show() {
  const {runs, pairs} = data, first = runs[0]["/"], titles = [...new Set(runs.map(run => run["/"].title || run["/"].experiment))];
  document.title = `${first.experiment}: rematch report`;
  page.append(make("h1", {}, titles.length > 1 ? `${plural(titles.length, "experiment")}: ${titles.slice(0, 3).join("; ")}` : titles[0] || "Runs"),
              make("p", {class: "soft"}, `${first.experiment}, ${plural(runs.length, "run")}, batch ${[...new Set(runs.map(run => run["/plan"].batch))].join(", ")}`));
  verdicts();
  if (data.sweep.axes.length) sweeps();
  const shown = section(pairs.length > 1 ? "One variant beside its baseline" : "Figures"), worst = pairs.findIndex(pair => colourOf(pair) === "differs");
  const parts = pairs.length ? pairs : runs.map((run, i) => ({a: i}));
  const label = part => part.b === undefined ? `run ${part.a + 1}` : `run ${part.b + 1} beside run ${part.a + 1}${settingsOf(part) ? `: ${settingsOf(part)}` : ""}`;
  choose(shown, "show", parts.map(label), Math.max(0, worst), (into, chosen) => {
    const part = parts[chosen], pair = [runs[part.a], ...(part.b === undefined ? [] : [runs[part.b]])];
    figuresOf(into, pair);
    expected(into, pair[pair.length - 1], part);
    into.append(make("h2", {}, "Live memory over the ops of a step"));
    memory(into, pair);
    into.append(make("h2", {}, "Losses"));
    losses(into, part.losses || runs[part.a].losses, part.b === undefined ? [runs[part.a].side] : part.names || ["a", "b"], pair.map(run => run["/plan"].policy));
    into.append(make("h2", {}, "What each node keeps and recomputes"));
    nodes(into, pair[pair.length - 1]);
  });
  choices();
  provenance();
}
show();
