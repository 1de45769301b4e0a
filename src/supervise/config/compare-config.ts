import { isDeepStrictEqual } from 'node:util';

import { runPart, type ServiceSpec } from '../../supervisor/services/service-spec.js';
import type { AppliedConfig } from '../control/protocol.js';

/** What of a configuration differs from what was applied before. */
export function compareConfig(
  before: readonly ServiceSpec[],
  after: readonly ServiceSpec[],
): Omit<AppliedConfig, 'isDryRun'> {
  const plan: Omit<AppliedConfig, 'isDryRun'> = {
    ...{ added: [], changed: [], removed: [], unchanged: [], differences: {}, restarted: [] },
  };
  const present = new Map(before.map((spec) => [spec.name, spec]));
  for (const spec of after) {
    const { name } = spec;
    const old = present.get(name);
    present.delete(name);
    if (old === undefined) {
      plan.added.push(name);
      continue;
    }
    const differing = differences(old, spec);
    if (differing.length === 0) {
      plan.unchanged.push(name);
      continue;
    }
    plan.changed.push(name);
    plan.differences[name] = differing;
    if (!isDeepStrictEqual(runPart(old), runPart(spec))) plan.restarted.push(name);
  }
  plan.removed.push(...present.keys());
  return plan;
}

/** The options that differ; of an environment, its variables. */
function differences(before: ServiceSpec, after: ServiceSpec): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const one: unknown = before[name as keyof ServiceSpec];
    const other: unknown = after[name as keyof ServiceSpec];
    if (isDeepStrictEqual(one, other)) return [];
    if (name !== 'env' && name !== 'extraEnv') return [name];
    const [old, fresh] = [one ?? {}, other ?? {}] as Record<string, string>[];
    const variables = new Set([...Object.keys(old ?? {}), ...Object.keys(fresh ?? {})]);
    const differing = [...variables].filter((each) => old?.[each] !== fresh?.[each]);
    return differing.length === 0 ? [name] : differing.map((each) => `${name}.${each}`);
  });
}
