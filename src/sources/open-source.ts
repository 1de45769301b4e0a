import { AutoSource } from './auto-source.js';
import { failureDowngrade } from './downgrade.js';
import type { ExitSource, SourceListener } from './exit-source.js';
import { bestSource, sourceKind, successorOf } from './registry.js';
import type { SourceOptions } from './source-kind.js';

/** Opens the source that the options ask for; `'auto'`: the best one available. */
export function openSource(options: SourceOptions, listener: SourceListener): ExitSource {
  if (options.source !== 'auto') return sourceKind(options.source).open(options, listener, null);
  const best = bestSource();
  const successor = successorOf(best);
  if (successor === null) return best.open(options, listener, null);
  const refusal = best.refusal();
  if (refusal === null) return new AutoSource(options, listener, best, successor);
  return successor.open(options, listener, failureDowngrade(refusal));
}
