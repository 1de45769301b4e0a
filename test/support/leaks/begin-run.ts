import { beginRun } from '../left/run-check';

/** The programs of the tests have been compiled by those who run this. */
export default beginRun;
