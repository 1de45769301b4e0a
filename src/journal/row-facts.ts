import { type JournalEvent, timeOf } from './rows.js';
import { type Findable, findableOf } from './terms.js';

/** What an index needs of a row: the event itself need not wait until the row is on disk. */
export interface RowFacts {
  /** Its times, in ms. */
  from: number;
  to: number;
  /** `null`: it is no end. */
  found: Findable | null;
}

export function factsOf(event: JournalEvent): RowFacts {
  const to = timeOf(event).getTime();
  // What is missing may have begun long before it was known.
  const from = 'from' in event ? Math.min(event.from.getTime(), to) : to;
  return { from, to, found: findableOf(event) };
}
