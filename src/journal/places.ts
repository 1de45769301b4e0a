import { unitsOf } from '../where/whereabouts.js';

import type { JournalExit } from './rows.js';

/** Whether both ran in the same unit or cgroup. */
export function isSamePlace(row: JournalExit, end: JournalExit): boolean {
  if (end.cgroup === null || end.cgroup === '/' || row.cgroup === null) return false;
  return row.cgroup === end.cgroup || isSameUnit(row, end);
}

/** Where no cgroup tells programs of one name apart: of the same user, and started by the same program. */
export function isAlike(row: JournalExit, end: JournalExit): boolean {
  if (row.cgroup !== end.cgroup || (end.cgroup !== null && end.cgroup !== '/')) return false;
  return row.uid === end.uid && row.parentName === end.parentName && row.program === end.program;
}

/** Users, containers and machines may have units of the same name. A slice has everything of a user. */
function isSameUnit(row: JournalExit, end: JournalExit): boolean {
  const pathOf = ({ cgroup, container, pod, machine }: JournalExit) =>
    [...unitsOf(cgroup).units, container?.id, pod?.uid, machine?.name].join('/');
  return end.unit !== null && pathOf(row) === pathOf(end);
}
