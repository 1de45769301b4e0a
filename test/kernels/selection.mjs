// What is run in a guest, as whom. CI has two to four minutes for all of it.

/** In an emulated machine a few rounds take as long as many on a real one. */
const env = { EXITWATCH_ROUNDS: '3', EXITWATCH_EXITS: '20000' };

/** What measures memory and time says nothing there. */
const pattern = '^(?!.*(take a descriptor each|sleep while|a quiet host))';

const EVERYTHING = [
  {
    user: 'root',
    files: [
      ...['deaths', 'fates', 'senders', 'contested', 'storm', 'silence', 'loss', 'pidfd', 'forged'],
      ...['cli-doctor', 'signal-trace', 'traced-since'],
    ],
    pattern,
    env,
  },
  {
    user: 'nobody',
    files: ['deaths', 'storm', 'silence', 'loss', 'pidfd', 'cli-doctor', 'signal-trace'],
    env,
  },
];

const SAMPLE = [
  {
    user: 'root',
    files: ['deaths', 'fates', 'cli-doctor'],
    // Of the sources of the fates one.
    pattern: '^(?!.*"source":"(pidfd|connector)")',
    env: { EXITWATCH_ROUNDS: '1' },
  },
  { user: 'nobody', files: ['deaths'], env: { EXITWATCH_ROUNDS: '1' } },
];

export const selectionOf = (isSample) => (isSample ? SAMPLE : EVERYTHING);
