import { openSync } from 'node:fs';

it('leaves a file open', () => {
  openSync(__filename, 'r');
});
