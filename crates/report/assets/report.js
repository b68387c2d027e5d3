"use strict";
// Draws the charts from the embedded data, sorts tables, offers the records for download.
// Foreign text is only ever set as text content; nothing is evaluated, nothing is fetched.
(function () {
  const data = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const color = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3], [14, 4], [4, 4], [1, 4], [12, 3, 3, 3]];
  const FONT = "12px system-ui, sans-serif";
  let plots = [];

  const digits = (v) => (v === 0 ? "0" : Math.abs(v) >= 100 ? v.toFixed(0) : v.toPrecision(3));
  const show = (unit) => (u, v) => (v == null ? "–" : digits(v) + " " + unit);
  // Percentile of x = 1/(1-q), without the rounding of binary fractions.
  const percentile = (x) => (x <= 1 ? "0%" : +(100 - 100 / x).toPrecision(7) + "%");

  // 1, 2, 5 of each power of ten; powers of ten alone when that is too many.
  function logTicks(low, high) {
    const ticks = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
      for (const m of [1, 2, 5]) {
        const v = m * Math.pow(10, p);
        if (v >= low * 0.999 && v <= high * 1.001) ticks.push(+v.toPrecision(1));
      }
    }
    return ticks.length > 9 ? ticks.filter((v) => Math.abs(Math.log10(v) % 1) < 1e-9) : ticks;
  }

  // Horizontal lines with a label (SLO, limits) and the phases as bands behind the data.
  function marks(lines, phases, outages) {
    const px = () => window.devicePixelRatio || 1;
    function bands(u) {
      const ctx = u.ctx, box = u.bbox;
      ctx.save();
      ctx.font = "11px system-ui, sans-serif".replace("11px", 11 * px() + "px");
      ctx.textBaseline = "top";
      for (const [name, from, to] of phases) {
        const left = Math.max(box.left, u.valToPos(from, "x", true));
        const right = Math.min(box.left + box.width, u.valToPos(to, "x", true));
        if (right <= left) continue;
        if (name === "measure") {
          ctx.fillStyle = color("measure");
          ctx.fillRect(left, box.top, right - left, box.height);
        }
        if (right - left > ctx.measureText(name).width + 8) {
          ctx.fillStyle = color("soft");
          ctx.fillText(name, left + 4 * px(), box.top + 3 * px());
        }
      }
      for (const [name, from, to] of outages || []) {
        const left = Math.max(box.left, u.valToPos(from, "x", true));
        const right = Math.min(box.left + box.width, u.valToPos(to, "x", true));
        if (right <= left) continue;
        ctx.globalAlpha = 0.18;
        ctx.fillStyle = color("soft");
        ctx.fillRect(left, box.top, right - left, box.height);
        ctx.globalAlpha = 1;
        ctx.fillText(name, left + 4 * px(), box.top + 17 * px());
      }
      ctx.restore();
    }
    function rules(u) {
      const ctx = u.ctx, box = u.bbox;
      ctx.save();
      ctx.font = 11 * px() + "px system-ui, sans-serif";
      ctx.textAlign = "right";
      ctx.textBaseline = "bottom";
      for (const line of lines) {
        const y = Math.round(u.valToPos(line.at, "y", true));
        if (!(y >= box.top && y <= box.top + box.height)) continue;
        ctx.strokeStyle = ctx.fillStyle = color("slo");
        ctx.lineWidth = 1.5 * px();
        ctx.setLineDash([6 * px(), 4 * px()]);
        ctx.beginPath();
        ctx.moveTo(box.left, y);
        ctx.lineTo(box.left + box.width, y);
        ctx.stroke();
        ctx.fillText(line.label, box.left + box.width - 4 * px(), y - 2 * px());
        if (line.x) {
          ctx.setLineDash([]);
          ctx.beginPath();
          ctx.arc(u.valToPos(line.x, "x", true), y, 4 * px(), 0, 2 * Math.PI);
          ctx.fill();
        }
      }
      ctx.restore();
    }
    return { hooks: { drawClear: [bands], draw: [rules] } };
  }

  // The legend switches lines with the mouse only; give it the keyboard.
  function keyboard(plot) {
    plot.root.querySelectorAll(".u-legend .u-series").forEach((row, i) => {
      const head = row.querySelector("th");
      if (i === 0 || !head) return;
      head.tabIndex = 0;
      head.setAttribute("role", "button");
      head.setAttribute("aria-pressed", "true");
      head.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        head.click();
      });
      head.addEventListener("click", () => head.setAttribute("aria-pressed", String(plot.series[i].show)));
    });
  }

  // The legend's markers differ by their border too, not by colour alone.
  function marker(plot, series) {
    const dash = plot.series[series].dash;
    return !dash || !dash.length ? "solid" : dash[0] > 3 ? "dashed" : "dotted";
  }

  function axis(label, extra) {
    return Object.assign({ stroke: color("soft"), label: label, labelSize: 18, labelGap: 2, font: FONT, labelFont: FONT, size: 58,
      grid: { stroke: color("grid"), width: 1 }, ticks: { stroke: color("grid"), width: 1 } }, extra);
  }

  // Of a box in a closed section, which has none of its own.
  const width = () => Math.max(260, Math.floor(document.querySelector("main").clientWidth));

  function draw(id, height, columns, options) {
    const box = document.getElementById("chart-" + id);
    if (!box) return;
    box.textContent = "";
    if (!columns.slice(1).some((column) => column.some((v) => v != null))) {
      box.textContent = "Not measured in this trial.";
      return;
    }
    const plot = new uPlot(Object.assign({ width: width(), height: height, legend: { markers: { dash: marker } } }, options), columns, box);
    const canvas = plot.root.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-labelledby", id + "-caption");
    keyboard(plot);
    plots.push({ plot: plot, box: box, height: height });
  }

  const line = (name, n, unit) => ({ label: name, stroke: color("c" + n), width: 2, dash: DASHES[n - 1], value: show(unit),
    points: { show: false } });
  const bars = (name, n, unit) => ({ label: name, stroke: color("c" + n), fill: color("c" + n) + "66", width: 1, value: show(unit),
    paths: uPlot.paths.bars({ size: [0.9, 14] }), points: { show: false } });

  // A log range that holds the data and every marked line, with air above and below.
  function logRange(columns, lines) {
    const all = columns.flat().filter((v) => v != null && v > 0).concat(lines.map((l) => l.at));
    const low = Math.min.apply(null, all), high = Math.max.apply(null, all);
    return [low / 1.3, high * 2.2];
  }

  function percentiles() {
    const chart = data.percentile;
    if (!chart.lines.length) return;
    const lines = data.slo.map((s) => ({ at: s.ms, label: "SLO " + s.label, x: s.x }));
    const columns = chart.lines.map((l) => l.y);
    const range = logRange(columns, lines);
    let last = 0;
    columns.forEach((c) => c.forEach((v, i) => { if (v != null) last = Math.max(last, i); }));
    const right = Math.max(chart.x[last], 100) * 1.1;
    const decades = [1, 10, 100, 1e3, 1e4, 1e5].filter((x) => x <= right);
    draw("percentile", 340, [chart.x].concat(columns), {
      scales: { x: { time: false, distr: 3, range: [1, right] }, y: { distr: 3, range: range } },
      axes: [
        axis("percentile of requests", { size: 40, splits: () => decades, filter: (u, s) => s, values: (u, s) => s.map(percentile) }),
        axis("latency, ms", { splits: () => logTicks(range[0], range[1]), filter: (u, s) => s, values: (u, s) => s.map(String) }),
      ],
      series: [{ label: "percentile", value: (u, v) => (v == null ? "–" : percentile(v)) }].concat(
        chart.lines.map((l, i) => line(l.name, i + 1, "ms"))),
      plugins: [marks(lines, [])],
    });
  }

  function overTime(trial) {
    const t = trial.series.t, c = trial.series.columns;
    const sync = { key: "time", scales: ["x", null] };
    const end = Math.max.apply(null, t.concat(trial.phases.map((p) => p[2])));
    const common = (label, y, lines, series, splits) => ({
      scales: { x: { time: false, range: [0, end + 0.5] }, y: y },
      cursor: { sync: sync },
      axes: [axis("seconds since the trial began", { size: 40 }),
        axis(label, splits || {})],
      series: [{ label: "second", value: (u, v) => (v == null ? "–" : v + " s") }].concat(series),
      plugins: [marks(lines, trial.phases, trial.outages)],
    });
    const slo = data.slo.map((s) => ({ at: s.ms, label: "SLO " + s.label }));
    const range = logRange(c.slice(0, 3), slo);
    draw("latency-time", 240, [t, c[0], c[1], c[2]], common("latency, ms", { distr: 3, range: range }, slo,
      [line("p50", 1, "ms"), line("p99", 2, "ms"), line("largest", 3, "ms")],
      { splits: () => logTicks(range[0], range[1]), filter: (u, s) => s, values: (u, s) => s.map(String) }));
    const top = (columns, lines) => {
      const all = columns.flat().filter((v) => v != null).concat(lines.map((l) => l.at), [0]);
      return [0, Math.max.apply(null, all) * 1.28 || 1];
    };
    draw("stopped", 170, [t, c[4], c[3]], common("ms in a second", { range: top([c[3], c[4]], []) }, [],
      [bars("throttled", 2, "ms/s"), bars("GC pauses", 3, "ms/s")]));
    const cpu = trial.cpu_limit == null ? [] : [{ at: trial.cpu_limit, label: "limit " + trial.cpu_limit + " CPU" }];
    draw("cpu", 170, [t, c[5]], common("CPUs", { range: top([c[5]], cpu) }, cpu, [line("CPUs used", 1, "CPU")]));
    const memory = trial.memory_limit == null ? [] : [{ at: trial.memory_limit, label: "limit " + trial.memory_limit + "Mi" }];
    draw("memory", 240, [t, c[6], c[7], c[8]], common("memory, Mi", { range: top(c.slice(6, 9), memory) }, memory,
      [line("usage with page cache", 1, "Mi"), line("working set", 4, "Mi"), line("anonymous", 3, "Mi")]));
    // The page has these boxes only where there was an outage.
    draw("errors", 130, [t, c[13]], common("requests", { range: top([c[13]], []) }, [], [bars("errors", 2, "requests")]));
    draw("heap", 170, [t, c[11], c[12]], common("heap, Mi", { range: top([c[11], c[12]], []) }, [],
      [line("committed", 1, "Mi"), line("after collections", 3, "Mi")]));
    draw("threads", 170, [t, c[9], c[10]], common("threads, sockets", { range: top([c[9], c[10]], []) }, [],
      [line("threads", 1, ""), line("sockets", 3, "")]));
  }

  function drawAll() {
    plots.forEach((p) => p.plot.destroy());
    plots = [];
    percentiles();
    const choice = document.getElementById("trial");
    if (choice && data.trials.length) overTime(data.trials[+choice.value] || data.trials[0]);
    root.dataset.charts = String(plots.length);
  }

  // A click on a column's title sorts by it; numbers by value, also with their unit.
  function sortable(table) {
    const rank = (text) => {
      const m = /^-?[\d.]+/.exec(text);
      if (!m) return null;
      const unit = text.slice(m[0].length).trim().split(/[\s(,]/)[0];
      const scale = { us: 1e-6, ms: 1e-3, ns: 1e-9, min: 60, h: 3600, Gi: 1024 }[unit] || 1;
      return parseFloat(m[0]) * scale;
    };
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows).map((row) => [row, row.cells[column].textContent]);
        rows.sort(([, a], [, b]) => {
          const x = rank(a), y = rank(b);
          const order = x != null && y != null ? x - y : x != null ? -1 : y != null ? 1 : a.localeCompare(b);
          return down ? -order : order;
        });
        rows.forEach(([row]) => body.appendChild(row));
      });
    });
  }

  async function download() {
    const bytes = Uint8Array.from(atob(document.getElementById("records").textContent), (ch) => ch.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await new Response(stream).blob());
    link.download = "loadline-records.json";
    link.click();
    URL.revokeObjectURL(link.href);
  }

  document.querySelectorAll("#trials table").forEach(sortable);
  const button = document.getElementById("download");
  if (document.getElementById("records") && window.DecompressionStream) {
    button.hidden = false;
    button.addEventListener("click", download);
  }
  const choice = document.getElementById("trial");
  if (choice) choice.addEventListener("change", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => plots.forEach((p) => p.plot.setSize({ width: width(), height: p.height })), 80);
  });
  // Every section, also one that a link leads to, opens; a chart that moved finds the mouse again.
  const folds = Array.from(document.querySelectorAll("main > section > details"));
  folds.forEach((d) => d.addEventListener("toggle", () => plots.forEach((p) => p.plot.syncRect(true))));
  const linked = () => {
    const at = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = at && at.querySelector(":scope > details");
    if (fold) fold.open = true;
  };
  window.addEventListener("hashchange", linked);
  linked();
  const unfold = document.getElementById("unfold");
  if (unfold) {
    unfold.hidden = false;
    unfold.addEventListener("click", () => {
      const open = unfold.getAttribute("aria-pressed") !== "true";
      folds.forEach((d) => { d.open = open; });
      unfold.setAttribute("aria-pressed", String(open));
    });
  }
  // Paper is light, and shows everything.
  window.addEventListener("beforeprint", () => {
    root.classList.add("printing");
    folds.forEach((d) => { d.dataset.was = String(d.open); d.open = true; });
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("printing");
    folds.forEach((d) => { d.open = d.dataset.was === "true"; });
    drawAll();
  });
  drawAll();
})();
