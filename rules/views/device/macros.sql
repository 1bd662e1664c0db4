-- What a GPU's link to the host moves in one direction, from pinned memory (B/s): PCIe 5, 4 or 3 with 16 lanes, by the
-- compute capability of the GPUs that came with it; null when that is not known.
create macro link_rate(cc_major) as
  case
    when cc_major >= 9 then setting('pinned_bytes_per_s')
    when cc_major >= 8 then 25e9
    when cc_major >= 6 then 12e9
  end;

-- Whether a kernel of a framework or library only copies or rearranges data. Conversions of the type do more than
-- that.
create macro moves_data(kernel_name) as
  (
    regexp_matches(
      kernel_name,
      'direct_copy_kernel_cuda|CatArrayBatchedCopy|roll_cuda_kernel|nchwToNhwcKernel|nhwcToNchwKernel|^(wrapped|loop|'
      'input)_(copy|transpose)(_fusion)?(_\d+)?$'
    )
      and not regexp_matches(kernel_name, 'LoadWithCast|StoreWithCast')
  )
    or (
      kernel_name like 'cupy\_copy\_\_%' escape '\'
        and string_split(kernel_name, '_')[4] = string_split(kernel_name, '_')[5]
    );

-- Whether a kernel belongs to a normalisation of PyTorch that works channels-first only: of groups of channels, or of
-- each channel of each image, which runs as batch normalisation of as many channels.
create macro normalises_channels_first(kernel_name) as
  regexp_matches(
    kernel_name,
    'GroupNorm|batch_norm_(collect_statistics|transform_input|backward_reduce|backward_elemt)_kernel|'
    'bn_[fb]w_tr_1C11_kernel_NCHW'
  );

-- Whether a kernel of a framework reads rows of an array that an index names.
create macro gathers_rows(kernel_name) as
  regexp_matches(kernel_name, 'vectorized_gather_kernel|index_kernel_impl|indexSelect(Large|Small)Index|^cupy_take$');

-- Whether it writes rows where an index names them, without adding anything up.
create macro scatters_rows(kernel_name) as
  regexp_matches(kernel_name, 'index_put_kernel_impl|index_copy_kernel_impl|^cupy_scatter_update$');

-- The part of the budget that a leaf of the time tree belongs to: the budget is the tree in fewer words.
create macro budget_category(leaf) as
  case leaf
    when 'computing' then 'compute'
    when 'submitting' then 'idle_launch'
    when 'dependency' then 'idle_launch'
    when 'sync' then 'idle_sync'
    when 'input' then 'idle_input'
    when 'allocating' then 'idle_allocation'
    when 'exposed_communication' then leaf
    when 'exposed_copy' then leaf
    else 'idle_other'
  end;
