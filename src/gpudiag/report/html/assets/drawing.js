// Rows of a timeline, the part of it that is in view, as SVG.
const FIELDS = 5; // start, length, kind, name, count
const NEAR = 4; // pixels around the pointer that count as hit
const LOW = 0.55; // of a row's height: where idle time begins, below a finding's own marks
const COLUMN = 2; // pixels: what is narrower shares a column with its neighbours

class Drawing {
  height(track) { return Number(track.getAttribute("height")); }
  get width() { return Math.max(1, this.axis.clientWidth || this.axis.getBoundingClientRect().width); }

  draw() {
    const width = this.width;
    this.drawAxis(width);
    this.rows.forEach((row, at) => this.drawRow(row, width, at === this.row ? this.at : -1));
    this.drawBands(width);
    if (this.strip) this.strip.draw();
    const whole = this.to - this.from >= this.ns;
    this.output.textContent = whole ? `${duration(this.ns)}, all of it` : `${duration(this.from)} to ${duration(this.to)} of ${duration(this.ns)}`;
  }

  // Where the chosen finding has marks, across all rows.
  drawBands(width) {
    const row = this.rows.find(({ rank }) => rank && rank === chosen.rank);
    const scale = width / (this.to - this.from);
    const bands = [];
    for (let i = 0; row && i < row.slices.length; i += FIELDS) {
      const left = (row.slices[i] - this.from) * scale;
      const right = Math.max(left + COLUMN, left + row.slices[i + 1] * scale);
      if (right < 0 || left > width) continue;
      const last = bands.at(-1);
      if (last && left <= last.right + 1) last.right = Math.max(last.right, right);
      else bands.push({ left, right });
    }
    this.box.classList.toggle("banded", bands.length > 0);
    this.bands.style.left = `${this.axis.getBoundingClientRect().left - this.box.getBoundingClientRect().left}px`;
    this.bands.setAttribute("width", width);
    this.bands.setAttribute("viewBox", `0 0 ${width} 1`);
    this.bands.replaceChildren(...bands.map(({ left, right }) => element("rect", { x: left, width: right - left, height: 1 })));
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
    const dim = (i) => (this.found && row.named && !this.found.has(slices[i + 3]) ? " dim" : "");
    for (const { left, right, i } of boxes) {
      const kind = this.kinds[slices[i + 2]][0];
      const gap = right - left > 4 ? 0.6 : 0;
      const top = kind === "idle_mark" ? height * LOW : 0;
      parts.push(element("rect", { class: `k-${kind}${dim(i)}`, x: left, y: top, width: right - left - gap, height: height - top, rx: right - left > 6 ? 1.5 : 0 }));
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
      const looked = few.filter(({ i }) => !dim(i)); // where one is brought out, the others of its column are left out
      this.drawColumn(parts, row, column * COLUMN, looked.length ? looked : few, height, alone, looked.length ? "" : " dim");
    }
    if (marked >= 0) {
      const left = (slices[marked] - this.from) * scale;
      parts.push(element("rect", { class: "at", x: left, y: 1, width: Math.max(3, slices[marked + 1] * scale), height: height - 2 }));
    }
    track.setAttribute("viewBox", `0 0 ${width} ${height}`);
    track.replaceChildren(...parts);
  }

  // A narrow slice that stands alone is a tick. Several share their column's height as they share its time; the rest stays empty.
  drawColumn(parts, row, x, few, height, alone, dim) {
    const kindOf = (one) => row.slices[one.i + 2];
    if (alone || row.whole) {
      for (const kind of [...new Set(few.map(kindOf))].sort((a, b) => a - b)) {
        const own = few.filter((one) => kindOf(one) === kind);
        const left = Math.min(...own.map((one) => one.left));
        const right = Math.max(...own.map((one) => one.right), left + (row.rank ? COLUMN : 0.8));
        const top = this.kinds[kind][0] === "idle_mark" ? height * LOW : 0;
        parts.push(element("rect", { class: `k-${this.kinds[kind][0]} flat${dim}`, x: left, y: top, width: right - left, height: height - top }));
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
      parts.push(element("rect", { class: `k-${this.kinds[kind][0]} flat${dim}`, x, y, width: COLUMN, height: tall }));
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
}
