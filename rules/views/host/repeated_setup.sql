-- A call that makes, destroys or asks for something that a program needs once, inside a loop.
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   thing: stream, event, device property, FFT plan or loaded code
create view repeated_setup as
with kept as (
  select
    text as name,
    case
      when regexp_matches(text, '^(cuda|cu)Stream(Create|Destroy)') then 'stream'
      when regexp_matches(text, '^(cuda|cu)Event(Create|Destroy)') then 'event'
      when regexp_matches(text, '^cudaGetDeviceProperties|^(cuda|cu)MemGetInfo') then 'device property'
    end as thing
  from api_name
  where kind = 'other'
),
-- plans are made in a library, between calls: only the Python stack tells
planning as (
  select distinct
    s.thread,
    s.id
  from py_sample y
  asof join call s on y.thread = s.thread and y.time <= s."end"
  where y.time >= s.segment_start
    and contains(y.frames[1].file, 'cupy')
    and (
      -- the next one runs the plan as well
      regexp_matches(y.frames[1].function, '^(_get_cufft_plan_nd|get_fft_plan)$')
        or y.frames[1].function = '_exec_fft'
        and s.start - s.segment_start >= setting('host_work_ns')
    )
),
-- making one takes several calls: all those from one launch to the next belong together
between as (
  select
    c.id,
    c.thread,
    c.loop,
    c.iteration,
    sum(case when c.kind in ('launch', 'graph_launch') then 1 else 0 end)
      over (partition by c.thread order by c.seq rows between unbounded preceding and 1 preceding)
      as launches
  from call c
  where c.thread in (select thread from planning)
),
planned as (
  select
    id,
    loop,
    iteration
  from between
  where (thread, coalesce(launches, 0)) in (
    select
      thread,
      coalesce(launches, 0)
    from between
    where id in (select id from planning)
  )
),
-- Code that is unloaded in the iterations that load it belongs to a plan, a handle or a module that is made each
-- time: what a compiler makes stays, but for JAX, which unloads what it compiled for a function that is gone, and
-- cuDNN, which unloads the kernels that it tried. All calls of such a stretch serve it, also those that allocate its
-- memory.
reloading as (
  select
    loop,
    iteration,
    thread
  from call
  where regexp_matches(name, '^cu(da)?(Module|Library)(Load|Unload)')
    and not exists (from framework_seen where framework = 'jax')
    and loop not in (select loop from loaded_code where cudnn_ns >= setting('most_share') * ns)
  group by loop, iteration, thread
  having 2 * count(*) filter (contains(name, 'Unload')) >= count(*) filter (not contains(name, 'Unload'))
    and count(*) filter (not contains(name, 'Unload')) > 0
),
followed as (
  select
    c.id,
    c.loop,
    c.iteration,
    c.thread,
    c.seq,
    c.name,
    c.kind,
    c."end" - c.start as ns,
    -- what is uploaded right after code was loaded are its constants
    c.kind = 'copy'
      and coalesce(
        regexp_matches(lag(c.name) over (partition by c.thread order by c.seq), '^cu(da)?(Module|Library)Load'),
        false
      ) as constants
  from call c
  where (c.loop, c.iteration, c.thread) in (from reloading)
),
stretched as (
  select
    id,
    loop,
    iteration,
    thread,
    name,
    -- destroying a handle waits for the whole GPU, again and again, when unloading its code has waited already
    kind in ('launch', 'graph_launch', 'copy', 'set', 'sync')
      and not constants
      and not (regexp_matches(name, '^(cudaDevice|cuCtx)Synchronize') and ns < setting('host_work_ns')) as ends,
    count_if(ends) over (partition by thread order by seq) as stretch
  from followed
),
remade as (
  select
    id,
    loop,
    iteration
  from stretched
  where not ends
    and (thread, stretch) in (
      select
        thread,
        stretch
      from stretched
      where regexp_matches(name, '^cu(da)?(Module|Library)(Load|Unload)')
    )
    and id not in (select id from planned)
)
select
  c.id as api_call,
  c.loop,
  c.iteration,
  k.thing
from call c
join kept k on k.name = c.name
where k.thing is not null and c.id not in (select id from planned union all select id from remade)
union all
select
  id,
  loop,
  iteration,
  'FFT plan'
from planned
union all
select
  id,
  loop,
  iteration,
  'loaded code'
from remade;
