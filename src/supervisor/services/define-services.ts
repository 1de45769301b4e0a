import type { ServiceReady, ServiceSpec } from './service-spec.js';

/**
 * A service in a configuration of `exitwatch supervise`. Paths are relative to the folder of the
 * configuration, which is also the default of `cwd`.
 *
 * @see [Supervise](../../../docs/supervise.md)
 */
export type ConfiguredService = ServiceSpec & {
  /**
   * When it has ended for good, all others are stopped, and the supervisor ends, with its status; a
   * container ends with that. Its default for `restart` is `'never'`. At most one has it.
   */
  main?: boolean;
};

/**
 * A virtual machine in a configuration: its QEMU gets a socket and an event log for the supervisor, which
 * judges its end by these. It is started again if it was cut short, and not if its guest has powered it
 * off, it continues elsewhere, or we ended it.
 *
 * @see [Supervise](../../../docs/supervise.md#virtual-machines)
 */
export type ConfiguredMachine = Omit<
  ConfiguredService,
  | ('askedBy' | 'group' | 'pidfile' | 'successExitCodes' | 'user' | 'watchdog')
  | ('ready' | 'restart' | 'stop')
> & {
  kind: 'vm';
  /** Default: as soon as its QEMU runs, which does not say when its guest is up. */
  ready?: Exclude<ServiceReady, { notify: true }>;
  /** `'never'`: it runs once. */
  restart?: 'unless-asked' | 'never';
  /** What follows an end whose reason is not known; default `'stay'`. */
  onUnknown?: 'restart' | 'stay';
  stop?: {
    /** How long its guest may take to obey its agent or its power button, in ms; default 60,000. */
    powerdownMs?: number;
    /** How long QEMU may take after SIGTERM, in ms; default 5,000. */
    graceMs?: number;
  };
};

/**
 * A configuration of `exitwatch supervise`.
 *
 * @see [Supervise](../../../docs/supervise.md)
 */
export type ServicesConfig = {
  /** For editors. */
  $schema?: string;
  services: (ConfiguredService | ConfiguredMachine)[];
};

/**
 * Returns what it is given: with it, an editor knows the options of a configuration in JavaScript.
 *
 * @example
 * ```ts
 * import { defineServices } from 'exitwatch/supervisor';
 *
 * export default defineServices({
 *   services: [{ name: 'web', command: 'node', args: ['server.js'], restart: 'always' }],
 * });
 * ```
 */
export function defineServices(config: ServicesConfig): ServicesConfig {
  return config;
}
