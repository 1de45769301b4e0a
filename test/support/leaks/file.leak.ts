import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

it('leaves a file', () => {
  writeFileSync(join(tmpdir(), 'left'), '');
});
