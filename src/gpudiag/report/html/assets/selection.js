// What is chosen, in all views alike: a finding by its rank; kernels by a text to search for, or one by its full name.
const chosen = { rank: "", text: "", kernel: "" };
const views = []; // functions that show what is chosen

function choose(change) {
  Object.assign(chosen, change);
  for (const view of views) view();
}

// Whether a name holds the text that is searched for; whether a timeline brings out the kernel of that name.
const holds = (...names) => names.some((name) => name.toLowerCase().includes(chosen.text));
const searching = () => Boolean(chosen.text || chosen.kernel);
const sought = (short, full) => (chosen.kernel ? full === chosen.kernel : holds(short, full));

// Findings: opening one chooses it.
const cards = all(".finding");
const rankOf = (card) => card.id.replace("finding-", "");
for (const card of cards) {
  card.querySelector("summary").addEventListener("click", () => {
    if (!card.open) choose({ rank: rankOf(card) });
    else if (chosen.rank === rankOf(card)) choose({ rank: "" });
  });
}
views.push(() => { for (const card of cards) card.classList.toggle("chosen", rankOf(card) === chosen.rank); });

// The field that searches for kernels.
const search = document.querySelector("#search input");
if (search) {
  search.parentElement.hidden = false;
  search.addEventListener("input", () => choose({ text: search.value.trim().toLowerCase(), kernel: "" }));
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    search.value = "";
    choose({ text: "", kernel: "" });
  });
}
