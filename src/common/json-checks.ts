import { isObject } from './is-object.js';

/** Whether a value of JSON is of a kind. What a file holds that others can change is checked. */
export type Check = (value: unknown) => boolean;

export const isText: Check = (value) => typeof value === 'string';
/** A pid, for example. */
export const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
/** Of ms, for example. */
export const isAmount: Check = (value) => Number.isFinite(value) && Number(value) >= 0;
/** One of a list that a later version may have made longer, such as the name of a signal. */
export const isWord: Check = (value) =>
  typeof value === 'string' && /^[A-Za-z][\w+-]{0,63}$/.test(value);
export const isBoolean: Check = (value) => typeof value === 'boolean';
export const isTime: Check = (value) =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value));

export const isListOf =
  (isValid: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(isValid);

export const isObjectOf = (checks: Readonly<Record<string, Check>>): Check => {
  const entries = Object.entries(checks);
  return (value) => isObject(value) && entries.every(([name, isValid]) => isValid(value[name]));
};

export const orNull =
  (isValid: Check): Check =>
  (value) =>
    value === null || isValid(value);
