"""Check HTML reports in a real browser: `python -m evaluation.check_html PAGE… --axe axe.min.js`.

Needs Playwright (`pip install playwright`) and a Chromium; axe-core (`npm install axe-core`) finds what hinders readers
with disabilities. For each page: no message on the console, no request leaves the page, every link inside it lands,
nothing is wider than a phone, the first finding stands above the fold, theme, zoom, overview, tooltip, linked choice,
tables, search and copying work, and the text is there without scripts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation import check_choices as choices

PHONE, DESK = 400, 1400
HEIGHTS = {PHONE: 800, DESK: 900}
NARROWEST = 360
LARGEST = 400_000  # bytes
GRAVE = ("serious", "critical")


UNFOLDED = "box => box.closest('details:not([open])') || box.getBoundingClientRect().height > 0"


def main() -> int:
    """Print a line a fault; 0 when there is none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("pages", nargs="+", type=Path, help="HTML reports")
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core; without it accessibility is not checked")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser to start")
    parser.add_argument("--images", type=Path, help="a folder for screenshots: light, dark, phone")
    args = parser.parse_args()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("Playwright is not installed: pip install playwright", file=sys.stderr)
        return 2
    if not Path(args.chromium).exists():
        print(f"There is no browser at {args.chromium}: name a Chromium with --chromium.", file=sys.stderr)
        return 2
    faults = 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        for page in args.pages:
            found = list(check(browser, page, args.axe, args.images))
            faults += len(found)
            print(f"{page}: {len(found)} faults" if found else f"{page}: as it should be")
            for fault in found:
                print(f"  {fault}")
        browser.close()
    return 1 if faults else 0


def check(browser: Any, file: Path, axe: Path | None, images: Path | None) -> Iterator[str]:
    """The faults of one page."""
    for scheme in ("light", "dark"):
        with_page = opened(browser, file, scheme, DESK)
        page, heard = with_page
        yield from heard
        if axe:
            yield from (f"{scheme}: {fault}" for fault in hindrances(page, axe))
        picture(page, images, file, scheme)
        yield from above_fold(page, DESK)
        if scheme == "light":
            yield from lands(page)
            afresh(page)
            yield from works(page)
            afresh(page)
            yield from choices.check(page)
        yield from heard
        page.context.close()
        yield from on_a_phone(browser, file, scheme, axe, images)
    yield from without_scripts(browser, file)
    if (size := file.stat().st_size) > LARGEST:
        yield f"{size:,} bytes large"


def afresh(page: Any) -> None:
    """Open the page again, at no place in it."""
    page.evaluate("history.replaceState(null, '', location.pathname)")
    page.reload()


def on_a_phone(browser: Any, file: Path, scheme: str, axe: Path | None, images: Path | None) -> Iterator[str]:
    page, heard = opened(browser, file, scheme, PHONE)
    yield from above_fold(page, PHONE)
    picture(page, images, file, f"phone-{scheme}")
    page.set_viewport_size({"width": NARROWEST, "height": HEIGHTS[PHONE]})
    page.wait_for_timeout(100)
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > NARROWEST:
        yield f"{wide} pixels wide on a phone of {NARROWEST}"
    if axe:
        yield from (f"phone, {scheme}: {fault}" for fault in hindrances(page, axe))
    yield from heard
    page.context.close()


def above_fold(page: Any, width: int) -> Iterator[str]:
    """Cause, place, fix and worth of the first finding are in sight at once; where there is none, the verdict is."""
    first = page.locator(".finding summary h3, .finding summary .headline, .verdict")
    shown = page.locator(".finding").first.locator("h3, .headline") if page.locator(".finding").count() else first
    for one in shown.all()[:2]:
        box = one.bounding_box()
        if not box or box["y"] + box["height"] > HEIGHTS[width]:
            yield f"the first finding is below the fold at {width} pixels"


