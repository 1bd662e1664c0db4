-- What kind of call a CUDA function is: launch, graph_launch, sync, copy, set, alloc, free, pool (stream-ordered
-- allocation), host_alloc, load (modules, libraries, graphs being built, run-time compilation), context, other.
create macro api_kind(f) as
  case
    when regexp_matches(f, '^(cudaLaunch(Cooperative)?Kernel|cuLaunch(Cooperative)?Kernel|cuLaunchGrid|cudaLaunch$)')
      then 'launch'
    when regexp_matches(f, '^(cuda|cu)GraphLaunch') then 'graph_launch'
    when regexp_matches(f, '^(cuda(Device|Stream|Event|Thread)|cu(Ctx|Stream|Event))Synchronize') then 'sync'
    when regexp_matches(f, '^(cuda|cu)Memcpy') then 'copy'
    when regexp_matches(f, '^(cuda|cu)Memset') then 'set'
    when regexp_matches(f, '^(cuda(MallocAsync|MallocFromPoolAsync|FreeAsync)|cuMem(Alloc|AllocFromPool|Free)Async)')
      then 'pool'
    when regexp_matches(
      f,
      '^(cuda(HostAlloc|MallocHost|FreeHost|HostRegister|HostUnregister)|cuMem(HostAlloc|AllocHost|'
      'FreeHost|HostRegister|HostUnregister))'
    ) then 'host_alloc'
    when regexp_matches(f, '^(cudaMalloc|cuMemAlloc|cuMemCreate|cuMemMap)') then 'alloc'
    when regexp_matches(f, '^(cudaFree|cuMemFree|cuMemUnmap|cuMemRelease)') then 'free'
    when regexp_matches(
      f,
      '^(cuModule(Load|Unload)|cuLibrary(Load|Unload)|cuLink|cudaLibraryLoad|(cuda|'
      'cu)Graph(Instantiate|ExecDestroy|Create|Destroy|ExecUpdate)|(cuda|cu)Stream(Begin|End)Capture|'
      'nvrtc)'
    ) then 'load'
    when regexp_matches(
      f,
      '^(cuInit|cuCtxCreate|cuCtxDestroy|cuDevicePrimaryCtx(Retain|Release|Reset)|cudaSetDevice|'
      'cudaDeviceReset|cudaInitDevice)'
    ) then 'context'
    else 'other'
  end;

-- Whether a CUDA function records or builds a graph.
create macro builds_graph(f) as
  regexp_matches(f, '^(cuda|cu)(Graph(Instantiate|Create|ExecUpdate)|Stream(Begin|End)Capture)');

-- Whether a CUDA function loads or compiles kernels.
create macro loads_code(f) as regexp_matches(f, '^(cuModuleLoad|cuLibraryLoad|cudaLibraryLoad|cuLink|nvrtcCompile)');

-- Whether a kernel of this short name exchanges data with other GPUs: NCCL's; NVSHMEM's; those by which vLLM and SGLang
-- (cross_device_reduce), PyTorch (multimem, one_shot_all_reduce), TensorRT-LLM and FlashInfer (oneShotAllReduceKernel,
-- allreduce_fusion_kernel) and Transformer Engine (userbuffers) reduce on all ranks at once.
create macro exchanges_data(kernel_name) as
  regexp_matches(
    kernel_name,
    '^(nccl(Dev)?Kernel|ncclSymk|nccl_|nvshmemi?_|k?userbuffers_|cross_device_reduce_|'
      || 'multimem_(one_shot_)?all_(reduce|gather)|(\w+_)?allreduce_fusion_kernel_(one|two)shot|'
      || '(lamport_style_)?([oO]ne|[tT]wo)_?[sS]hot_?[aA]ll_?[rR]educe)'
  );

-- What a GPU operation counts as in the time budget: communication (between GPUs), copy (copies and sets), compute (the
-- rest).
create macro op_class(kind, kernel_name) as
  case
    when kind in ('memcpy', 'memset') then 'copy'
    when kernel_name is not null and exchanges_data(kernel_name) then 'communication'
    else 'compute'
  end;

