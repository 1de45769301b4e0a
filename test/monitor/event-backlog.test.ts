// Lane: unit

import type { MonitorEvent } from '../../src';
import { EventBacklog } from '../../src/monitor/event-backlog';

import { EXIT } from '../vm/evidence';

// Exits on several CPUs arrive slightly out of order.
test('the gap of a slow event loop spans from the earliest exit that did not fit to the latest', async () => {
  const backlog = new EventBacklog(1, { onDetach: () => undefined, onDone: () => undefined });
  for (const ms of [1, 20, 10, 30, 25]) backlog.push({ ...EXIT, exitedAt: new Date(ms) });
  backlog.end();
  const told: MonitorEvent[] = [];
  for await (const event of backlog) told.push(event);
  expect(told).toMatchObject([
    { event: 'exit', exitedAt: new Date(1) },
    { event: 'gap', from: new Date(10), to: new Date(30), lost: 4, reason: 'queue-limit' },
  ]);
});
