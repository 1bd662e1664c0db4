-- Where cProfile saw the host's time: a Python function with the built-in functions that it calls.
-- materialised: read by the rule about it and by the report
--   cpu_function: references cpu_function
--   file: source file
--   line: its first line
--   function: its name
--   calls: how often it was called
--   own_ns: time in itself and in built-in functions that it called, without known waits (ns)
--   builtin_ns: of that, time in built-in functions (ns)
--   waiting_ns: beside that, time in built-in functions that wait: for locks, files, libraries, other processes, the
--    GPU (ns)
--   builtin: the built-in function that it spent most time in; null where it called none
--   total_ns: time that the profile holds in all (ns)
--   share: own_ns of that, 0 to 1; null where the profile holds no time
--   library: whether it belongs to Python or an installed package
create view python_function_time as
with call as (
  select
    unnest(callers) as caller,
    unnest(callers_ns) as ns,
    function,
    regexp_matches(
      function,
      '\b(acquire|sleep|poll|select|recv|recv_into|accept|wait|waitpid|read|readinto|'
      'dlopen|exec_dynamic|create_dynamic|item|cpu|tolist|numpy)\b|'
      'ynchronize|''get'' of ''cupy'
    ) as waits
  from cpu_function
  where file = '~'
),
builtin as (
  select
    caller,
    coalesce(sum(ns) filter (where not waits), 0) as builtin_ns,
    coalesce(sum(ns) filter (where waits), 0) as waiting_ns,
    arg_max(function, ns) filter (where not waits and ns > 0) as builtin
  from call
  group by caller
)
select
  f.id as cpu_function,
  f.file,
  f.line,
  f.function,
  f.calls,
  cast(f.self_ns + coalesce(b.builtin_ns, 0) as bigint) as own_ns,
  cast(coalesce(b.builtin_ns, 0) as bigint) as builtin_ns,
  cast(coalesce(b.waiting_ns, 0) as bigint) as waiting_ns,
  b.builtin,
  cast(t.total_ns as bigint) as total_ns,
  (f.self_ns + coalesce(b.builtin_ns, 0)) / nullif(t.total_ns, 0) as share,
  regexp_matches(f.file, '(site|dist)-packages|[/\\][lL]ib[/\\]python\d|^<frozen ') as library
from cpu_function f
join (
  select
    input,
    sum(self_ns) as total_ns
  from cpu_function
  group by input
) t using (input)
left join builtin b on b.caller = f.id
where f.file <> '~' and not starts_with(f.file, '<frozen importlib');
