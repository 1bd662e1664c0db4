-- The phase of its iteration that a loop is in from this moment on, until the next row, by the thread that drives it
-- (of a backward pass that PyTorch's own thread launches, the one that calls it): the NVTX range directly below the
-- loop's own; where such ranges hold less than most of the loop, the line of the user's function that holds the loop,
-- by Python samples, unless torch.profiler wrote these beside operators only.
-- materialised: looked up by time
--   loop: references loop
--   process: references process
--   time: from when on (ns)
--   path: the NVTX range's path; null where the phase is a line
--   file: the source file of the line; null where the phase is an NVTX range
--   line: the line in it
--   function: what the line calls
create view phase_at as
with annotated as (
  select
    s.loop,
    s.process,
    a.time,
    case
      when starts_with(a.path, l.nvtx_path || ' / ') then l.nvtx_path
        || ' / '
        || split_part(substr(a.path, length(l.nvtx_path) + 4), ' / ', 1)
    end as path
  from annotation_at a
  asof join steady_interval s on a.thread = s.thread and s.start <= a.time
  join loop l on l.id = s.loop
  where a.time < s."end" and l.nvtx_path is not null
),
-- processes whose Python stacks were written beside operators only, or not at all: how long a line takes is unknown
unsampled as (
  select p.id as process
  from process p
  join input i on i.id = p.input
  where i.kind = 'torch' and p.id not in (select process from stacks_process)
),
-- loops of which ranges tell most of the time, or alone tell anything
ranged as (
  select loop
  from (
    select
      loop,
      process,
      path,
      lead(time, 1, time) over (partition by loop, process order by time) - time as ns
    from annotated
  )
  group by loop
  having coalesce(sum(ns) filter (path is not null), 0) > setting('most_share') * sum(ns)
    or bool_and(process in (select process from unsampled))
),
sampled as (
  select
    s.loop,
    s.process,
    s.start,
    y.id,
    y.time,
    y.frames
  from py_sample y
  asof join (
    select
      i.* exclude (thread),
      h.sampled as thread
    from steady_interval i
    join sampled_threads() h on h.loop = i.loop and h.process = i.process and h.thread = i.thread
  ) s on y.thread = s.thread
    and s.start <= y.time
  where y.time < s."end"
    and s.loop not in (select loop from ranged)
    and s.process not in (select process from unsampled)
),
framed as (
  select
    loop,
    id,
    unnest(user_frames(frames)) as frame,
    unnest(range(len(user_frames(frames)))) as depth
  from sampled
),
counted as (
  select
    loop,
    frame.function as function,
    frame.file as file,
    count(distinct id) as samples,
    avg(depth) as depth
  from framed
  where frame.function is not null
  group by all
),
-- the innermost function that nearly all samples of the loop are in
holder as (
  select
    c.loop,
    arg_min(struct_pack(function := c.function, file := c.file), (c.depth, c.function, c.file)) as frame
  from counted c
  join (
    select
      loop,
      count(*) as samples
    from sampled
    group by loop
  ) t on t.loop = c.loop
  where t.samples >= setting('loop_name_samples') and c.samples >= setting('loop_name_share') * t.samples
  group by c.loop
),
lined as (
  select
    s.loop,
    s.process,
    s.start,
    s.time,
    h.frame.file as file,
    s.frames,
    -- its outermost call, where it calls itself or another one of its name
    len(s.frames) + 1 - list_position(
      list_reverse(list_transform(s.frames, lambda f: f.function = h.frame.function and f.file = h.frame.file)),
      true
    ) as depth
  from sampled s
  join holder h on h.loop = s.loop
),
called as (
  select
    loop,
    process,
    start,
    time,
    file,
    frames[depth].line as line,
    coalesce(
      list_filter(list_reverse(frames[: depth - 1]), lambda f: not is_wrapper(f.function))[1].function,
      frames[depth].function
    ) as function,
    lag(time) over w as before,
    lag(frames[depth].line) over w as line_before
  from lined
  where depth is not null
  window w as (partition by loop, process, start order by time)
)
select
  loop,
  process,
  time,
  path,
  null as file,
  null as line,
  null as function
from annotated
where loop in (select loop from ranged)
union all
-- a sample speaks for the time up to half way to the next one
select
  loop,
  process,
  coalesce((before + time) // 2, start),
  null,
  file,
  line,
  mode(function) over (partition by loop, line)
from called
where line is distinct from line_before;
