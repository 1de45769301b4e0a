import type { Filter } from '../../events/exit-event.js';

/** What people call the filters. */
export const FILTER_TITLES: Record<Filter, string> = { ebpf: 'eBPF', cbpf: 'cBPF' };
