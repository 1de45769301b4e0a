import { invalidOption } from '../../common/options.js';
import { StreamUse } from '../../native/abi.js';
import type { SourceOptions } from '../source-kind.js';

/** Whether the reader requires the connector's stream, prefers it, or must not use it. */
export function streamUse({ scope, source }: Pick<SourceOptions, 'scope' | 'source'>): StreamUse {
  if (source === 'pidfd') return StreamUse.none;
  return source === 'auto' && scope === 'watched' ? StreamUse.preferred : StreamUse.required;
}

/**
 * What `EXITWATCH_SPOIL_TRACE` makes the signal trace misread, for tests. @throws ExitwatchError
 */
export function spoil(known: readonly string[]): string {
  const value = process.env['EXITWATCH_SPOIL_TRACE'] ?? '';
  if (value === '' || known.includes(value)) return value;
  const choice = known.join(', ');
  throw invalidOption(
    `EXITWATCH_SPOIL_TRACE must be one of ${choice}, or unset, not ${JSON.stringify(value)}`,
  );
}

/** Whether `EXITWATCH_FILTER` asks for the cBPF filter. @throws ExitwatchError */
export function asksForCbpf(): boolean {
  const value = process.env['EXITWATCH_FILTER'];
  if (value === undefined || value === '') return false;
  if (value === 'cbpf') return true;
  throw invalidOption(`EXITWATCH_FILTER must be "cbpf", or unset, not ${JSON.stringify(value)}`);
}
