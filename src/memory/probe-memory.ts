import type { Downgrade } from '../events/exit-event.js';
import { addonRefusal } from '../native/load-addon.js';

import { DescriptorStore } from './descriptor-store.js';
import type { MemoryKind } from './keeping.js';
import { probeRecorder } from './recorder-pins.js';

/** What a monitor of this process would remember exits with; leaves nothing behind. */
export function probeMemory(): { kind: MemoryKind; downgrade: Downgrade | null } {
  const downgrade = probeRecorder();
  if (downgrade === null) return { kind: 'recorder', downgrade };
  const store = addonRefusal() === null ? DescriptorStore.of('') : null;
  return { kind: store === null ? 'none' : 'descriptor-store', downgrade };
}
