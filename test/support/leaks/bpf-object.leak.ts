import { ExitMonitor } from '../../../src';

it('leaves a monitor, which has BPF objects', async () => {
  await new ExitMonitor().start();
});
