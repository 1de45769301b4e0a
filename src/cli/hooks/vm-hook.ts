import { shouldRestart, type VmEnd } from '../../vm/index.js';

import { runHook } from './run-hook.js';

/** Returns a function that runs a shell command for each exit of a virtual machine. */
export function hookCommand(command: string): (end: VmEnd) => Promise<void> {
  return (end) =>
    runHook(command, {
      subject: JSON.stringify(end.stop.name),
      environment: environment(end),
      content: { ...end.stop, ...end, stop: undefined },
      isAwaited: false, // a running hook must not keep this process alive
    });
}

function environment(end: VmEnd): NodeJS.ProcessEnv {
  const { id, group, isRepeated, isSuperseded, identity, stop } = end;
  const { exit } = stop;
  return {
    EXITWATCH_ID: id,
    EXITWATCH_NAME: stop.name,
    EXITWATCH_PID: String(identity?.pid ?? ''),
    EXITWATCH_CAUSE: stop.cause,
    EXITWATCH_USER_SHUTDOWN: String(stop.userShutdown ?? 'unknown'),
    EXITWATCH_INITIATOR: stop.initiator,
    EXITWATCH_CERTAINTY: stop.certainty,
    EXITWATCH_CANDIDATES: stop.candidates.join(' '),
    EXITWATCH_RESTART: String(shouldRestart(stop, end).restart ?? 'unknown'),
    EXITWATCH_SUMMARY: stop.summary,
    EXITWATCH_EXIT_CODE: String(exit?.exitCode ?? ''),
    EXITWATCH_SIGNAL: exit?.signal ?? '',
    EXITWATCH_GROUP: group ?? '',
    EXITWATCH_REPEATED: String(isRepeated),
    EXITWATCH_SUPERSEDED: String(isSuperseded ?? 'unknown'),
  };
}
