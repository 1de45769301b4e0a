// The test files that run in a guest, and the user who runs them. In CI all of it has two to four
// minutes.

/** A few rounds take as long in an emulated machine as many on a real one. */
const env = { EXITWATCH_EMULATED: '1', EXITWATCH_ROUNDS: '2' };

/** Measurements of memory and time mean nothing in an emulated machine. */
const pattern = '^(?!.*(take a descriptor each|sleep while|a quiet host|has armed))';

const EVERYTHING = [
  {
    user: 'root',
    files: [
      ...['deaths', 'fates', 'senders', 'contested', 'storm', 'silence', 'loss', 'pidfd', 'forged'],
      ...['cli/doctor', 'signal-trace', 'trace/trial', 'traced-since', 'program-name'],
      ...['reaped-at-once', 'durable-watches', 'recorder-full', 'recorder-pins'],
      ...['sources/facts', 'kernel/parent', 'kernel/usage', 'kernel/cgroups', 'command-lines'],
    ],
    pattern,
    env,
  },
  {
    user: 'nobody',
    files: [
      ...['deaths', 'storm', 'silence', 'loss', 'pidfd', 'cli/doctor', 'signal-trace'],
      'sources/facts',
    ],
    env,
  },
];

/** Every way to die with every source and filter, but the fates with only one source and filter. */
const sample = {
  pattern:
    '^(?!.*("source":"(pidfd|connector)"|cbpf filter and|reaped: late|source poll|true cause))',
  env: { ...env, EXITWATCH_ROUNDS: '1' },
};

const SAMPLE = [
  {
    user: 'root',
    files: ['deaths', 'fates', 'sources/facts', 'kernel/parent', 'cli/doctor'],
    ...sample,
  },
  { user: 'nobody', files: ['deaths', 'sources/facts'], ...sample },
];

/** `only`: the names of the files to run; undefined: all. */
export function selectionOf(isSample, only) {
  const selection = isSample ? SAMPLE : EVERYTHING;
  const isWanted = (file) => only === undefined || only.includes(file);
  const isKnown = (name) => selection.some(({ files }) => files.includes(name));
  const unknown = only?.filter((name) => !isKnown(name)) ?? [];
  if (unknown.length > 0) throw new Error(`no test files for guests: ${unknown.join(', ')}`);
  return selection
    .map((run) => ({ ...run, files: run.files.filter(isWanted) }))
    .filter(({ files }) => files.length > 0);
}
