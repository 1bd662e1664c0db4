-- A kernel of a backward pass that computes again what the forward pass has computed: PyTorch launches its backward
-- pass from a thread of its own, which it names, and this kernel is one of six or more that this thread launched in the
-- same order as another one.
-- materialised: two windows over all kernels of such a loop
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   thread: the thread that launched it again (references thread)
--   api_call: the call that started it
--   duration_ns: how long it ran (ns)
--   of_thread: what such kernels take of the time of all kernels that its thread launched
create view recomputed_op as
with backward as (
  select id from thread where runs_backward(name)
),
kernel as (
  select
    w.op,
    w.loop,
    w.iteration,
    w.duration_ns,
    w.api_call,
    c.thread,
    c.thread not in (from backward) as forward,
    c.start as called,
    hash(o.name, o.grid, o.block) as what
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join analysed_api_call c on c.id = w.api_call
  where w.class = 'compute'
    and w.kind = 'kernel'
    and o.process in (select process from thread where id in (from backward))
),
followed as (
  select
    *,
    [
      what,
      lead(what, 1) over following,
      lead(what, 2) over following,
      lead(what, 3) over following,
      lead(what, 4) over following,
      lead(what, 5) over following
    ] as six
  from kernel
  window following as (partition by loop, thread order by called, op)
),
-- the same kernel launched over and over has no order that another thread could repeat
sequence as (
  select
    * exclude (six),
    if(
      len(list_filter(six, lambda k: k is null)) > 0 or list_unique(six) < setting('recomputed_kinds'),
      null,
      hash(six)
    ) as six
  from followed
),
computed as (
  select distinct
    loop,
    six
  from sequence
  where forward and six is not null
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