-- An NVTX message without the numbers that only say which iteration it is: step_0, Iteration 12, "batch 3/100",
-- "steps 10 to 20".
create macro range_label(message) as
  coalesce(
    nullif(
      regexp_replace(
        regexp_replace(message, '[\s_:#=\.\[(-]*\d+(\s*(/|of)\s*\d+)?[\])]*$', ''),
        '(^|[\s:=#(\[])\d+\b',
        '\1#',
        'g'
      ),
      ''
    ),
    message
  );

-- Whether an NVTX message names the fetching of input. `decode` alone does not: language models decode tokens.
create macro names_input(message) as
  regexp_matches(
    lower(message),
    '(^|[^a-z])(data|input|batch|sample|dataset)?[ _.:/]?(load|loader|loading|fetch|next|wait|'
    'prefetch|read|collate|augment)(ing|er)?[ _.:/]?(data|input|batch|sample)?s?([^a-z]|$)|dataload|'
    '^data$|^input$'
      || '|decod(e|ing|er)[ _.:/]?(data|input|batch|sample|image|jpeg|video|audio)'
  )
    -- `next_token`, `load_weights` and `wait_for_allreduce` are about something else
    and not regexp_matches(
      lower(message),
      '(^|[^a-z])(all_?(2|to)_?all|all_?reduce|all_?gather|reduce_?scatter|halo|weights?|tokens?|layers?|kv)([^a-z]|$)'
    );

-- Whether an NVTX message is a framework's own annotation of one operator, not a mark of the program.
create macro names_operator(message) as
  regexp_matches(message, ', (op_id|seq) = \d+|^(aten|torch|autograd|onnx)::|^\{''(mod|traceMarker)''');

-- Whether an annotation is the step of torch.profiler, which says itself what an iteration is.
create macro names_profiler_step(message) as regexp_matches(message, '^ProfilerStep#?\d*$');

-- Whether an annotation is one that PyTorch makes by itself, of a part of an iteration.
create macro names_framework_phase(message) as
  regexp_matches(
    message,
    '^(nccl:|c10d::|enumerate\(DataLoader\)|Optimizer\.|## .* ##$|DistributedDataParallel\.|FSDP::|'
    'FullyShardedDataParallel\.|autograd::|Torch-Compiled Region)'
  );

-- Whether a file belongs to a data loader.
create macro is_data_loader(file) as
  regexp_matches(
    file,
    'torch/utils/data/(dataloader|_utils/)|torchdata/|tensorflow/python/data|nvidia/dali|grain/|'
    'webdataset/|datasets/iterable_dataset'
  );

-- Whether a Python file belongs to a compiler.
create macro is_compiler(file) as
  regexp_matches(
    file,
    'jax/_src/(compiler|interpreters/(mlir|pxla))|torch/_(dynamo|inductor)/|triton/(compiler|runtime/jit)|'
    'numba/core/(compiler|typeinfer|lowering|codegen)|numba/cuda/(compiler|codegen)|cupy/cuda/compiler'
  );

-- Whether a Python function only calls another one that says more: decorators, hooks and dispatch of frameworks.
create macro is_wrapper(function) as
  regexp_matches(function, '^(_.*|<.*|wrapp(er|ed)(_.*|)|inner|decorate_.*|profile_hook_.*|.*_impl|__call__)$');

-- Whether a Python file is one in whose functions threads wait without the interpreter lock: for one another, for a
-- queue or a socket, or for the threads of PyTorch's backward pass.
create macro is_waiting_file(file) as
  regexp_matches(
    file,
    '/(threading|queue|selectors|socket|subprocess|multiprocessing/(connection|popen_fork)|torch/autograd/graph)\.py$'
  );

-- Whether a Python file is the user's own code: no installed package, nor the standard library.
create macro is_user_file(file) as
  coalesce(not regexp_matches(file, '/(site|dist)-packages/|/lib/python3|^<|^$|importlib'), false);

-- The frames of a Python stack that are the user's own code.
create macro user_frames(frames) as list_filter(frames, lambda f: is_user_file(f.file));

-- Whether a Python function yields the next item or batch, by Python's protocols or by the name it is given in loaders.
create macro yields_input(function) as
  regexp_matches(function, '^(__(iter|next|getitem|getitems)__|collate(_fn)?|(next|get|load|fetch)_batch)$');

