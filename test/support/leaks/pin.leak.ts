import { ExitMonitor } from '../../../src';
import { MemoryFolder } from '../bpffs';

it('leaves the pins of a recorder', async () => {
  const monitor = new ExitMonitor(new MemoryFolder().options);
  await monitor.start();
  await monitor.close();
});
