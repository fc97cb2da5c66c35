import type { Fault } from "../faults/fault.js";
import { LOCK_NAME } from "../orders.js";
import type { Subject } from "../subjects/subject.js";
import type { Deployment } from "./deployment.js";
import { EtcdService } from "./etcd-service.js";
import { FolderDeployment } from "./folder-deployment.js";
import { PostgresService } from "./postgres-service.js";
import { RedisDeployment } from "./redis-deployment.js";
import { ServiceDeployment } from "./service-deployment.js";
import { ZookeeperService } from "./zookeeper-service.js";

const QUORUM_NODES = 5;
const REPLICAS = 2;
const MEMBERS = 3;

/** Starts the servers that the subject needs, and the fault on it. */
export async function deploy(
  subject: Subject,
  fault: Fault,
  lanes: readonly string[],
): Promise<Deployment> {
  const hasReplicas = Boolean(subject.needsReplicas || fault.needsReplicas);
  const key = (subject.keyPrefix ?? "") + LOCK_NAME;
  switch (subject.place) {
    case "redis": {
      const replicas = hasReplicas ? REPLICAS : 0;
      const areReplicasAwaited = subject.needsReplicas ?? false;
      return await RedisDeployment.start({ nodes: 1, replicas, areReplicasAwaited, key, lanes });
    }
    case "quorum": {
      const nodes = QUORUM_NODES;
      const areReplicasAwaited = false;
      return await RedisDeployment.start({ nodes, replicas: 0, areReplicasAwaited, key, lanes });
    }
    case "etcd":
      return await ServiceDeployment.start(
        await EtcdService.start(hasReplicas ? MEMBERS : 1),
        lanes,
      );
    case "zookeeper":
      return await ServiceDeployment.start(
        await ZookeeperService.start(hasReplicas ? MEMBERS : 1),
        lanes,
      );
    case "postgres": {
      const wants = { hasStandby: hasReplicas, isEmptied: fault.empties ?? false };
      return await ServiceDeployment.start(await PostgresService.start(wants), lanes);
    }
    case "folder":
      return new FolderDeployment();
  }
}
