// Tables: sorted by a click on a column's head, and those of kernels searched.
const UNITS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1 };

// A cell's figure, as it is written: 1,234 or 5.6 µs or < 0.1 %.
function figure(cell, missing) {
  const found = cell.textContent.trim().match(/^(<?)\s*([\d,]*\.?\d+)\s*(ns|µs|ms|s)?(?![a-z])/);
  return found ? Number(found[2].replaceAll(",", "")) * (UNITS[found[3]] || 1) * (found[1] ? 0.5 : 1) : missing;
}

function sortable(table) {
  const heads = all("thead th", table);
  heads.forEach((head, column) => {
    const numeric = head.classList.contains("figure");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(table, column, numeric, down);
    });
  });
}

// Rows without a figure come last either way.
function sort(table, column, numeric, down) {
  const key = ({ cells }) => (numeric ? figure(cells[column], down ? -Infinity : Infinity) : cells[column].textContent.trim());
  const order = numeric ? (a, b) => a - b || 0 : (a, b) => a.localeCompare(b, "en", { numeric: true });
  const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
  rows.sort(([a], [b]) => (down ? order(b, a) : order(a, b)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const table of all("table.sortable, #kernels > .scroll:first-of-type > table")) sortable(table);

// Kernels: a row for each, found by its name; a click on the name marks it on the timelines.
const kernels = all("#by-kernel tbody tr, #kernels > .scroll:first-of-type > table tbody tr").map((row) => {
  const code = row.cells[0].querySelector("code");
  const short = row.cells[0].textContent.trim();
  const full = code ? code.title : "";
  if (code && row.closest("#by-kernel")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "kernel";
    button.setAttribute("aria-pressed", "false");
    code.replaceWith(button);
    button.append(code);
    button.addEventListener("click", () => choose({ kernel: chosen.kernel === full ? "" : full }));
    return { row, short, full, button };
  }
  return { row, short, full };
});
views.push(() => {
  let shown = 0;
  for (const { row, short, full, button } of kernels) {
    row.hidden = !holds(short, full);
    shown += !row.hidden;
    row.classList.toggle("chosen", Boolean(full) && full === chosen.kernel);
    if (button) button.setAttribute("aria-pressed", String(full === chosen.kernel));
  }
  for (const dot of all(".dot")) dot.classList.toggle("dim", !holds(dot.dataset.name));
  const output = document.querySelector("#search output");
  if (output) output.textContent = chosen.text ? `${shown} of ${kernels.length}` : chosen.kernel ? "1 marked" : "";
});
