"""Input number i of a seed: which reader, sample and steps. The same two numbers always give the same input."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from fuzz.generators import (
    bytewise,
    documents,
    oversized,
    packs,
    pages,
    parquetfolders,
    rulefolders,
    schemas,
    untrusted,
)
from fuzz.given import Given, Sound, random_of
from fuzz.samples import Samples

READERS: Mapping[str, int] = {
    "sqlite": 20, "parquet": 6, "ncu-csv": 11, "ncu-rep": 4, "trace": 10, "packed": 8, "report": 15, "config": 8,
    "rules": 2, "unknown": 9, "smi": 4, "cprofile": 3,
}  # fmt: skip
"""Reader → its part of all inputs, in percent."""
OUTPUTS = {"json": 50, "html": 15, "twice": 10, "shuffled": 10, "paged": 15}
LARGE = 8 << 20  # bytes
LOSING = {"over:no-device", "page:cut"}
"""Steps that take facts away and change none: what they leave may not look healthier without a note."""


@dataclass(frozen=True)
class Plan:
    """Steps of a fuzz run; `steps` are (name, seed of its own), so that each can be left out by itself."""

    reader: str
    sample: int
    steps: tuple[tuple[str, int], ...]
    output: str
    """`json` or `html`; or JSON, too, `twice` (the second time from the cache), `shuffled` (the second time with the
    store's rows in another order) or `paged` (by the reader of pages that large tables get)."""

    def __str__(self) -> str:
        return f"{self.reader} sample {self.sample}: {', '.join(f'{name}@{seed}' for name, seed in self.steps)}"


def planned(seed: int, number: int, readers: tuple[str, ...]) -> Plan:
    random = random_of(seed, number)
    reader = random.choices(readers, [READERS[name] for name in readers])[0]
    count = random.choice((1, 1, 1, 2, 2, 3, 5))
    steps = tuple((name, random.getrandbits(32)) for name in _names(reader, random, count))
    return Plan(reader, random.getrandbits(16), steps, random.choices(list(OUTPUTS), list(OUTPUTS.values()))[0])


def _names(reader: str, random: Random, count: int) -> list[str]:
    """Names of steps, in the order in which they make sense."""
    of_bytes = sorted(f"bytes:{name}" for name in bytewise.STEPS if name != "pages")
    if reader == "sqlite":
        if random.random() < 0.3:
            return random.choices([*of_bytes, *["bytes:pages"] * 8], k=count)
        if random.random() < 0.12:
            return [f"over:{name}" for name in random.choices(sorted(oversized.STEPS), k=min(count, 2))]
        weights = {"cells": 4, "scattered": 4, "times": 5, "ids": 5, "rows": 3, "schema": 3, "many": 1}
        names = sorted(schemas.STEPS)
        return random.choices([f"db:{name}" for name in names], [weights.get(name, 2) for name in names], k=count)
    if reader == "parquet":
        return random.choices(
            ["parquet:columns"] * 4 + ["parquet:times"] * 3 + ["parquet:files", "parquet:content", "parquet:content"],
            k=count,
        )
    if reader in ("ncu-csv", "smi"):
        of_pages = [f"page:{name}" for name in sorted(pages.STEPS)] * 2 + ["page:written"] * 2
        return random.choices(of_bytes, k=count) if random.random() < 0.25 else random.choices(of_pages, k=count)
    if reader in ("ncu-rep", "cprofile"):
        return random.choices(of_bytes, k=count)
    if reader == "packed":
        if random.random() < 0.01:
            return ["pack:bomb"]
        before = random.choices(of_bytes, k=1) if random.random() < 0.6 else []
        after = random.choices(["pack:outside", "pack:twice", ""], [5, 1, 4] if before else [9, 1, 0])
        return [*before, "pack:pack", *filter(None, after)]
    if reader in ("report", "trace"):
        of_json = [f"json:{name}" for name in sorted(documents.STEPS)] * 2
        return random.choices(of_bytes, k=count) if random.random() < 0.2 else random.choices(of_json, k=count)
    if reader == "config":
        return random.choices(["toml"] * 6 + ["baseline", "baseline", *of_bytes[:3]], k=count)
    of_rules = ["query"] * 4 + ["template"] * 3 + ["view"] * 3 + ["yaml"] * 3 + ["lines", "content", "files"]
    steps = (
        of_rules if reader == "rules" else ["magic"] * 3 + ["other-kind"] * 2 + ["named"] * 2 + ["not-a-file", "bytes"]
    )
    return [f"{reader}:{name}" for name in random.choices(steps, k=count)]


def built(plan: Plan, samples: Samples) -> Given:
    """The input itself. Done in the process that will read it: some steps start threads."""
    given = _start(plan, samples)
    if {name for name, _ in plan.steps} <= LOSING and len(given.words) == 2:
        said = _sound(samples["sound"][0][1]["sound.json"]).get(given.main)
        given.sound = Sound(said["state"], tuple(said["said"])) if said else None
    for name, seed in plan.steps:
        _step(given, name, random_of(seed), samples)
    return given


@cache
def _sound(content: bytes) -> dict[str, Any]:
    """Return gpudiag's answer on each sample as it is."""
    said: dict[str, Any] = json.loads(content)
    return said


def _start(plan: Plan, samples: Samples) -> Given:  # noqa: C901  a list of choices
    def one(kind: str, further: int = 0) -> tuple[str, dict[str, bytes]]:
        return samples[kind][(plan.sample + further) % len(samples[kind])]

    def given(kind: str) -> Given:
        name, files = next(iter(one(kind)[1].items()))
        return Given({name: files}, ["explain", f"@{name}"], name)

    if plan.reader == "sqlite":
        made = given("exports")
        if plan.sample % 11 == 0:  # with another capture beside it
            name, files = one(("exports", "pages")[plan.sample % 2], 1)
            made.files |= files
            made.words += [f"@{other}" for other in files if other != made.main]
        return made
    if plan.reader == "parquet":
        files = {f"{parquetfolders.FOLDER}{name}": content for name, content in one("parquet")[1].items()}
        return Given(files, ["explain", f"@{parquetfolders.FOLDER.rstrip('/')}"], next(iter(files)))
    if plan.reader == "ncu-csv":
        return given("pages")
    if plan.reader in ("smi", "cprofile"):
        made = given(plan.reader)
        if plan.sample % 3 == 0:  # beside a timeline
            name, files = one("exports", 1)
            made.files |= files
            made.words += [f"@{other}" for other in files]
        return made
    if plan.reader == "ncu-rep":
        return given("ncu-rep")
    if plan.reader == "trace":
        made = given("traces")
        if plan.sample % 5 == 0:  # with another capture beside it
            name, files = one(("exports", "pages", "traces")[plan.sample % 3], 1)
            made.files |= files
            made.words += [f"@{other}" for other in files if other != made.main]
        return made
    if plan.reader == "packed":
        return given(("exports", "pages", "pages", "ncu-rep")[plan.sample // 7 % 4])
    if plan.reader == "report":
        made = given("reports")
        if plan.sample % 3:
            return made
        name, files = one("reports", plan.sample % 2)
        other = f"base.{name}.json"
        made.files[other] = next(iter(files.values()))
        sides = [f"@{other}", f"@{made.main}"] if plan.sample % 6 else [f"@{made.main}", f"@{other}"]
        return Given(made.files, ["diff", *sides], made.main)
    if plan.reader == "config":
        report, baseline = next(iter(one("reports")[1].values())), next(iter(one("baselines")[1].values()))
        files = {"gpudiag.toml": samples["config"][0][1]["gpudiag.toml"], "report.json": report, "known.json": baseline}
        return Given(files, ["check", "@report.json", "--config", "@gpudiag.toml"], "gpudiag.toml")
    if plan.reader == "rules":
        name, content = next(iter(samples["exports"][plan.sample % 2][1].items()))
        files = {name: content, **samples["rules"][0][1]}
        folder = f"@{rulefolders.FOLDER.rstrip('/')}"
        words = ["explain", f"@{name}", "--rules", folder] if plan.sample % 4 else ["rules", "check", folder]
        return Given(files, words, rulefolders.RULE)
    return given(("exports", "pages", "ncu-rep")[plan.sample % 3])


ON_GIVEN: Mapping[str, Mapping[str, Callable[[Given, Random], None]]] = {
    "pack": packs.STEPS, "parquet": parquetfolders.STEPS, "rules": rulefolders.STEPS, "unknown": untrusted.STEPS,
}  # fmt: skip


def _step(given: Given, name: str, random: Random, samples: Samples) -> None:
    family, _, step = name.partition(":")
    if sum(map(len, given.files.values())) > LARGE and family != "pack":
        return  # steps that make a file grow multiply
    if family in ON_GIVEN:
        ON_GIVEN[family][step](given, random)
    elif family == "toml":
        given.content = documents.toml(given.content, random)
    elif family == "baseline":
        content = given.files["known.json"]
        given.files["known.json"] = documents.damaged(random.choice(sorted(documents.STEPS)), content, random, b"{}")
    else:
        kinds = {
            "db": "exports",
            "over": "exports",
            "page": "pages",
            "json": "reports",
            "bytes": random.choice(("exports", "pages", "ncu-rep")),
        }
        other = next(iter(random.choice(samples[kinds[family]])[1].values()))
        by = {
            "db": schemas.damaged,
            "over": oversized.damaged,
            "page": pages.damaged,
            "json": documents.damaged,
            "bytes": bytewise.damaged,
        }
        given.content = by[family](step, given.content, random, other)
