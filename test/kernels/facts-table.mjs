// What docs/kernels.md says of the facts of an exit: which source tells each of them in which kernel,
// and why the others do not. The titles of test/sources/facts.test.ts have it: `eBPF usage: told`.

const TITLE = /^(?<witness>eBPF|cBPF|pidfd|poll) (?<fact>.+): (?:told|null, because (?<lack>.+))$/;

/** What the tests of this user have seen. */
function seenBy(user, byName) {
  const seen = [];
  for (const [kernel, { tests }] of Object.entries(byName)) {
    for (const { title, status, ...test } of tests) {
      if (test.file !== 'facts' || test.user !== user || status === 'pending') continue;
      const { witness, fact, lack } = TITLE.exec(title).groups;
      seen.push({ kernel, witness, fact, lack, hasFailed: status !== 'passed' });
    }
  }
  return seen;
}

const distinct = (values) => [...new Set(values)];

/** One row for each fact: the sources that tell root of it, in each kernel. */
export function rowsOfFacts(byName) {
  const seen = seenBy('root', byName);
  const cell = (wanted, kernel) =>
    seen
      .filter(({ fact, lack, ...other }) => fact === wanted && other.kernel === kernel && !lack)
      .map(({ witness, hasFailed }) => (hasFailed ? `**${witness} failed**` : witness))
      .join(', ');
  return distinct(seen.map(({ fact }) => fact)).map((fact) => [
    `\`${fact}\``,
    ...Object.keys(byName).map((kernel) => cell(fact, kernel)),
  ]);
}

/** One row for each reason why facts are `null`, for the same sources in the same kernels. */
export function rowsOfLacks(byName) {
  const names = Object.keys(byName);
  return ['root', 'nobody'].flatMap((user) => {
    const lacking = seenBy(user, byName).filter(({ lack }) => lack !== undefined);
    const kernelsOf = ({ fact, witness, lack }) =>
      lacking
        .filter((other) => other.fact === fact && other.witness === witness && other.lack === lack)
        .map(({ kernel, hasFailed }) => (hasFailed ? `**not in ${kernel}**` : kernel));
    const factsOf = new Map();
    for (const { lack, fact, witness } of lacking) {
      const kernels = kernelsOf({ fact, witness, lack });
      const where = kernels.join() === names.join() ? 'all' : kernels.join(', ');
      const key = JSON.stringify([witness, user === 'root' ? user : 'ordinary user', where, lack]);
      factsOf.set(key, [...(factsOf.get(key) ?? []), fact]);
    }
    return [...factsOf].map(([key, facts]) => {
      const [witness, as, where, lack] = JSON.parse(key);
      return [distinct(facts.map((fact) => `\`${fact}\``)).join(', '), witness, as, where, lack];
    });
  });
}
