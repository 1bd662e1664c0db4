-- The largest loop in which the GPU waits for the host for a good part of the time.
--   loop: references loop
--   host_share: part of the loop's time in which the GPU waits for launches, input or other work of the host, 0 to 1
create view host_bound_loop as
select
  b.loop,
  sum(b.share) as host_share
from loop_budget b
join loop_facts f using (loop)
where b.category in ('idle_launch', 'idle_input', 'idle_allocation', 'idle_other')
group by b.loop, f.total_ns
having sum(b.share) >= setting('min_host_bound')
qualify row_number() over (order by f.total_ns desc, b.loop) = 1;
