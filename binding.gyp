{
  'variables': {'sanitize%': 0},
  'targets': [
    {
      'target_name': 'exitwatch',
      'conditions': [
        ['OS=="linux"', {
          'sources': [
            'native/core/bpf_assembler.cc',
            'native/core/btf.cc',
            'native/core/ended_groups.cc',
            'native/core/exit_filter.cc',
            'native/core/group_filter.cc',
            'native/core/group_inspection.cc',
            'native/core/kernel_layout.cc',
            'native/core/proc_event.cc',
            'native/core/proc_stat.cc',
            'native/core/record_queue.cc',
            'native/core/thread_group.cc',
            'native/core/thread_group_aggregator.cc',
            'native/core/watch_set.cc',
            'native/linux/bpf_syscall.cc',
            'native/linux/bpf_permission.cc',
            'native/linux/canary.cc',
            'native/linux/connector_socket.cc',
            'native/linux/connector_stream.cc',
            'native/linux/descriptor_limit.cc',
            'native/linux/exit_reader.cc',
            'native/linux/exit_reader_repair.cc',
            'native/linux/exit_record.cc',
            'native/linux/group_aware_filter.cc',
            'native/linux/kernel_clock.cc',
            'native/linux/kernel_types.cc',
            'native/linux/known_processes.cc',
            'native/linux/linux_witness.cc',
            'native/linux/namespaces.cc',
            'native/linux/pidfd.cc',
            'native/linux/pidfd_set.cc',
            'native/linux/proc_files.cc',
            'native/linux/ring_buffer.cc',
            'native/linux/second_look.cc',
            'native/linux/silence_detector.cc',
            'native/linux/watched_processes.cc',
            'native/napi/addon.cc',
            'native/napi/exit_reader_object.cc',
          ],
          'include_dirs': ['native', '<!(node -p "require(\'node-addon-api\').include_dir")'],
          'defines': [
            'NAPI_VERSION=8',
            'NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS',
            # A Worker that is being terminated takes no exceptions any more: not a reason to abort.
            'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
          ],
          'cflags': ['-Wall', '-Wextra', '-fvisibility=hidden'],
          'cflags_cc': ['-std=c++17'],
          'conditions': [
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