-- Whether the name of a function says that it hands results out: it saves, writes or exports them.
create macro hands_out(function) as
  coalesce(
    regexp_matches(function, '(^|_)(save|write|dump|export|snapshot|checkpoint|compress|print)(_|s?$)')
      and not regexp_matches(function, '(^|_)(load|read|next|get|fetch|restore)(_|$)'),
    false
  );

-- Whether the name of an NVTX range says that files are read or written in it, or that results are handed out.
create macro names_output(label) as
  coalesce(regexp_matches(lower(label), '(^|[^a-z])(i/?o|output|write|save|dump|export)([^a-z]|$)'), false);

-- Whether a Python stack (frames, innermost first) writes a file: in a function of a library that is called so, or in
-- one of the user's own.
create macro writes_files(frames) as
  len(
    list_filter(
      frames,
      lambda f: regexp_matches(
        f.function,
        '^(save(z|z_compressed|txt|fig)?|im(write|save)|dump|tofile|to_(csv|excel|hdf|json|parquet|pickle)|write\w*)$'
      )
        and not is_user_file(f.file)
    )
  ) > 0
    or (
      hands_out(user_frames(frames)[1].function)
        and not regexp_matches(user_frames(frames)[1].function, '(checkpoint|snapshot|compress)s?$')
    );

-- Whether a Python stack waits for an item that another thread or process makes: at a queue, a pool or a future. What
-- saves or writes waits there for room, which a writer gives back.
create macro waits_for_item(frames) as
  len(
    list_filter(
      frames,
      lambda f: f.function in ('get', 'next', 'result', 'result_iterator', 'as_completed')
        and regexp_matches(f.file, '/(queue|concurrent/futures/_base|multiprocessing/(queues|pool))\.py$')
    )
  ) > 0
    and not hands_out(user_frames(frames)[1].function);

-- Whether a Python stack (frames, innermost first) waits, outside data loaders, for what the program gave a pool of
-- threads or processes to do.
create macro waits_for_result(frames) as
  waits_for_item(frames)
    and len(
      list_filter(
        frames,
        lambda f: is_data_loader(f.file) or regexp_matches(f.file, '/(queue|multiprocessing/queues)\.py$')
      )
    ) = 0
    and not coalesce(yields_input(user_frames(frames)[1].function), false);

-- Whether a call puts a function of the host's into a stream, which goes on when that has returned.
create macro queues_host_function(name) as regexp_matches(name, '^(cuda|cu)(LaunchHostFunc|StreamAddCallback)');

-- Whether a Python stack (frames, innermost first) was inside a data loader: a library's, or the user's own, in whose
-- function the innermost frame of the user's lies; or waits for an item.
create macro in_data_loader(frames) as
  len(list_filter(frames, lambda f: is_data_loader(f.file))) > 0
    or coalesce(yields_input(user_frames(frames)[1].function), false)
    or waits_for_item(frames);

-- The user's own frame that called the outermost data loader of a Python stack; null outside data loaders.
create macro loader_entry(frames) as
  case
    when in_data_loader(frames) then user_frame(
      frames[
        len(frames) - list_position(
          list_reverse(list_transform(frames, lambda f: coalesce(is_data_loader(f.file), false))),
          true
        ) + 2 :
      ]
    )
  end;

-- The user's own frame that called PyTorch's activation checkpointing (frames, innermost first); null elsewhere.
create macro checkpoint_caller(frames) as
  case
    when len(list_filter(frames, lambda f: ends_with(f.file, '/torch/utils/checkpoint.py'))) > 0 then user_frame(
      frames[
        len(frames) - list_position(
          list_reverse(
            list_transform(frames, lambda f: coalesce(ends_with(f.file, '/torch/utils/checkpoint.py'), false))
          ),
          true
        ) + 2 :
      ]
    )
  end;

-- Whether a stack was taken while Python wrote down the stack itself, as for a later message of an error.
create macro writes_traceback(frames) as
  len(list_filter(frames, lambda f: regexp_matches(f.file, '(^|[/\\])traceback\.py$'))) > 0;

-- Whether a Python stack was inside torch.compile as it compiles, or as it records CUDA graphs of what it compiled.
create macro records_graphs(frames) as
  len(
    list_filter(
      frames,
      lambda f: regexp_matches(
        f.file,
        '[/\\]torch[/\\](_inductor[/\\]cudagraph|_dynamo[/\\](convert_frame|backends))'
      )
    )
  ) > 0;

