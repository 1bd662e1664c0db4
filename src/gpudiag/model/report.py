"""The report: the JSON contract, keys in this order."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpudiag.model.finding import Finding, Place
from gpudiag.model.job import Job
from gpudiag.model.kernel import Kernel
from gpudiag.model.rule import Frozen, GainKind
from gpudiag.model.vocabulary import Framework, Severity


class KernelUse(Frozen):
    """A kernel in an iteration of a loop: how often it is launched, what all its launches take together."""

    name: str
    launches: float = Field(description="of an iteration")
    ms: float = Field(description="of an iteration, all launches together")
    others: int | None = Field(default=None, description="how many kernels this entry stands for, if not one")
    threads: float | None = Field(default=None, description="that all its launches in an iteration start")


class Leaf(Frozen):
    """A leaf of the time tree: a part of an iteration's time that is spent in one way."""

    share: float = Field(description="part of the iteration, 0 to 1; the leaves add up to 1")
    claimed: float = Field(default=0.0, description="part of the iteration in it that findings account for")


class Unclaimed(Frozen):
    """An observation: time that no finding accounts for, and what the host did in it. It names no cause."""

    leaf: str = Field(description="the leaf of the tree")
    share: float = Field(description="part of the iteration, 0 to 1")
    large: bool = Field(default=False, description="so large that a reader sees it first, beside the findings")
    where: tuple[Place, ...] = Field(default=(), description="lines or ranges that the host was in, longest first")
    calls: tuple[str, ...] = Field(default=(), description="the CUDA calls that ended it, most of the time first")
    os_calls: tuple[str, ...] = Field(default=(), description="calls of the operating system in it, longest first")
    about: tuple[str, ...] = Field(
        default=(), description="codes of findings that it follows from, whose fixes leave it"
    )


class Phase(Frozen):
    """A part of each iteration: a line of the function that holds the loop, or an NVTX range below the loop's."""

    name: str = Field(description="the NVTX range's name, or the function that the line calls")
    place: Place
    share: float = Field(description="part of the loop's time: its work and the idle time it causes, 0 to 1")
    computing_share: float = Field(description="part of the loop's time in which the GPU computes its work, 0 to 1")


class FarIterations(Frozen):
    """The iterations that draw the mean away from the median: longer ones, or shorter ones where it is below that."""

    count: int
    of: int = Field(description="iterations that the figures are of")
    least_ms: float = Field(description="the shortest of them")
    most_ms: float = Field(description="the longest of them")


class Guess(Frozen):
    """The length of an iteration without the profiler, by replay with what recording usually costs, in ms."""

    usual_ms: float
    least_ms: float = Field(description="where recording cost the most that is common")
    most_ms: float = Field(description="where it cost the least")


