-- What follows from the logs of nvidia-smi that were given, taken together.
--   name: the capability
--   state: recorded or not_recorded
create view smi_evidence as
select
  'smi_load' as name,
  if(exists (from smi_gpu where loaded >= setting('smi_min_readings')), 'recorded', 'not_recorded') as state
union all
select
  'smi_max_clocks' as name,
  if(exists (from smi_gpu where max_clock is not null), 'recorded', 'not_recorded') as state
union all
select
  'smi_total_memory' as name,
  if(exists (from smi_gpu where total_bytes is not null), 'recorded', 'not_recorded') as state;
