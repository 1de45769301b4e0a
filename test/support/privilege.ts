import { MAY_LISTEN } from './kernel';

/** Outside of CI a test that needs root is left out, and its title says why. */
export const itAsRoot = itIf(process.getuid?.() === 0, 'needs root');

/** The same of one that needs the connector. */
export const itAsListener = itIf(MAY_LISTEN, 'needs root before Linux 6.6');

function itIf(isPossible: boolean, need: string): jest.It {
  if (isPossible || process.env['CI']) return it;
  const left = (title: string, body: jest.ProvidesCallback) => {
    it.skip(`${title} (${need})`, body);
  };
  return Object.assign(left, it) as jest.It;
}
