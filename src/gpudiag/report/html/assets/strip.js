// The overview strip above a timeline: all of it in small, and a window that is the part shown below. Dragging the
// window moves it, its ends change it, dragging beside it draws a new one; a click goes to its place.
const END = 7; // pixels at an end of the window that change its length

class Strip {
  constructor(timeline) {
    this.timeline = timeline;
    const strip = document.createElement("div");
    strip.className = "lane strip";
    strip.setAttribute("aria-hidden", "true"); // the keys and buttons of the timeline do the same
    const label = document.createElement("span");
    label.className = "lane-label";
    label.textContent = "overview";
    this.area = document.createElement("div");
    this.area.className = "area";
    this.window = document.createElement("div");
    this.window.className = "window";
    const work = timeline.box.querySelector(".lane-gpu") ? ".lane-gpu" : ".lane-stream";
    for (const lane of all(`.lane-finding, ${work}`, timeline.box)) { // before the script draws into them: the drawings of a page without one
      const track = lane.querySelector(".track").cloneNode(true);
      for (const name of ["role", "aria-label"]) track.removeAttribute(name);
      track.setAttribute("height", lane.matches(".lane-finding") ? 4 : 9);
      this.area.append(track);
    }
    this.area.append(this.window);
    strip.append(label, this.area);
    timeline.box.before(strip);
    this.area.addEventListener("pointerdown", (event) => this.press(event));
    this.area.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel"]) this.area.addEventListener(name, () => this.release(name));
  }

  // The time under the pointer.
  time(event) {
    const box = this.area.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * this.timeline.ns;
  }

  press(event) {
    const { from, to, ns } = this.timeline;
    const at = this.time(event);
    const near = END / Math.max(1, this.area.clientWidth) * ns;
    let held = "new";
    if (to - from < ns) held = Math.abs(at - from) < near ? "from" : Math.abs(at - to) < near ? "to" : at > from && at < to ? "move" : "new";
    this.grip = { held, at, from, to, moved: false };
    this.area.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  drag(event) {
    if (!this.grip) return;
    const { held, at, from, to } = this.grip;
    const now = this.time(event);
    const by = now - at;
    this.grip.moved ||= Math.abs(by) * this.area.clientWidth > 3 * this.timeline.ns;
    if (!this.grip.moved) return;
    if (held === "move") this.timeline.set(from + by, to + by);
    else {
      const fixed = held === "from" ? to : held === "to" ? from : at;
      this.timeline.set(Math.min(fixed, now), Math.max(fixed, now));
    }
  }

  release(name) {
    if (name === "pointerup" && this.grip && !this.grip.moved) this.timeline.centre(this.grip.at);
    this.grip = null;
  }

  draw() {
    const { from, to, ns } = this.timeline;
    this.window.hidden = to - from >= ns;
    this.window.style.left = `${100 * from / ns}%`;
    this.window.style.width = `${100 * (to - from) / ns}%`;
  }
}
