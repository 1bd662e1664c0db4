// The timelines of the page, and the way to a place in it.
for (const help of all("#timeline-help")) help.hidden = false;
const timelines = all(".timeline").map((figure) => new Timeline(figure));

// One at a time is shown, and buttons choose which; on paper, and without a script, there are all.
const figures = all("#timeline .timeline");
const buttons = figures.length < 2 ? [] : figures.map((figure) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = figure.querySelector("h3").textContent;
  button.addEventListener("click", () => present(figure));
  return button;
});
function present(figure) {
  figures.forEach((one, at) => {
    one.hidden = one !== figure;
    buttons[at].setAttribute("aria-pressed", String(one === figure));
  });
}
if (buttons.length) {
  const tabs = document.createElement("p");
  tabs.className = "views";
  tabs.append(...buttons);
  figures[0].before(tabs);
  present(figures[0]);
  addEventListener("beforeprint", () => {
    for (const figure of figures) figure.hidden = false;
    for (const timeline of timelines) timeline.draw();
  });
  addEventListener("afterprint", () => present(figures[buttons.findIndex((button) => button.getAttribute("aria-pressed") === "true")]));
}
views.push(() => {
  for (const timeline of timelines) timeline.show();
  const marked = (figure) => figure.querySelector(`[data-rank="${CSS.escape(chosen.rank)}"]`);
  const there = chosen.rank && figures.find(marked);
  if (there && !figures.some((figure) => !figure.hidden && marked(figure))) present(there);
});

// To what the address names: it is opened, and a finding or its mark is chosen.
function land() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  const figure = target.closest("#timeline .timeline");
  if (figure && buttons.length) present(figure);
  if (target.matches(".finding, [data-rank]")) choose({ rank: target.dataset.rank || rankOf(target) });
  target.scrollIntoView({ block: target.classList.contains("lane") ? "center" : "start" });
}
addEventListener("hashchange", land);
land();