class Loop(Frozen):
    """A repeated unit of work and where its time goes; `budget` is disjoint and sums to 1."""

    id: int
    name: str
    marker: str | None = Field(
        default=None,
        description="of a loop found by repeating kernels: `every`, and the one that marks it; the same in another run",
    )
    nvtx_path: str | None = None
    source: Literal["nvtx", "period", "unknown"] = Field(
        description="how it was found: by an NVTX range, by repeating kernels, or not: then it is all steady work"
    )
    iterations: int = Field(description="after warm-up")
    analysed_iterations: int | None = Field(
        default=None, description="of these: the ones that the figures are of; null where it is all of them"
    )
    processes: int = Field(default=1, description="that run this loop")
    file: str | None = Field(default=None, description="the recording that it is of, where others have loops as well")
    iteration_ms: float = Field(description="under the profiler, the mean")
    median_ms: float | None = Field(
        default=None, description="under the profiler, where that differs much from the mean: of a few long iterations"
    )
    far: FarIterations | None = Field(default=None, description="the iterations that make it differ, where some do")
    iteration_ms_unprofiled: float | None = Field(
        default=None, description="without the profiler: given_ms over given_iterations"
    )
    given_ms: float | None = Field(default=None, description="as --iteration-time gave it")
    given_iterations: float = Field(
        default=1.0, description="iterations that given_ms is the time of: 8 for eight of these, 0.125 for an eighth"
    )
    guessed: Guess | None = Field(
        default=None,
        description="without the profiler, where no time was given and that is much less than with it",
    )
    repeats: int | None = Field(
        default=None, description="how often the same operations come in each iteration; null where they do not"
    )
    share_of_span: float = Field(description="part of all steady time, 0 to 1")
    paused_share: float | None = Field(
        default=None,
        description="part of the time from its first iteration to its last in which a GPU is idle in pauses between"
        " iterations, 0 to 1; no iteration's time holds them",
    )
    budget: dict[str, float] = Field(
        default_factory=dict, description="where an iteration's time goes; parts that add up to 1"
    )
    tree: dict[str, Leaf] = Field(
        default_factory=dict, description="the same in full: the leaves of the time tree, in its order"
    )
    unclaimed: tuple[Unclaimed, ...] = Field(
        default=(), description="large parts of its idle, copy and communication time that no finding explains"
    )
    phases: tuple[Phase, ...] = Field(
        default=(), description="the parts of an iteration worth naming, longest first; none where they are not known"
    )
    deciles_ms: tuple[float, float, float] | None = Field(
        default=None, description="1st, median and 9th of its iterations"
    )
    launches: float = Field(default=0.0, description="kernels and graphs that an iteration starts")
    calls: float = Field(default=0.0, description="CUDA calls of an iteration; recording one costs the host time")
    thread_calls: float | None = Field(default=None, description="those of the thread that makes most of them")
    kernels: tuple[KernelUse, ...] = Field(default=(), description="longest first; the last may stand for all others")
    graphs: KernelUse | None = Field(
        default=None, description="CUDA graphs recorded as one block each, all together; their kernels are unknown"
    )
    copied_bytes: float | None = Field(default=None, description="bytes that the copies of an iteration move")

    @property
    def usual_ms(self) -> float:
        """An iteration as it runs without the profiler (ms): as given, else as guessed, else as recorded."""
        return self.iteration_ms_unprofiled or (self.guessed.usual_ms if self.guessed else self.iteration_ms)

    def priced_ms(self, kind: GainKind) -> float:
        """The time of an iteration that gains of a kind are of (ms): what is expected, of what it likely takes without
        the profiler; a bound of the recorded time at most, unless the other was given.
        """
        return self.usual_ms if kind == "expected" else self.iteration_ms_unprofiled or self.iteration_ms


class Input(Frozen):
    """A file that was read."""

    kind: str = Field(description="what it is: nsys, ncu and so on")
    file: str
    producer: str | None = None
    producer_version: str | None = None


class Whole(Frozen):
    """The complete recording, where a part of it was selected."""

    span_ms: float = Field(description="from the first CUDA call or GPU operation to the last")
    busy_share: float = Field(description="part of that in which a GPU worked, the mean of those that did, 0 to 1")
    gpus: int = Field(description="how many worked")
    gpu_ops: int
    processes: int = Field(description="how many used a GPU")


class Selected(Frozen):
    """The part of the captures that this report is about: all that is given here holds of it."""

    text: str = Field(description="all of this in words")
    start_ms: float | None = Field(default=None, description="since the capture began, as --range gave it")
    end_ms: float | None = None
    nvtx: tuple[str, ...] = Field(default=(), description="ranges, as --nvtx gave them")
    devices: tuple[int, ...] = Field(default=(), description="CUDA device numbers, as --device gave them")
    processes: tuple[str, ...] = Field(default=(), description="ids or names, as --process gave them")
    ranks: tuple[int, ...] = Field(default=(), description="as --rank gave them")
    selected_ms: float | None = Field(default=None, description="how long the part is; of ranges, their sum")
    whole: Whole


