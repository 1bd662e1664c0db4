"use strict";
// Small helpers, the theme, copying, folding. The other files are about what is chosen, tables and timelines.
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
let scheme = "auto";
try { scheme = localStorage.getItem("gpudiag-theme") || "auto"; } catch { /* a page from a file may have no storage */ }
function show(name) {
  scheme = themes.includes(name) ? name : "auto";
  root.style.colorScheme = scheme === "auto" ? "" : scheme;
  theme.textContent = `Theme: ${scheme}`;
}
theme.hidden = false;
theme.addEventListener("click", () => {
  show(themes[(themes.indexOf(scheme) + 1) % themes.length]);
  try { localStorage.setItem("gpudiag-theme", scheme); } catch { /* then it holds for this view only */ }
});
show(scheme);

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
