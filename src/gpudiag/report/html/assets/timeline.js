// A timeline: what is in view, and what pointer and keys do with it.
// The data has each start as the distance from the end of the slice before.
function starts(slices) {
  let end = 0;
  for (let i = 0; i < slices.length; i += FIELDS) {
    slices[i] += end;
    end = slices[i] + slices[i + 1];
  }
}

class Timeline extends Drawing {
  constructor(figure) {
    super();
    this.figure = figure;
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    Object.assign(this, { ns: data.ns, kinds: data.kinds, names: data.names });
    this.axis = figure.querySelector(".axis");
    this.box = figure.querySelector(".lanes");
    this.output = figure.querySelector("output");
    for (const row of data.rows) starts(row);
    this.rows = all(".lane:not(.lane-axis)", figure).map((lane, at) => ({
      lane, slices: data.rows[at], track: lane.querySelector(".track"), rank: lane.dataset.rank,
      whole: lane.matches(".lane-finding, .lane-phase, .lane-nvtx"), named: lane.matches(".lane-stream"),
      label: (lane.querySelector(".lane-label").title || lane.querySelector(".lane-label").textContent).trim(),
    }));
    this.from = 0;
    this.to = this.ns;
    this.row = 0;
    this.at = -1;
    this.pointers = new Map();
    this.found = null; // which names are brought out, while kernels are searched for
    this.rank = ""; // of the chosen finding
    this.bands = element("svg", { class: "bands", "aria-hidden": "true", preserveAspectRatio: "none" }, this.box);
    this.strip = figure.closest("#timeline") ? new Strip(this) : null;
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

  // Shows what is chosen.
  show() {
    const full = (names) => names[1] || names[0];
    const wanted = this.names.map((names, at) => (sought(names[0], full(names)) ? at : -1)).filter((at) => at >= 0);
    this.found = searching() ? new Set(wanted) : null;
    for (const { lane, rank } of this.rows) lane.classList.toggle("chosen", Boolean(rank) && rank === chosen.rank);
    if (this.rank !== chosen.rank) this.reveal(this.rows.find(({ rank }) => rank && rank === chosen.rank));
    this.rank = chosen.rank;
    this.draw();
  }

  // Moves to the marks of a finding where none of them is in view.
  reveal(row) {
    if (!row || !row.slices.length) return;
    let [first, last, seen] = [Infinity, 0, false];
    for (let i = 0; i < row.slices.length; i += FIELDS) {
      const end = row.slices[i] + row.slices[i + 1];
      [first, last] = [Math.min(first, row.slices[i]), Math.max(last, end)];
      seen ||= row.slices[i] <= this.to && end >= this.from;
    }
    const room = 0.05 * (last - first);
    if (!seen) this.set(first - room, last + room);
  }

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
      ".": () => this.step(1), ",": () => this.step(-1),
      Enter: () => this.follow(this.rows[this.row], this.at),
      Escape: () => { this.clear(); choose({ rank: "", kernel: "" }); },
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
      if (row && !this.moved && event.target.closest(".track")) this.follow(row, this.hit(row, event));
    });
  }

  // From a mark to its finding; a kernel is marked wherever it is.
  follow(row, i) {
    if (i < 0) return;
    if (row.rank) location.hash = `finding-${row.rank}`;
    const names = this.names[row.slices[i + 3]];
    if (!names || this.kinds[row.slices[i + 2]][0] !== "kernel") return;
    const full = names[1] || names[0];
    choose({ kernel: chosen.kernel === full ? "" : full });
  }

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

  get least() { return Math.min(this.ns, 500); } // ns in view

  centre(time) {
    const half = (this.to - this.from) / 2;
    this.set(time - half, time + half);
  }

  zoom(factor, at = 0.5) {
    const span = Math.min(this.ns, Math.max(this.least, (this.to - this.from) * factor));
    const fixed = this.from + at * (this.to - this.from);
    this.set(fixed - at * span, fixed + (1 - at) * span);
  }

  move(part) {
    const by = part * (this.to - this.from);
    this.set(this.from + by, this.to + by);
  }

  set(from, to) {
    const span = Math.min(Math.max(to - from, this.least), this.ns);
    this.from = Math.max(0, Math.min(from, this.ns - span));
    this.to = this.from + span;
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.draw(); });
    }
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
