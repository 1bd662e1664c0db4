-- A kernel of a backward pass that computes again what the forward pass has computed: PyTorch launches its backward
-- pass from a thread of its own, and this kernel is one of six or more that this thread launched in the same order as
-- another one, from which the program's first kernel came.
-- materialised: read twice by its rule, and a window over all kernels of such a loop
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   thread: the thread that launched it again (references thread)
--   api_call: the call that started it
--   duration_ns: how long it ran (ns)
--   of_thread: what such kernels take of the time of all kernels that its thread launched
create view recomputed_op as
with launching as (
  select distinct
    c.process,
    c.thread
  from analysed_api_call c
  join api_name k on k.id = c.name
  where k.kind = 'launch'
),
-- most programs launch from one thread, and need no window over their kernels
several as (
  select process
  from launching
  group by process
  having count(*) > 1
),
-- the first launch of a program is no backward pass's
first as (
  select
    c.process,
    arg_min(c.thread, (c.start, c.id)) as thread
  from api_call c
  join api_name k on k.id = c.name
  where k.kind = 'launch' and c.process in (select process from several)
  group by c.process
),
kernel as (
  select
    w.op,
    w.loop,
    w.iteration,
    w.duration_ns,
    w.api_call,
    c.thread,
    c.thread = t.thread as forward,
    c.start as called,
    hash(o.name, o.grid, o.block) as what
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join first t on t.process = o.process
  join analysed_api_call c on c.id = w.api_call
  where w.class = 'compute' and w.kind = 'kernel'
),
sequence as (
  select
    *,
    hash(
      what,
      lead(what, 1) over following,
      lead(what, 2) over following,
      lead(what, 3) over following,
      lead(what, 4) over following,
      lead(what, 5) over following
    ) as six
  from kernel
  window following as (partition by loop, thread order by called, op)
),
computed as (
  select distinct
    loop,
    six
  from sequence
  where forward
),
compared as (
  select
    s.*,
    max(if(f.six is null, 0, 1))
      over (partition by s.loop, s.thread order by s.called, s.op rows between 5 preceding and current row)
      as again
  from sequence s
  left join computed f on f.loop = s.loop and f.six = s.six
  where not s.forward
),
shared as (
  select
    *,
    cast(sum(duration_ns * again) over (partition by loop, thread) as double)
      / sum(duration_ns) over (partition by loop, thread) as of_thread
  from compared
)
select
  op,
  loop,
  iteration,
  thread,
  api_call,
  duration_ns,
  of_thread
from shared
where again = 1;
