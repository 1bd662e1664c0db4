-- Whether an operating system call waits for another thread or process.
create macro waits_for_others(f) as
  f in (
    'poll',
    'ppoll',
    'select',
    'pselect',
    'epoll_wait',
    'epoll_pwait',
    'epoll_pwait2',
    'futex',
    'pthread_cond_wait',
    'pthread_cond_timedwait',
    'pthread_cond_clockwait',
    'pthread_join',
    'pthread_timedjoin_np',
    'sem_wait',
    'sem_timedwait',
    'sem_clockwait'
  );

-- Whether an operating system call receives from a socket.
create macro receives_data(f) as f in ('recv', 'recvfrom', 'recvmsg', 'recvmmsg');

-- Whether an operating system call reads from a file or a socket. A plain `read` may as well wait for another process
-- at a pipe.
create macro reads_data(f) as
  receives_data(f)
    or f in (
      'readv',
      'pread',
      'pread64',
      'preadv',
      'preadv64',
      'preadv2',
      'preadv64v2',
      'fread',
      'fread_unlocked',
      'fgets',
      'fgets_unlocked',
      'getline',
      'aio_suspend',
      'aio_suspend64',
      'io_getevents'
    );

-- Whether an operating system call shows that its thread deals with files, so that its plain reads are no pipe's.
create macro handles_files(f) as
  f in (
    'open',
    'open64',
    'openat',
    'openat64',
    'fopen',
    'fopen64',
    'lseek',
    'lseek64',
    'fseek',
    'fseeko',
    'fseeko64',
    'stat',
    'stat64',
    'fstat',
    'fstat64',
    'lstat',
    'lstat64'
  );

-- Whether an operating system call writes a file.
create macro writes_file(f) as regexp_matches(f, 'write|fclose|fflush|sync');

-- Whether an operating system call starts a process, as a data loader does for each of its workers.
create macro starts_process(f) as regexp_matches(f, '^(v?fork|posix_spawnp?)$');

-- Whether a Python stack (frames, innermost first) was where PyTorch's data loader begins an epoch, or draws the order
-- of the items: the thread that asks for batches does both, whoever loads them.
create macro orders_items(frames) as
  len(
    list_filter(
      frames,
      lambda f: (f.function in ('_reset', '__init__') and ends_with(f.file, '/torch/utils/data/dataloader.py'))
        or ends_with(f.file, '/torch/utils/data/sampler.py')
    )
  ) > 0;
