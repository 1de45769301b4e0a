import type { Cause } from './vm-verdict.js';

/** All that ends it with 0. */
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

/** After these it may linger, and be ended by something else. */
export const LINGERING: readonly Cause[] = [
  ...(['guest-shutdown', 'guest-hibernate', 'other-powerdown', 'admin-powerdown'] as const),
  ...(['watchdog-powerdown', 'guest-reboot', 'host-reset', 'guest-panic'] as const),
];

export const KILLED: readonly Cause[] = ['killed', 'oom-killed', 'vmm-crash', 'start-killed'];

/** Where a machine is that was stopped, and does not go on here: which of them it is, nothing tells. */
export const ELSEWHERE: readonly Cause[] = ['migrated-away', 'saved'];

/** A SHUTDOWN without a reason that we know: the guest's doing. */
export const GUESTS: readonly Cause[] = [
  ...(['guest-shutdown', 'guest-hibernate', 'admin-powerdown', 'other-powerdown'] as const),
  ...(['watchdog-powerdown', 'guest-reboot', 'guest-panic', 'guest-watchdog'] as const),
];

/** Or its host's. */
export const HOSTS: readonly Cause[] = [
  ...(['other-quit', 'manager-quit', 'forced-stop', 'host-reset', 'host-ui'] as const),
  'host-error',
];
