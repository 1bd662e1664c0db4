-- A program that XLA compiled more than once inside a loop, by the name that it gave it: `jit_` and the function's.
--   loop: references loop
--   function: the function that was compiled
--   times: how often
--   ns: how long, all together (ns)
create view compiled_program as
select
  s.loop,
  regexp_extract(n.text, '^XlaCompile:#module=(?:p?jit_)?_*(\w+)', 1) as function,
  count(*) as times,
  sum(r."end" - r.start) as ns
from (select * from nvtx_range where name in (select id from name where starts_with(text, 'XlaCompile:#module='))) r
join name n on n.id = r.name
asof join steady_interval s on r.thread = s.thread and s.start <= r.start
where r.start < s."end"
group by all
having count(*) > 1;
