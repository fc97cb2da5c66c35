/**
 * Makes the znodes above an entry. They are containers: ZooKeeper removes each some time after its
 * last child has left, also between two requests of ours.
 */
import type { Acl } from "./wire/acl.js";
import type { Connection } from "./wire/connection.js";
import { create2 } from "./wire/requests.js";
import { hasCode } from "./wire/zookeeper-error.js";

export async function makeParents(
  connection: Connection,
  path: string,
  acl: readonly Acl[],
): Promise<void> {
  const parts = path.split("/").slice(1);
  const paths = parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
  const failures = await Promise.all(
    paths.map((one) => {
      const made = connection.send(create2(one, { mode: "container", acl }));
      return made.then(
        () => null,
        (error: unknown) => (hasCode(error, "node_exists") ? null : error),
      );
    }),
  );
  // A znode high up may exist although this client may not make it: the last one has to be there.
  if (failures.at(-1) !== null) throw failures.find((error) => error !== null);
}
