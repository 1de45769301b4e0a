import type { SourceName } from '../exit-event.js';

import { UsageError } from './usage-error.js';

const SOURCES = ['auto', 'connector', 'pidfd', 'poll'] as const;

/** The witness that `--source` asks for. @throws UsageError */
export function parseSource(text: string): 'auto' | SourceName {
  const source = SOURCES.find((each) => each === text);
  if (source !== undefined) return source;
  throw new UsageError(
    `--source takes auto, connector, pidfd or poll; not ${JSON.stringify(text)}`,
  );
}
