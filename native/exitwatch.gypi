{
  'variables': {'sanitize%': 0, 'portable%': 0},
  'targets': [
    {
      'target_name': 'exitwatch',
      'conditions': [
        ['OS=="linux"', {
          'sources': [
            'core/bpf_assembler.cc',
            'core/btf.cc',
            'core/ended_groups.cc',
            'core/exit_filter.cc',
            'core/group_filter.cc',
            'core/group_inspection.cc',
            'core/kernel_layout.cc',
            'core/proc_event.cc',
            'core/proc_stat.cc',
            'core/record_queue.cc',
            'core/thread_group.cc',
            'core/thread_group_aggregator.cc',
            'core/watch_set.cc',
            'linux/bpf_syscall.cc',
            'linux/bpf_permission.cc',
            'linux/canary.cc',
            'linux/connector_socket.cc',
            'linux/connector_stream.cc',
            'linux/descriptor_limit.cc',
            'linux/exit_reader.cc',
            'linux/exit_reader_repair.cc',
            'linux/exit_record.cc',
            'linux/group_aware_filter.cc',
            'linux/kernel_clock.cc',
            'linux/kernel_types.cc',
            'linux/known_processes.cc',
            'linux/linux_witness.cc',
            'linux/namespaces.cc',
            'linux/pidfd.cc',
            'linux/pidfd_set.cc',
            'linux/proc_files.cc',
            'linux/ring_buffer.cc',
            'linux/second_look.cc',
            'linux/silence_detector.cc',
            'linux/timeliness.cc',
            'linux/watched_processes.cc',
            'napi/addon.cc',
            'napi/exit_reader_object.cc',
          ],
          'include_dirs': ['.', '<!(node -p "require(\'node-addon-api\').include_dir")'],
          'defines': [
            'NAPI_VERSION=8',
            'NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS',
            # A Worker that is being terminated takes no exceptions any more: not a reason to abort.
            'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
          ],
          'cflags': ['-Wall', '-Wextra', '-fvisibility=hidden'],
          'cflags_cc': ['-std=c++17'],
          'conditions': [
            ['portable==1', {
              'cflags': ['-include', '<(module_root_dir)/native/linux/old_glibc.h'],
            }],
            # See scripts/test-asan.mjs.
            ['sanitize==1', {
              'cflags': ['-fsanitize=address,undefined', '-fno-omit-frame-pointer', '-g'],
              'ldflags': ['-fsanitize=address,undefined'],
            }],
          ],
        }, {
          # Elsewhere there is nothing to compile: polling needs no addon.
          'type': 'none',
        }],
      ],
    },
  ],
}
