/**
 * A name of a unit or container, and in whose part of the hierarchy: `null`, in the system's; otherwise in that of the manager of
 * a user. There, its owner can give any name.
 */
export interface OwnedName {
  uid: number | null;
  name: string;
}

/** From `NAME`, or `UID:NAME` for what is a user's: `1000:nginx.service`. */
export function ownedName(text: string): OwnedName {
  const [, uid, name] = /^(\d{1,10}):(.+)$/s.exec(text) ?? [];
  return uid === undefined || name === undefined
    ? { uid: null, name: text }
    : { uid: Number(uid), name };
}

export function ownedText({ uid, name }: OwnedName): string {
  return uid === null ? name : `${uid}:${name}`;
}
