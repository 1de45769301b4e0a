import type { Filter } from '../../events/exit-event.js';

/** The names of the filters in messages. */
export const FILTER_TITLES: Record<Filter, string> = { ebpf: 'eBPF', cbpf: 'cBPF' };
