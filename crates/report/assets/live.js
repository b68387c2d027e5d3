"use strict";
// Follows the stream of events: renews the parts that the server has written (escaped there), draws
// what runs. Foreign text is only ever set as text content; nothing is evaluated.
(function () {
  const body = document.body;
  const result = body.dataset.result, secret = body.dataset.secret;
  const byId = (id) => document.getElementById(id);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const CHARTS = [
    ["p99", [["p99", "p99_ms", "c1"]]],
    ["rate", [["rate", "rate", "c4"]]],
    ["memory", [["memory", "memory_mib", "c1"]]],
    ["cpu", [["used", "cpus", "c1"], ["throttled", "throttled_cpus", "c2", [4, 3]]]],
  ];
  let plots = {}, trial = null, seen = null;

  function say(text, isLost) {
    const line = byId("connection");
    line.textContent = text;
    line.className = isLost ? "lost" : "";
  }

  function plot(id, series, rows) {
    const box = byId("chart-" + id);
    if (!box) return;
    const data = [rows.map((r) => r.t)].concat(series.map((s) => rows.map((r) => r[s[1]])));
    if (plots[id]) return plots[id].setData(data);
    const axis = { stroke: color("soft"), grid: { stroke: color("grid"), width: 1 }, ticks: { stroke: color("grid"), width: 1 } };
    plots[id] = new uPlot({
      width: box.clientWidth || 600, height: 150,
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [Object.assign({}, axis, { label: "seconds of the trial", size: 32, labelSize: 18 }), Object.assign({ size: 56 }, axis)],
      legend: { markers: { dash: (u, i) => (u.series[i].dash ? "dashed" : "solid") } },
      series: [{ label: "second" }].concat(series.map((s) => ({ label: s[0], stroke: color(s[2]), dash: s[3], width: 1.75, spanGaps: false }))),
    }, data, box);
    const canvas = box.querySelector("canvas");
    if (canvas) {
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-labelledby", id + "-caption");
    }
  }

  function drop() {
    for (const id of Object.keys(plots)) plots[id].destroy();
    plots = {};
  }

  function now(all) {
    if (!result) return;
    const own = all.find((r) => r.id === result);
    if (!own) return;
    seen = own;
    byId("left").textContent = own.left || "";
    const first = own.running[0];
    if (!first) {
      byId("phase").textContent = "waiting for the next trial";
      return;
    }
    if (first.trial !== trial) drop();
    trial = first.trial;
    let text = first.label + ": " + first.phase + ", " + first.elapsed_s.toFixed(0) + " s";
    if (first.p99_ms != null) text += ", p99 " + first.p99_ms.toPrecision(3) + " ms";
    if (first.rate != null) text += ", " + first.rate.toFixed(0) + "/s";
    byId("phase").textContent = text;
    for (const [id, series] of CHARTS) plot(id, series, first.seconds);
    const log = byId("log");
    const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    log.textContent = first.log.join("\n");
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }

  function renew(parts) {
    const list = byId("list"), progress = byId("progress");
    if (list) list.innerHTML = parts.list;
    if (!progress) return;
    const own = parts.progress[result];
    if (own !== undefined) progress.innerHTML = own;
    // It ended: its report says more than this page.
    else location.replace("/results/" + encodeURIComponent(result) + "/report");
  }

  function stop() {
    const said = byId("stopped");
    fetch("/results/" + encodeURIComponent(result) + "/stop", { method: "POST", headers: { "x-loadline-secret": secret } })
      .then((answer) => answer.text().then((text) => { said.textContent = text; }))
      .catch(() => { said.textContent = "loadline serve cannot be reached"; });
  }

  if (byId("stop")) byId("stop").addEventListener("click", stop);
  window.addEventListener("resize", () => { drop(); if (seen) now([seen]); });
  if (byId("list") || byId("progress")) {
    const events = new EventSource("/events");
    events.onopen = () => say("", false);
    events.onerror = () => say("The connection to loadline serve is lost; this page tries again.", true);
    events.addEventListener("parts", (event) => renew(JSON.parse(event.data)));
    events.addEventListener("now", (event) => now(JSON.parse(event.data)));
  }
})();
