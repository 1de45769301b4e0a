import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

import type { ExitwatchError } from '../common/errors.js';

/** Environment data: workers inherit it, and other copies of this file see it too. */
const WARNED = 'exitwatch: the missing addon was reported';

type Tell = (message: string, code: string) => void;

let tell: Tell = (message, code) => {
  process.emitWarning(message, { type: 'ExitwatchWarning', code });
};

/** Warns once that the addon is missing although it is expected. */
export function warnOfMissingAddon({ message, code }: ExitwatchError): void {
  if (getEnvironmentData(WARNED) === true) return;
  setEnvironmentData(WARNED, true);
  tell(
    `${message}. Until then, exitwatch polls: it reports which processes are gone, but not how they ended`,
    code,
  );
}

/** Lets the command line print the warning in its own way. */
export function tellMissingAddonBy(own: Tell): void {
  tell = own;
}