def opened(browser: Any, file: Path, scheme: str, width: int, scripts: bool = True) -> tuple[Any, list[str]]:
    """The page, and a list that fills with what it says on the console or asks of the network."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHTS[width]}, color_scheme=scheme, java_script_enabled=scripts
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, heard = context.new_page(), []
    address = file.resolve().as_uri()
    page.on("console", lambda message: heard.append(f"console: {message.text[:200]}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("request", lambda request: heard.append(f"request: {request.url}") if request.url != address else None)
    page.goto(address)
    page.wait_for_timeout(300)
    return page, heard


def hindrances(page: Any, axe: Path) -> Iterator[str]:
    """Return axe-core's serious and critical findings. It bypasses the page's policy, which allows no other script."""
    page.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true; })")
    page.evaluate(axe.read_text("utf-8") + "; null")
    for fault in page.evaluate("axe.run().then(result => result.violations)"):
        if fault["impact"] in GRAVE:
            yield f"{fault['id']} ({fault['impact']}): {fault['nodes'][0]['html'][:160]}"


def picture(page: Any, images: Path | None, file: Path, name: str) -> None:
    if images:
        images.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(images / f"{file.stem}-{name}.png"), full_page=True)


def lands(page: Any) -> Iterator[str]:
    """Each link inside the page brings its target into view."""
    links = page.evaluate(
        "[...new Set([...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href')))]"
    )
    for link in links:
        page.evaluate("document.querySelectorAll('.finding').forEach(box => { box.open = false; }); scrollTo(0, 0)")
        page.evaluate("href => { location.hash = ''; location.hash = href; }", link)
        page.wait_for_timeout(60)
        seen = page.evaluate(
            """href => {
                const target = document.getElementById(href.slice(1));
                if (!target) return 'leads nowhere';
                const box = target.getBoundingClientRect();
                if (!box.width || !box.height) return 'leads to something hidden';
                return box.bottom > 0 && box.top < innerHeight ? '' : 'does not land';
            }""",
            link,
        )
        if seen:
            yield f"link {link} {seen}"
    closed = page.evaluate("location.hash = '#finding-1', document.querySelector('#finding-1') !== null")
    page.wait_for_timeout(60)
    if closed and not page.evaluate("document.querySelector('#finding-1').open"):
        yield "a link to a finding does not open it"


def works(page: Any) -> Iterator[str]:
    """Theme, copying, zoom, tooltip."""
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.click("#theme")
    page.click("#theme")
    if page.evaluate(ground) == before:
        yield "the theme does not change"
    page.click("#theme")
    if page.locator("main pre").count():
        page.evaluate("document.querySelectorAll('.finding').forEach(box => { box.open = true; })")
        page.locator(".copied > .copy").first.click()
        page.wait_for_timeout(100)
        text = page.evaluate("navigator.clipboard.readText()")
        if text.strip() != page.locator("main pre").first.inner_text().strip():
            yield "copying gives another text"
    timelines = page.locator(".timeline:visible").filter(has=page.locator(".lane-gpu, .lane-stream"))
    if timelines.count():
        timeline = timelines.first
        said = timeline.locator("output")
        whole = said.inner_text()
        timeline.locator(".lanes").focus()
        page.keyboard.press("+")
        page.wait_for_timeout(80)
        if said.inner_text() == whole:
            yield "the keyboard does not zoom"
        page.keyboard.press("0")
        page.wait_for_timeout(80)
        if said.inner_text() != whole:
            yield "0 does not show all"
        page.keyboard.press(".")
        if not timeline.locator(".tip").is_visible():
            yield "the keyboard shows no tooltip"
        page.keyboard.press("Escape")
        timeline.locator(".lane-gpu .track, .lane-stream .track").first.hover()
        if not timeline.locator(".tip").is_visible():
            yield "the pointer shows no tooltip"
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(80)
        if said.inner_text() == whole:
            yield "the wheel does not zoom"


def without_scripts(browser: Any, file: Path) -> Iterator[str]:
    page, _ = opened(browser, file, "light", DESK, scripts=False)
    if not page.locator("h1 + *").inner_text().strip():
        yield "no verdict without scripts"
    hidden = [box for box in page.locator("main table, main .timeline").all() if not box.evaluate(UNFOLDED)]
    if hidden:
        yield f"{len(hidden)} tables or timelines are hidden without scripts"
    for track in page.locator(".lane-gpu .track").all():
        if not track.locator("path").count():
            yield "no timeline without scripts"
    page.context.close()


if __name__ == "__main__":
    sys.exit(main())
