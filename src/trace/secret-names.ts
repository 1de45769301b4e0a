/** What is shown in place of a secret. */
export const HIDDEN = '***';

const KEYS =
  'api|app|access|account|auth|cipher|encrypt(?:ion)?|hmac|license|master|private|secret|session|shared|signing|storage|subscription';

/** Names whose values are secret: `db-password`, `API_KEY`, `access-Token`; `author`, `bypass` and `passenger` are none. */
const SECRET = new RegExp(
  '(?:(?<!by|com)pass(?![-_]?through)(?:wor[dt]|wd|phrase|code|key)?|pwd|secret|token' +
    `|(?:${KEYS})[-_]?key|auth(?:orization)?|cred(?:ential)?|cookie|session[-_]?id` +
    '|signature|bearer|(?<![a-z])(?:pw|psk|jwt|otp))s?(?:value|text|string|hash)?(?![a-z])',
  'i',
);

/** The end of a longer name is looked at: an argument of thousands of such characters must cost no time. */
const MOST_NAME = 200;

/** Whether the value of an option, a variable, a header or a field of this name is probably secret. */
export function isSecretName(name: string): boolean {
  return SECRET.test(inParts(name));
}

/** How something is found or sorted is no secret. */
const KEY = /(?<!public|pub|primary|foreign|sort|cache|partition|routing)[-_.]key$/i;

/** Of Stripe and the like, and what a file of a key begins with. */
const KNOWN_KEY = /^(?:[prs]k_(?:live|test)_|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-)/;
/** At least 16 characters, with letters and digits. */
const LONG = /^(?=[^\d]*\d)(?=[^a-z]*[a-z])[\w+/=.~:-]{16,}$/i;
/** Words and paths: `user_id_2`, `/etc/x1.pem`, `arn:aws:kms:…`. */
const READABLE =
  /^(?:[a-z]+\d{0,4}(?:[_.:/-][a-z]*\d{0,4})*|[./~].*|(?:arn|file):.*|.*\.[a-z]\w{1,4})$/i;

/** Whether the value of such a name is secret if it {@link looksLikeKey}: `FERNET_KEY`, `x-functions-key`. */
export function isKeyName(name: string): boolean {
  return KEY.test(inParts(name));
}

/** Whether it is probably a key, and no name of one. */
export function looksLikeKey(value: string): boolean {
  return KNOWN_KEY.test(value) || (LONG.test(value) && !READABLE.test(value));
}

/** `secretKey` is `secret-Key`. */
function inParts(name: string): string {
  return name.slice(-MOST_NAME).replace(/([a-z\d])(?=[A-Z])/g, '$1-');
}
