import {
  LONGEST_MS,
  checkBoolean,
  checkInteger,
  checkOneOf,
  checkOptionNames,
} from '../../common/options.js';

import { invalid } from './control-server.js';
import type { QuestionName, Questions } from './protocol.js';

type Asked = {
  [Name in QuestionName]: { name: Name; question: Questions[Name]['question'] };
}[QuestionName];

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkQuestion(name: string, given: Record<string, unknown>): Asked {
  switch (name) {
    case 'list':
    case 'upgrade-keeper':
      checkOptionNames(given, []);
      return { name, question: {} };
    case 'story': {
      const { name: service } = checkOptionNames(given, ['name']);
      if (typeof service !== 'string') throw invalid('name must be the name of a service');
      return { name, question: { name: service } };
    }
    case 'start':
    case 'restart': {
      const { names, timeoutMs } = checkOptionNames(given, ['names', 'timeoutMs']);
      const limit =
        timeoutMs === undefined
          ? {}
          : { timeoutMs: checkInteger('timeoutMs', timeoutMs, 1, LONGEST_MS) };
      return { name, question: { names: namesIn(names), ...limit } };
    }
    case 'stop': {
      const { names, graceMs, until } = checkOptionNames(given, ['names', 'graceMs', 'until']);
      return {
        name,
        question: {
          names: namesIn(names),
          ...(graceMs === undefined
            ? {}
            : { graceMs: checkInteger('graceMs', graceMs, 0, LONGEST_MS) }),
          ...(until === undefined
            ? {}
            : { until: checkOneOf('until', until, ['start', 'reboot', 'close'] as const) }),
        },
      };
    }
    case 'apply': {
      const { dryRun = false } = checkOptionNames(given, ['dryRun']);
      return { name, question: { dryRun: checkBoolean('dryRun', dryRun) } };
    }
    default:
      throw invalid(`there is no question ${JSON.stringify(name)}`);
  }
}

/** `null`: all. */
function namesIn(names: unknown): string[] | null {
  if (names === null) return null;
  const isList = Array.isArray(names) && names.every((each) => typeof each === 'string');
  if (isList && names.length > 0) return names;
  throw invalid('names must be an array of names, or null for all services');
}