-- Whether a Python stack was inside a function that empties a framework's memory pool.
create macro empties_pool(frames) as
  len(list_filter(frames, lambda f: f.function in ('empty_cache', 'free_all_blocks'))) > 0;

-- The innermost of these.
create macro user_frame(frames) as user_frames(frames)[1];

-- The innermost function of the user's own that has a name: not `<module>`, `<lambda>` or `<genexpr>` where there is
-- another.
create macro user_function(frames) as
  coalesce(
    list_filter(user_frames(frames), lambda f: not starts_with(f.function, '<'))[1].function,
    user_frame(frames).function
  );

-- Whether a Python stack was inside Triton's autotuner, as it measures the configurations of a kernel.
create macro tunes_kernels(frames) as
  len(
    list_filter(
      frames,
      lambda f: f.function = '_bench' and regexp_matches(f.file, 'triton[/\\]runtime[/\\]autotuner\.py$')
    )
  ) > 0;

-- The stretches in which Triton's autotuner measures configurations, by its samples: thread, start, end, and the place
-- (function, file and line) of the user's own that called the kernel.
create macro tuning_stretches() as table
with sampled as (
  select
    thread,
    time,
    frames,
    tunes_kernels(frames) as tunes,
    lead(time, 1, time) over (partition by thread order by time) as until
  from py_sample
),
-- a thread that has nothing to do may not be sampled for long: the stretch ends where its next sample would be due
numbered as (
  select
    *,
    median(until - time) filter (tunes) over (partition by thread) as period_ns,
    count_if(not tunes) over (partition by thread order by time) as others
  from sampled
  where thread in (select s.thread from sampled s where s.tunes)
)
select
  thread,
  min(time) as start,
  max(least(until, time + cast(period_ns as bigint))) as "end",
  mode(
    {'function': user_function(frames),
    'file': user_frame(frames).file,
    'line': user_frame(frames).line} order by time
  ) filter (user_frame(frames) is not null) as place
from numbered
where tunes
group by thread, others;

-- In how many of its iterations a loop does something: every, most or some; null where nothing repeats.
create macro how_often(iterations_with, iterations) as
  case
    when iterations <= 1 then null
    when iterations_with >= setting('every_share') * iterations then 'every'
    when iterations_with >= setting('most_share') * iterations then 'most'
    else 'some'
  end;

-- Whether a text (a kernel's full name, or the innermost label of an NVTX range) speaks of a norm, a dot product, a
-- distance or a test for convergence: what an iterative solver compares with its tolerance. Normalisation layers do not
-- count.
create macro names_convergence(message) as
  regexp_matches(
    message,
    '(?i)converg|residu|tolerance|nrm2|l2_?norm|vector_?norm|norm_?l2|(^|void |::)(norm|max_?diff|'
    'max_?error|error_?norm|distance)(_?kernel)?[(<]'
  )
    or regexp_matches(message, 'Norm(Two|One)?Ops|AbsMaxOps|^cupy_sqrt__|reduce_1Block_kernel');

-- Whether a kernel's full name says that it computes gradients.
create macro names_gradient(name) as coalesce(regexp_matches(name, '(?i)backward|dgrad|wgrad'), false);

-- Whether a text (a kernel's full name, or an NVTX path) tells that a model is trained: what is read back there is a
-- metric.
create macro names_training(message) as
  regexp_matches(
    message,
    '(?i)backward|optimi[sz]er|multi_tensor_apply|adam|(^|[^a-z])sgd|nll_loss|cross_?entropy|softmax|'
    'dgrad|wgrad|(^|[^a-z])train|epoch'
  );

-- Whether a thread waits for Python's interpreter lock in it: CPython does so with a timeout, and nsys may mark it.
create macro waits_for_interpreter(f) as
  f = 'pthread_cond_timedwait' or regexp_matches(lower(f), '^waiting for (the )?gil');

-- Whether a call of the operating system sleeps for a fixed time.
create macro sleeps_in(f) as regexp_matches(f, '^(clock_nanosleep|nanosleep|usleep|sleep)$');

-- Whether a CUDA function asks whether the GPU is done, without waiting for it.
create macro asks_if_done(f) as regexp_matches(f, '^(cuda|cu)(Event|Stream)Query');
