import type { SourceName } from '../../events/exit-event.js';
import { sourceChoices } from '../../sources/registry.js';

import { UsageError } from './usage-error.js';

/** The source that `--source` asks for. @throws UsageError */
export function parseSource(text: string): 'auto' | SourceName {
  const choices = sourceChoices();
  const source = choices.find((each) => each === text);
  if (source !== undefined) return source;
  const last = choices.at(-1) ?? '';
  const others = choices.slice(0, -1).join(', ');
  throw new UsageError(`--source must be ${others} or ${last}, not ${JSON.stringify(text)}`);
}
