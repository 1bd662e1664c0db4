"""Check, in a real browser, what a page's script links: findings, timelines, tables of kernels, the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SHOWN = "#timeline .timeline:not([hidden])"


def check(page: Any) -> Iterator[str]:
    """The faults of a page that was just opened."""
    yield from _sorts(page)
    if page.locator(SHOWN).count():
        yield from _drags(page)
        yield from _switches(page)
        if page.locator(f"{SHOWN} [data-rank]").count():
            yield from _marks(page)
    if page.locator("#by-kernel").count():
        yield from _searches(page)


def _sorts(page: Any) -> Iterator[str]:
    """Every head sorts its table by click and by key, says so, and loses no row."""
    for table in page.locator("table:has(th button)").all():
        rows = table.locator("tbody tr")
        before = sorted(rows.all_inner_texts())
        for head in table.locator("thead th").all():
            head.locator("button").click()
            first = head.get_attribute("aria-sort")
            order = rows.all_inner_texts()
            head.locator("button").focus()
            page.keyboard.press("Enter")
            if {first, head.get_attribute("aria-sort")} != {"ascending", "descending"}:
                yield f"the head {head.inner_text()!r} does not say how it sorts"
            if sorted(rows.all_inner_texts()) != before:
                yield f"the head {head.inner_text()!r} loses rows"
            values = head.evaluate(
                "head => [...head.closest('table').tBodies[0].rows].map(r => r.cells[head.cellIndex].innerText)"
            )
            if len(set(values)) > 1 and rows.all_inner_texts() == order:
                yield f"the head {head.inner_text()!r} does not sort"


def _drags(page: Any) -> Iterator[str]:
    """Dragging on the overview shows that part, dragging its window moves it."""
    area, said = page.locator(f"{SHOWN} .area"), page.locator(f"{SHOWN} output")
    area.scroll_into_view_if_needed()
    box, whole = area.bounding_box(), said.inner_text()
    seen = [whole]
    for begin, end in ((0.2, 0.4), (0.3, 0.6), (0.7, 0.9)):  # a new window, moved, its end drawn out
        page.mouse.move(box["x"] + box["width"] * begin, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * end, box["y"] + box["height"] / 2, steps=5)
        page.mouse.up()
        page.wait_for_timeout(80)
        seen.append(said.inner_text())
    if len(set(seen)) != len(seen):
        yield f"the overview does not follow the pointer: {seen}"
    page.locator(f"{SHOWN} .lanes").focus()
    page.keyboard.press("0")
    page.wait_for_timeout(80)


def _switches(page: Any) -> Iterator[str]:
    """Each button shows its timeline and no other."""
    buttons = page.locator(".views button").all()
    for button in [*buttons[1:], *buttons[:1]]:
        button.click()
        if page.locator(SHOWN).count() != 1 or button.get_attribute("aria-pressed") != "true":
            yield f"{button.inner_text()!r} does not show its timeline alone"


def _marks(page: Any) -> Iterator[str]:
    """Opening a finding marks it on the timeline; its mark leads back."""
    rank = page.locator(f"{SHOWN} [data-rank]").first.get_attribute("data-rank")
    card = page.locator(f"#finding-{rank}")
    card.locator("summary").first.click()
    if not page.locator(f"{SHOWN} .lane.chosen[data-rank='{rank}']").count():
        yield "an opened finding is not marked on the timeline"
    if not page.locator(f"{SHOWN} .bands rect").count():
        yield "an opened finding has no bands on the timeline"
    card.locator("summary").first.click()
    if page.locator(".chosen").count():
        yield "a closed finding stays chosen"
    page.locator(f"{SHOWN} .lanes").focus()
    lanes = page.locator(f"{SHOWN} .lane[id]").all()
    at = next(number for number, lane in enumerate(lanes) if lane.get_attribute("data-rank") == rank)
    for key in (*["ArrowUp"] * len(lanes), *["ArrowDown"] * at, "Enter"):
        page.keyboard.press(key)
    page.wait_for_timeout(80)
    if not card.evaluate("card => card.open && card.classList.contains('chosen')"):
        yield "a mark on the timeline does not lead to its finding"
    page.locator(f"{SHOWN} .lanes").focus()
    page.keyboard.press("Escape")


def _searches(page: Any) -> Iterator[str]:
    """The field leaves the kernels of that name; a kernel's own button marks it where it is."""
    rows = page.locator("#by-kernel tbody tr")
    name = rows.first.locator("code").inner_text()
    page.fill("#search input", name[:20].upper())
    left = page.locator("#by-kernel tbody tr:visible code").evaluate_all(
        "all => all.map(one => one.title + one.innerText)"
    )
    if not left or any(name[:20].lower() not in one.lower() for one in left):
        yield f"the search for {name[:20]!r} leaves {left}"
    page.fill("#search input", "no kernel has this name")
    if page.locator("#by-kernel tbody tr:visible").count():
        yield "the search leaves kernels of other names"
    page.keyboard.press("Escape")
    if page.locator("#by-kernel tbody tr:visible").count() != rows.count():
        yield "a search that has ended leaves rows out"
    rows.first.locator("button").click()
    if rows.first.locator("button").get_attribute("aria-pressed") != "true":
        yield "a kernel that was chosen does not say so"
    others = rows.count() > 1 and page.locator(f"{SHOWN} .lane-stream").count()
    if others and not page.locator(f"{SHOWN} .lane-stream .dim").count():
        yield "a kernel that was chosen is not brought out on the timeline"
    rows.first.locator("button").click()
    if page.locator(".dim").count():
        yield "the timeline stays dimmed"
