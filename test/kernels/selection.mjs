// What is run in a guest, as whom. CI has two to four minutes for all of it.

/** In an emulated machine a few rounds take as long as many on a real one. */
const env = { EXITWATCH_EMULATED: '1', EXITWATCH_ROUNDS: '2' };

/** What measures memory and time says nothing there. */
const pattern = '^(?!.*(take a descriptor each|sleep while|a quiet host|has armed|so has watch))';

const EVERYTHING = [
  {
    user: 'root',
    files: [
      ...['deaths', 'fates', 'senders', 'contested', 'storm', 'silence', 'loss', 'pidfd', 'forged'],
      ...['cli/doctor', 'signal-trace', 'trace/trial', 'traced-since', 'program-name'],
    ],
    pattern,
    env,
  },
  {
    user: 'nobody',
    files: ['deaths', 'storm', 'silence', 'loss', 'pidfd', 'cli/doctor', 'signal-trace'],
    env,
  },
];

/** Every way to die by every source and filter; the fates of one source and filter. */
const sample = {
  pattern:
    '^(?!.*("source":"(pidfd|connector)"|cbpf filter and|reaped: late|source poll|true cause))',
  env: { ...env, EXITWATCH_ROUNDS: '1' },
};

const SAMPLE = [
  { user: 'root', files: ['deaths', 'fates', 'cli/doctor'], ...sample },
  { user: 'nobody', files: ['deaths'], ...sample },
];

export const selectionOf = (isSample) => (isSample ? SAMPLE : EVERYTHING);
