"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const said = document.getElementById("said");
  root.classList.add("js");

  function element(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (parent) parent.append(made);
    return made;
  }

  // Nanoseconds as in the rest of the page: three significant digits.
  function duration(ns) {
    for (const [unit, size] of [["ns", 1], ["µs", 1e3], ["ms", 1e6]]) {
      if (Math.abs(ns) < 999.5 * size) return unit === "ns" ? `${Math.round(ns)} ns` : `${three(ns / size)} ${unit}`;
    }
    return `${three(ns / 1e9)} s`;
  }
  function three(value) {
    const size = Math.abs(value);
    return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
  }

  // Theme: as the system, light, dark.
  const theme = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  let chosen = "auto";
  try { chosen = localStorage.getItem("gpudiag-theme") || "auto"; } catch { /* a page from a file may have no storage */ }
  function show(name) {
    chosen = themes.includes(name) ? name : "auto";
    root.style.colorScheme = chosen === "auto" ? "" : chosen;
    theme.textContent = `Theme: ${chosen}`;
  }
  theme.hidden = false;
  theme.addEventListener("click", () => {
    show(themes[(themes.indexOf(chosen) + 1) % themes.length]);
    try { localStorage.setItem("gpudiag-theme", chosen); } catch { /* then it holds for this view only */ }
  });
  show(chosen);

  // Copying code and commands.
  async function copy(text, button) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      area.className = "unseen";
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = done ? "Copied" : "Failed";
    said.textContent = done ? "Copied." : "It could not be copied.";
    setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 1500);
  }
  function copier(text, label) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", label);
    button.addEventListener("click", (event) => { event.preventDefault(); copy(text, button); });
    return button;
  }
  for (const pre of all("main pre")) {
    const box = document.createElement("div");
    box.className = "copied";
    pre.replaceWith(box);
    box.append(pre, copier(pre.textContent.replace(/\n$/, ""), "Copy the code"));
  }
  for (const code of all("main code")) {
    if (code.closest("pre, summary, h2, h3, table")) continue;
    if (!code.textContent.includes("…") && /^(nsys|ncu|gpudiag|python|nvcc|nvidia-smi) [-\w]/.test(code.textContent)) {
      code.after(copier(code.textContent, "Copy the command"));
    }
  }

  // Folding.
  for (const line of all(".fold")) line.hidden = false;
  for (const button of all("[data-fold]")) {
    button.addEventListener("click", () => {
      for (const finding of all(".finding")) finding.open = button.dataset.fold === "open";
    });
  }
  let opened = [];
  addEventListener("beforeprint", () => { opened = all(".finding:not([open])"); for (const one of opened) one.open = true; });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
  function land() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    target.scrollIntoView({ block: target.classList.contains("lane") ? "center" : "start" });
  }
  addEventListener("hashchange", land);

  // Timelines.
  const FIELDS = 5; // start, length, kind, name, count
  const NEAR = 4; // pixels around the pointer that count as hit
  const LOW = 0.55; // of a row's height: where idle time begins, below a finding's own marks
  const COLUMN = 2; // pixels: what is narrower shares a column with its neighbours

  class Timeline {
    constructor(figure) {
      this.figure = figure;
      const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
      Object.assign(this, { ns: data.ns, kinds: data.kinds, names: data.names });
      this.axis = figure.querySelector(".axis");
      this.box = figure.querySelector(".lanes");
      this.output = figure.querySelector("output");
      this.rows = all(".lane:not(.lane-axis)", figure).map((lane, at) => ({
        lane, slices: data.rows[at], track: lane.querySelector(".track"), rank: lane.dataset.rank,
        whole: lane.matches(".lane-finding, .lane-phase, .lane-nvtx"),
        label: (lane.querySelector(".lane-label").title || lane.querySelector(".lane-label").textContent).trim(),
      }));
      this.from = 0;
      this.to = this.ns;
      this.row = 0;
      this.at = -1;
      this.pointers = new Map();
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      this.box.append(this.tip);
      this.box.tabIndex = 0;
      if (document.getElementById("timeline-help")) this.box.setAttribute("aria-describedby", "timeline-help");
      for (const { track } of this.rows) track.classList.remove("plain");
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.axis);
    }

    height(track) { return Number(track.getAttribute("height")); }
    get width() { return Math.max(1, this.axis.clientWidth || this.axis.getBoundingClientRect().width); }

    listen() {
      const tools = this.figure.querySelector(".tools");
      tools.hidden = false;
      const acts = {
        in: () => this.zoom(0.5), out: () => this.zoom(2), left: () => this.move(-0.25), right: () => this.move(0.25),
        all: () => this.set(0, this.ns),
      };
      for (const button of all("button", tools)) button.addEventListener("click", acts[button.dataset.act]);
      const keys = {
        "+": acts.in, "=": acts.in, "-": acts.out, "−": acts.out, "0": acts.all, ArrowLeft: acts.left,
        ArrowRight: acts.right, ArrowUp: () => this.choose(this.row - 1), ArrowDown: () => this.choose(this.row + 1),
        ".": () => this.step(1), ",": () => this.step(-1), Escape: () => this.clear(),
        Enter: () => this.follow(this.rows[this.row]),
      };
      this.box.addEventListener("keydown", (event) => {
        if (event.target !== this.box || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
      });
      this.box.addEventListener("blur", () => this.clear());
      this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      this.box.addEventListener("pointerdown", (event) => this.press(event));
      this.box.addEventListener("pointermove", (event) => this.drag(event));
      for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
        this.box.addEventListener(name, (event) => {
          this.pointers.delete(event.pointerId);
          if (name === "pointerleave") this.tip.hidden = true;
        });
      }
      this.box.addEventListener("click", (event) => {
        const row = this.rowOf(event);
        if (row && !this.moved && event.target.closest(".track") && this.hit(row, event) >= 0) this.follow(row);
      });
    }

    follow(row) { if (row && row.rank) location.hash = `finding-${row.rank}`; }

    fraction(event) {
      const box = this.axis.getBoundingClientRect();
      return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    }

    wheel(event) {
      if (!event.ctrlKey && !event.metaKey && !this.box.contains(document.activeElement)) return;
      event.preventDefault();
      const scale = event.deltaMode === 1 ? 16 : 1;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX * scale / this.width);
      else this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY * scale)) * 0.006), this.fraction(event));
    }

    press(event) {
      this.moved = false;
      this.pointers.set(event.pointerId, event.clientX);
    }

    drag(event) {
      const before = this.pointers.get(event.pointerId);
      if (before === undefined) return this.hover(event);
      const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
      if (others.length) {
        const was = Math.max(8, Math.abs(before - others[0]));
        const is = Math.max(8, Math.abs(event.clientX - others[0]));
        this.zoom(was / is, this.fraction({ clientX: (event.clientX + others[0]) / 2 }));
        this.moved = true;
      } else if (this.moved || Math.abs(event.clientX - before) > 4) {
        this.move((before - event.clientX) / this.width);
        this.moved = true;
        this.tip.hidden = true;
      } else return;
      this.pointers.set(event.pointerId, event.clientX);
    }

    zoom(factor, at = 0.5) {
      const span = Math.min(this.ns, Math.max(Math.min(this.ns, 500), (this.to - this.from) * factor));
      const fixed = this.from + at * (this.to - this.from);
      this.set(fixed - at * span, fixed + (1 - at) * span);
    }

    move(part) {
      const by = part * (this.to - this.from);
      this.set(this.from + by, this.to + by);
    }

    set(from, to) {
      const span = Math.min(to - from, this.ns);
      this.from = Math.max(0, Math.min(from, this.ns - span));
      this.to = this.from + span;
      if (!this.waiting) {
        this.waiting = true;
        requestAnimationFrame(() => { this.waiting = false; this.draw(); });
      }
    }

    draw() {
      const width = this.width;
      this.drawAxis(width);
      this.rows.forEach((row, at) => this.drawRow(row, width, at === this.row ? this.at : -1));
      const whole = this.to - this.from >= this.ns;
      this.output.textContent = whole ? `${duration(this.ns)}, all of it` : `${duration(this.from)} to ${duration(this.to)} of ${duration(this.ns)}`;
    }

    drawAxis(width) {
      const span = this.to - this.from;
      const most = Math.max(2, Math.floor(width / 110));
      let step = 10 ** Math.floor(Math.log10(span / most));
      step *= [1, 2, 5, 10].find((times) => span / (step * times) <= most) || 10;
      const parts = [];
      for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
        const x = (time - this.from) / span * width;
        parts.push(element("line", { x1: x, x2: x, y1: 14, y2: 20 }));
        const anchor = x < 24 ? "start" : x > width - 24 ? "end" : "middle";
        parts.push(element("text", { x: Math.min(x, width - 1), y: 11, "text-anchor": anchor }));
        parts.at(-1).textContent = time < step / 2 ? "0" : this.tick(time, step);
      }
      this.axis.setAttribute("viewBox", `0 0 ${width} 20`);
      this.axis.setAttribute("preserveAspectRatio", "none");
      this.axis.replaceChildren(...parts);
    }

    // As many digits as tell neighbours apart.
    tick(time, step) {
      const [unit, size] = time < 999.5 ? ["ns", 1] : time < 999.5e3 ? ["µs", 1e3] : time < 999.5e6 ? ["ms", 1e6] : ["s", 1e9];
      const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / size) + 1e-9)));
      return `${(time / size).toFixed(digits)} ${unit}`;
    }

    drawRow(row, width, marked) {
      const { slices, track } = row;
      const height = this.height(track);
      const scale = width / (this.to - this.from);
      const boxes = [];
      const crowd = new Map(); // column → what is too narrow to be distinguished in it
      for (let i = 0; i < slices.length; i += FIELDS) {
        let left = (slices[i] - this.from) * scale;
        let right = left + slices[i + 1] * scale;
        if (right < 0 || left > width) continue;
        if (right - left < COLUMN) {
          const column = Math.floor((left + right) / 2 / COLUMN);
          if (!crowd.has(column)) crowd.set(column, []);
          crowd.get(column).push({ left, right, i });
          continue;
        }
        left = Math.max(left, -2);
        right = Math.min(width + 2, right);
        boxes.push({ left, right, i });
      }
      const parts = [];
      if (row.rank) boxes.sort((a, b) => slices[a.i + 2] - slices[b.i + 2]); // idle time stays in sight below the marks
      for (const { left, right, i } of boxes) {
        const kind = this.kinds[slices[i + 2]][0];
        const gap = right - left > 4 ? 0.6 : 0;
        const top = kind === "idle_mark" ? height * LOW : 0;
        parts.push(element("rect", { class: `k-${kind}`, x: left, y: top, width: right - left - gap, height: height - top, rx: right - left > 6 ? 1.5 : 0 }));
        const begin = Math.max(left, 0);
        const room = Math.min(right, width) - begin - 8;
        const text = slices[i + 4] > 1 || row.rank || height < 14 || room < 26 ? "" : this.written(slices, i, Math.floor(room / 6.1));
        if (text) {
          const label = element("text", { class: `on-${kind}`, x: begin + 4, y: height / 2 + 4 });
          label.textContent = text;
          parts.push(label);
        }
      }
      for (const [column, few] of crowd) {
        const alone = few.length === 1 && !crowd.has(column - 1) && !crowd.has(column + 1);
        this.drawColumn(parts, row, column * COLUMN, few, height, alone);
      }
      if (marked >= 0) {
        const left = (slices[marked] - this.from) * scale;
        parts.push(element("rect", { class: "chosen", x: left, y: 1, width: Math.max(3, slices[marked + 1] * scale), height: height - 2 }));
      }
      track.setAttribute("viewBox", `0 0 ${width} ${height}`);
      track.replaceChildren(...parts);
    }

    // A narrow slice that stands alone is a tick. Several share their column's height as they share its time; the rest stays empty.
    drawColumn(parts, row, x, few, height, alone) {
      const kindOf = (one) => row.slices[one.i + 2];
      if (alone || row.whole) {
        for (const kind of [...new Set(few.map(kindOf))].sort((a, b) => a - b)) {
          const own = few.filter((one) => kindOf(one) === kind);
          const left = Math.min(...own.map((one) => one.left));
          const right = Math.max(...own.map((one) => one.right), left + (row.rank ? COLUMN : 0.8));
          const top = this.kinds[kind][0] === "idle_mark" ? height * LOW : 0;
          parts.push(element("rect", { class: `k-${this.kinds[kind][0]} flat`, x: left, y: top, width: right - left, height: height - top }));
        }
        return;
      }
      const times = new Map();
      for (const one of few) times.set(kindOf(one), (times.get(kindOf(one)) || 0) + one.right - one.left);
      const all = [...times.values()].reduce((sum, time) => sum + time, 0);
      const filled = height * Math.min(1, Math.max(0.25, all / COLUMN));
      let y = height;
      for (const [kind, time] of [...times].sort((a, b) => a[0] - b[0])) {
        const tall = filled * time / all;
        y -= tall;
        parts.push(element("rect", { class: `k-${this.kinds[kind][0]} flat`, x, y, width: COLUMN, height: tall }));
      }
    }

    written(slices, i, letters) {
      const kind = this.kinds[slices[i + 2]];
      if (["iteration", "drawn", "interval"].includes(kind[0])) return "";
      const name = slices[i + 3] >= 0 ? this.names[slices[i + 3]][0] : kind[1];
      const text = kind[0].startsWith("idle") || kind[0] === "compute" || kind[0].startsWith("exposed") ? kind[1] : name;
      if (text.length <= letters) return text;
      return letters < 6 ? "" : `${text.slice(0, letters - 1)}…`;
    }

    rowOf(event) {
      const lane = event.target.closest && event.target.closest(".lane");
      return this.rows.find((row) => row.lane === lane);
    }

    hit(row, event) {
      const scale = this.width / (this.to - this.from);
      const x = event.clientX - this.axis.getBoundingClientRect().left;
      let best = -1;
      let distance = NEAR;
      let length = Infinity;
      for (let i = 0; i < row.slices.length; i += FIELDS) {
        const left = (row.slices[i] - this.from) * scale;
        const right = left + row.slices[i + 1] * scale;
        const away = x < left ? left - x : x > right ? x - right : 0;
        if (away < distance || (away === distance && right - left < length)) [best, distance, length] = [i, away, right - left];
      }
      return best;
    }

    hover(event) {
      const row = this.rowOf(event);
      const i = row && event.target.closest(".track") ? this.hit(row, event) : -1;
      if (i < 0) { this.tip.hidden = true; return; }
      this.explain(row, i);
      this.place(event.clientX - this.box.getBoundingClientRect().left, row);
    }

    explain(row, i) {
      const [start, ns, kind, name, count] = row.slices.slice(i, i + FIELDS);
      const [short, full] = name >= 0 ? this.names[name] : [this.kinds[kind][1]];
      const title = document.createElement("b");
      title.textContent = short;
      const what = document.createElement("span");
      const named = name >= 0 ? `${this.kinds[kind][1]}. ` : "";
      const many = count > 1 ? `${count.toLocaleString("en")} drawn together, the longest named here. ` : "";
      const share = ns / this.ns >= 0.001 ? ` (${(100 * ns / this.ns).toFixed(1)} %)` : "";
      what.textContent = `${row.label}: ${named}${many}Starts at ${duration(start)}, takes ${duration(ns)}${share}.`;
      if (full) what.textContent += ` In full: ${full}`;
      this.tip.replaceChildren(title, what);
      return `${short}. ${what.textContent}`;
    }

    place(x, row) {
      this.tip.hidden = false;
      const most = this.box.clientWidth - this.tip.offsetWidth - 4;
      this.tip.style.left = `${Math.max(0, Math.min(x + 12, most))}px`;
      this.tip.style.top = `${row.lane.offsetTop + row.lane.offsetHeight + 6}px`;
    }

    choose(row) {
      this.row = Math.max(0, Math.min(this.rows.length - 1, row));
      this.at = -1;
      this.step(1);
    }

    // To the next or the previous slice of the row; the view follows.
    step(by) {
      const { slices } = this.rows[this.row];
      if (!slices.length) return;
      let next = this.at < 0 ? this.firstSeen(slices) : this.at + by * FIELDS;
      next = Math.max(0, Math.min(slices.length - FIELDS, next));
      this.at = next;
      const middle = slices[next] + slices[next + 1] / 2;
      if (middle < this.from || middle > this.to) this.set(middle - (this.to - this.from) / 2, middle + (this.to - this.from) / 2);
      this.draw();
      said.textContent = this.explain(this.rows[this.row], next);
      const inset = this.axis.getBoundingClientRect().left - this.box.getBoundingClientRect().left;
      this.place((middle - this.from) / (this.to - this.from) * this.width + inset, this.rows[this.row]);
    }

    firstSeen(slices) {
      for (let i = 0; i < slices.length; i += FIELDS) if (slices[i] + slices[i + 1] > this.from) return i;
      return 0;
    }

    clear() {
      this.tip.hidden = true;
      if (this.at >= 0) { this.at = -1; this.draw(); }
    }
  }

  for (const figure of all(".timeline")) new Timeline(figure);
  land();
})();
