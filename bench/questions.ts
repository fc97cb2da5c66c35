/** Every question, store by store. */
import type { Question } from "./contest.js";
import { questions as etcd } from "./etcd/questions.js";
import { questions as file } from "./file/questions.js";
import { questions as memory } from "./memory/questions.js";
import { questions as postgres } from "./postgres/questions.js";
import { questions as redis } from "./redis/questions.js";
import { questions as redlock } from "./redlock/questions.js";
import { questions as zookeeper } from "./zookeeper/questions.js";

export const questions: readonly Question[] = [
  ...memory,
  ...file,
  ...redis,
  ...redlock,
  ...etcd,
  ...postgres,
  ...zookeeper,
];
