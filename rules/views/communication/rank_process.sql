-- A process that took part in the same collectives as others in the captures.
-- materialised: its pairs are found once
--   process: references process
--   job: the first process of the job
--   ranks: how many of its processes were captured
--   rank_name: its rank, or where that is not known its process id
--   label: the same with the file name, where the job lies in several files
create view rank_process as
select
  j.process,
  j.job,
  count(*) over (partition by j.job) as ranks,
  coalesce('rank ' || p.rank, 'process ' || p.pid) as rank_name,
  rank_name
    || case when count(distinct p.input) over (partition by j.job) > 1 then ' (' || i.file || ')' else '' end as label
from (
  from joined_ranks(setting('min_iterations'), setting('period_match'), rank_spread_ns(), rank_clock_ns())
  where (select count(distinct o.process) from collective c join gpu_op o on o.id = c.gpu_op) > 1
) j
join process p on p.id = j.process
join input i on i.id = p.input;
