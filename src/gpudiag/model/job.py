"""A job of many ranks in the report: who waits for whom, and how fast its collectives are."""

from __future__ import annotations

from pydantic import Field

from gpudiag.model.rule import Frozen


class JobRank(Frozen):
    """A rank beside the others. Shares are of an iteration of the job, 0 to 1."""

    label: str
    rank: int | None = None
    file: str
    host: str | None = None
    more: float = Field(
        description="how much more it does itself, between its collectives, than the quarter of the ranks that does "
        "least; the median of its iterations"
    )
    waits: float = Field(description="how long its GPU only waits for other ranks, the mean of its iterations")
    slow: bool = Field(default=False, description="whether the others wait for it")
    computes_ms: float = Field(default=0.0, description="of an iteration, in which its GPU computes, the mean")
    copies_ms: float = Field(default=0.0, description="in which its GPU only copies")
    nothing_to_do_ms: float = Field(
        default=0.0, description="in which its GPU has nothing to do, because its host launched nothing"
    )
    over_time: tuple[float, ...] = Field(
        default=(), description="`more` in equal parts of the recording, from the first to the last"
    )
    page: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._~%-]+$",
        description="a page about this rank alone, written beside the report: its name, as a link has it",
    )


class JobCollective(Frozen):
    """Collectives of one operation and size, over all communicators of one number of ranks."""

    operation: str
    bytes: int | None = None
    ranks: int = Field(description="that take part in one")
    each: float = Field(description="that a rank runs in an iteration")
    transfer_ms: float = Field(description="how long one takes once the last rank has joined, the median")
    wait_ms: float = Field(description="how long a rank waits in one for the last to join, on average")
    bandwidth: float | None = Field(
        default=None, description="bytes a second over each rank's link, as nccl-tests count bus bandwidth"
    )


class Job(Frozen):
    """Many ranks explained together: one of them in full, all of them beside one another."""

    ranks: int
    hosts: int | None = Field(default=None, description="how many hosts, where that is known")
    reference: str = Field(description="the rank that the rest of the report is about: the others wait for it")
    iterations: int
    iteration_ms: float
    waiting: float = Field(description="part of an iteration that a rank only waits for others, the mean, 0 to 1")
    at_median_ms: float = Field(
        description="an iteration if every rank did, between two collectives, what the median rank does"
    )
    missing: tuple[int, ...] = Field(
        default=(), description="numbers of ranks that belong to the job and were not given"
    )
    collectives: tuple[JobCollective, ...] = Field(default=(), description="those that take the most time, first")
    members: tuple[JobRank, ...] = Field(default=(), description="all ranks, by number")