class Outside(Frozen):
    """GPU-busy time that no loop of the report holds."""

    before_ms: float = Field(description="before the first iteration")
    between_ms: float = Field(description="between iterations, as in a pause, or beside them in another process")
    after_ms: float = Field(description="after the last iteration")


class Run(Frozen):
    """The recorded run: devices, loops, kernels."""

    devices: tuple[str, ...] = Field(default=(), description="names, one entry a device")
    clocks_mhz: tuple[float, ...] = Field(default=(), description="highest SM clock of each device, where recorded")
    measured_clocks_mhz: tuple[float, ...] = Field(
        default=(), description="median SM clock under load of each GPU in a log of nvidia-smi"
    )
    span_ms: float = Field(default=0.0, description="what was recorded, over all processes")
    cold_start_ms: float = Field(
        default=0.0, description="before the first iteration that counts, which warm-up ones do not; excluded"
    )
    mode: Literal["iterations", "run"] | None = Field(
        default=None, description="what the report speaks of; run where nothing repeats, null without a timeline"
    )
    coverage: float | None = Field(
        default=None, description="part of the GPU-busy time that lies in the loops, warm-up included, 0 to 1"
    )
    outside: Outside | None = Field(default=None, description="where the rest of the GPU-busy time lies")
    loops: tuple[Loop, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    frameworks: tuple[Framework, ...] = ()
    programs: tuple[str, ...] = Field(default=(), description="executables that used the GPU")
    selection: Selected | None = Field(default=None, description="what was selected; null where that is all")

    @property
    def without_python(self) -> bool:
        """Return whether the programs are known to run no Python, by their kernels and their names."""
        known = {*self.frameworks}
        compiled = bool(known) and known <= {"cuda", "any"} and ("any" in known or bool(self.programs))
        return compiled and not any("python" in program.lower() for program in self.programs)


class Verdict(Frozen):
    """The report in a word and in a sentence."""

    state: Literal["problems", "healthy", "cannot_tell"]
    text: str


class Note(Frozen):
    """Reservation about the figures."""

    code: str
    title: str = ""
    text: str
    severity: Severity = Field(default="info", description="how much it takes from the figures; info takes nothing")
    share: float | None = Field(default=None, description="the part of its loop's time that it is about, 0 to 1")


class Unevaluated(Frozen):
    """A rule that this recording cannot answer."""

    code: str
    title: str = ""
    reason: str
    hint: str = Field(default="", description="how to record what it needs")
    undecided: bool = Field(
        default=False, description="whether it was looked for and not found, but time of its kind is unexplained"
    )
    kernels: tuple[str, ...] = Field(
        default=(), description="the profiled kernels of which this holds; empty where it holds of all"
    )


class Suppressed(Frozen):
    """A rule that would have fired, or at more places, had not another explained what it saw."""

    code: str
    by: str = Field(description="the code of that other rule")
    reason: str
    partly: bool = Field(default=False, description="only at some places: at others the rule found something")


class Tool(Frozen):
    """Program that wrote the report."""

    name: str = "gpudiag"
    version: str


class Report(Frozen):
    """The JSON contract, version 1: keys are added, never changed."""

    schema_version: Literal[1] = 1
    tool: Tool
    inputs: tuple[Input, ...]
    verdict: Verdict
    run: Run
    findings: tuple[Finding, ...] = Field(default=(), description="the most important first")
    minor: tuple[Finding, ...] = Field(default=(), description="fired, but worth less than the reporting gate")
    clear: tuple[str, ...] = Field(default=(), description="codes of the rules that found nothing")
    not_evaluated: tuple[Unevaluated, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    notes: tuple[Note, ...] = ()
    titles: dict[str, str] = Field(
        default_factory=dict, description="titles of the codes named in clear and suppressed"
    )
    job: Job | None = Field(
        default=None, description="all ranks of a job beside one another, where many were given; the rest is about one"
    )
