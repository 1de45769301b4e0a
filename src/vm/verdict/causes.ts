import type { Cause } from './vm-verdict.js';

/** Causes after which the process exits with 0. */
export const ORDERLY: readonly Cause[] = [
  'guest-shutdown',
  'guest-hibernate',
  'admin-powerdown',
  'watchdog-powerdown',
  'other-powerdown',
  'guest-reboot',
  'guest-panic',
  'guest-watchdog',
  'manager-quit',
  'other-quit',
  'host-reset',
  'host-ui',
  'host-error',
  'migrated-away',
  'saved',
  'forced-stop',
  'start-exited',
  'vmm-exit',
];

/** After these, the machine may linger until something else ends its process. */
export const LINGERING: readonly Cause[] = [
  ...(['guest-shutdown', 'guest-hibernate', 'other-powerdown', 'admin-powerdown'] as const),
  ...(['watchdog-powerdown', 'guest-reboot', 'host-reset', 'guest-panic'] as const),
];

export const KILLED: readonly Cause[] = ['killed', 'oom-killed', 'vmm-crash', 'start-killed'];

/**
 * A machine that was paused and never resumed here had one of these causes; nothing tells which.
 */
export const ELSEWHERE: readonly Cause[] = ['migrated-away', 'saved'];

/** A SHUTDOWN by the guest, without a reason that we know, is one of these. */
export const GUESTS: readonly Cause[] = [
  ...(['guest-shutdown', 'guest-hibernate', 'admin-powerdown', 'other-powerdown'] as const),
  ...(['watchdog-powerdown', 'guest-reboot', 'guest-panic', 'guest-watchdog'] as const),
];

/** The same for its host. */
export const HOSTS: readonly Cause[] = [
  ...(['other-quit', 'manager-quit', 'forced-stop', 'host-reset', 'host-ui'] as const),
  'host-error',
];
