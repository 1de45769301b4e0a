/**
 * What a service manager tells one process alone: sd_notify(3), sd_listen_fds(3),
 * sd_pidfd_get_inode_id(3). A child that had it would speak in our place.
 */
const OURS_ALONE = [
  ...['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'FDSTORE', 'MAINPID'],
  ...['LISTEN_FDS', 'LISTEN_PID', 'LISTEN_PIDFDID', 'LISTEN_FDNAMES'],
];

/** Our environment, as our children may have it. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  const given = { ...process.env };
  for (const name of OURS_ALONE) Reflect.deleteProperty(given, name);
  return given;
}
