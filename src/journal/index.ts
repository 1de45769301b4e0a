export { JournalWriter } from './journal-writer.js';
export type { JournalOptions } from './journal-options.js';
export { readJournal } from './read-journal.js';
export type { JournalQuery } from './query.js';
export type { JournalEvent, JournalExit, JournalGap, JournalRow, JournalSkip } from './rows.js';
