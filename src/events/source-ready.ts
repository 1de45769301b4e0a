import type { Downgrade, Filter, SourceName } from './exit-event.js';

/**
 * What a source reports when it runs.
 *
 * @see [Options](../../docs/options.md)
 */
export type SourceReady = {
  event: 'ready';
  scope: 'watched' | 'all';
  source: SourceName;
  /** `null` if the connector is not in use. */
  filter: Filter | null;
  /**
   * Why a better source or filter is not in use; `null` if there is none, or it was not requested.
   */
  downgrade: Downgrade | null;
  /**
   * Exits reported by the kernel have {@link ExitEvent | program}. `false` without the eBPF filter,
   * and on older kernels that do not expose it; see there.
   */
  namesPrograms: boolean;
  /**
   * The size of the kernel's buffer as granted; `null` if the connector is not in use.
   *
   * With the eBPF filter: a ring buffer with 216 bytes per exit of a process. It takes a quarter of
   * the requested size, rounded up to a power of two; half of that before Linux 5.11 if
   * RLIMIT_MEMLOCK is too low. With the cBPF filter: a socket buffer with about 832 bytes per
   * thread exit and per exec; without CAP_NET_ADMIN at most twice `net.core.rmem_max`.
   */
  receiveBufferBytes: number | null;
  /** The signal trace is running: events name the senders of signals. */
  traced: boolean;
  /** Why it is not running; `null` if it is, or was not requested. */
  traceDowngrade: Downgrade | null;
};
