import type { ServiceSpec } from './service-spec.js';

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
 * A configuration of `exitwatch supervise`.
 *
 * @see [Supervise](../../../docs/supervise.md)
 */
export type ServicesConfig = {
  /** For editors. */
  $schema?: string;
  services: ConfiguredService[];
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
