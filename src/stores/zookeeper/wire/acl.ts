/** The permissions of a znode, and the proof of identity that a connection gives. */

/** Numbers that are added up: read 1, write 2, create 4, delete 8, admin 16. */
const ALL_PERMISSIONS = 31;

/** The permissions of one identity at a znode. */
export interface Acl {
  readonly permissions: number;
  readonly scheme: string;
  readonly id: string;
}

/** A proof of identity, such as the scheme `digest` with the text `user:password`. */
export interface Credential {
  readonly scheme: string;
  readonly text: string;
}

/** Every client may do everything. */
export const OPEN_ACL: readonly Acl[] = [
  { permissions: ALL_PERMISSIONS, scheme: "world", id: "anyone" },
];

/** Every identity that the connection has proven may do everything, and no other client. */
export const CREATOR_ACL: readonly Acl[] = [
  { permissions: ALL_PERMISSIONS, scheme: "auth", id: "" },
];
