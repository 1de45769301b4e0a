/**
 * Arguments that make QEMU write every event to a file, without a client: a QMP monitor on a null
 * chardev with a log file. The null chardev never opens, so QEMU skips QMP negotiation. This works
 * on QEMU 7.2 and 10.0, but is documented nowhere: a `VmMonitor` warns if it does not work.
 *
 * @param path one file for each start, or one for all: QEMU appends
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
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
 * Arguments that make a QEMU with `-daemonize` log which signal it obeys, and from whom. Without
 * `-daemonize`, it writes that to stderr.
 *
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
 */
export function logArguments(path: string): string[] {
  return ['-D', path];
}
