// Lane: patient

import { KeeperHost } from '../support/keeper';

it('every start that fails says so, and its id may be used again at once', async () => {
  await using host = await KeeperHost.open();
  const start = (at: number) => host.keeper.start({ id: `run-${at}`, command: '/nowhere' });
  for (let round = 0; round < 5; round++) {
    const all = await Promise.allSettled(Array.from({ length: 60 }, (_, at) => start(at)));
    const codes = all.map((each) => each.status === 'rejected' && codeOf(each.reason));
    expect(new Set(codes)).toEqual(new Set(['ERR_EXITWATCH_START_FAILED']));
    expect(host.keeper.runs()).toEqual([]);
  }
});

const codeOf = (error: unknown) => (error as { code: string }).code;
