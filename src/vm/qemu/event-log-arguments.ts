/**
 * Arguments for QEMU, by which it writes every event to a file by itself, without a client: a monitor on
 * a null device that is logged. It never opens, so that it never waits for the negotiation that it would
 * want of a client. Seen to work on QEMU 7.2 and 10.0, and documented nowhere: a `VmMonitor` looks
 * whether it does, and says so.
 *
 * @param path one file for each start, or one for all: QEMU appends
 */
export function eventLogArguments(path: string): string[] {
  const file = path.replaceAll(',', ',,');
  return [
    '-chardev',
    `null,id=exitwatch-events,logfile=${file},logappend=on`,
    '-mon',
    'chardev=exitwatch-events,mode=control',
  ];
}

/**
 * Arguments for QEMU, by which it writes to a file which signal it obeys, and from whom: with
 * `-daemonize`. Without, it writes that to its stderr.
 */
export function logArguments(path: string): string[] {
  return ['-D', path];
}
